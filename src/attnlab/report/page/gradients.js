// Gradients: how large, and, for footnote 4, how they are spread over queries.

import { choice, el, panel } from "./dom.js";
import { emphasis, keep, remembered } from "./state.js";
import { color, mark } from "./marks.js";
import { chart, hover, merged } from "./chart.js";
import { armsOf, curveChart, missing, scaleButtons, stepExtent } from "./curves.js";
import { short } from "./numbers.js";

const UNIT = "nats per unit";
const SITES = ["encoder", "decoder", "cross"];
const OF = { scores: "the scores", q: "the queries", k: "the keys" };
const MATRICES = { w_q: "W_Q", w_k: "W_K", w_v: "W_V", w_o: "W_O" };

export function gradientsPanel(page) {
  const scales = { x: false, y: true };
  let of = remembered("gradients-of", "scores");
  let site = remembered("gradients-site", "decoder");
  const grid = el("div", { class: "grid" });
  let charts = [];

  function fill() {
    charts = [
      curveChart(page, "train/grad/norm", "All parameters, before clipping", `norm (${UNIT})`, scales),
      ...SITES.map((one) => quantiles(page, of, one, scales)),
      ...Object.entries(MATRICES).map(([key, name]) =>
        curveChart(page, `train/grad/${key}/${site}`, `${name}, ${site}`, `norm (${UNIT})`, scales),
      ),
    ];
    grid.replaceChildren(...charts.map((one) => one.figure));
  }
  const controls = scaleButtons("gradients", scales, () => charts.forEach((one) => one.redraw()));
  controls.append(
    choice("quantiles of", Object.entries(OF), of, (value) => (keep("gradients-of", (of = value)), fill())),
    choice(
      "matrices of",
      SITES.map((one) => [one, one]),
      site,
      (value) => (keep("gradients-site", (site = value)), fill()),
    ),
  );
  fill();
  const reading =
    "Norms of the gradient to single queries' scores (or to q, k): the line is the median, the thin dotted line the rms, the band runs from the 10% to the 90% quantile (with several arms, of the selected one). Past saturation few rows hold nearly all of the gradient: the rms grows while the median vanishes.";
  return panel("gradients", "Gradients", reading, controls, grid);
}

function quantiles(page, of, site, scales) {
  const named = (kind) => armsOf(page, `probe/grad_${of}_${kind}/${site}`);
  const [median, rms, low, high] = ["median", "rms", "p10", "p90"].map(named);
  const title = `Gradient to ${OF[of]}, ${site}`;
  if (median.every((arm) => arm.runs.length === 0))
    return { figure: missing(title, `No run has probe/grad_${of}_median/${site}.`), redraw: () => {} };
  const axes = { x: { title: "update", log: false }, y: { title: `norm (${UNIT})`, log: true } };
  return chart(title, axes, () => {
    axes.x.log = scales.x;
    axes.y.log = scales.y;
    axes.x.extent = stepExtent(median, scales.x);
    const alone = median.filter((arm) => arm.runs.length).length === 1;
    return median.flatMap((arm, place) =>
      arm.runs.length ? lines(arm, rms[place], low[place], high[place], alone, scales.y) : [],
    );
  });
}

function lines(arm, rms, low, high, alone, log) {
  const style = mark(arm.cell);
  const state = emphasis(arm.cell);
  const stroke = state === "off" ? color("faint") : style.color;
  const above = (values) => (log ? values.map((value) => (value > 0 ? value : null)) : values);
  const trace = (runs, kind, line, more = {}) => {
    const whole = merged(runs);
    return {
      x: whole.x,
      y: above(whole.middle),
      mode: "lines",
      line: { color: stroke, ...line },
      hoverinfo: "text",
      hovertext: whole.x.map((x, i) =>
        hover(arm.label, `${kind} ${short(whole.middle[i])} ${UNIT}`, `update ${short(x)}`),
      ),
      customdata: whole.x.map(() => [arm.cell, null]),
      ...more,
    };
  };
  const band =
    (state === "on" || alone) && low.runs.length && high.runs.length
      ? [
          trace(low.runs, "10% quantile", { width: 0 }, { hoverinfo: "skip" }),
          trace(
            high.runs,
            "90% quantile",
            { width: 0 },
            { hoverinfo: "skip", fill: "tonexty", fillcolor: `${style.color}2b` },
          ),
        ]
      : [];
  const spread = rms.runs.length ? [trace(rms.runs, "rms", { width: 1, dash: "dot" })] : [];
  const middle = trace(
    arm.runs,
    "median",
    { width: state === "off" ? 1 : 2, dash: style.dash },
    {
      mode: "lines+markers",
      marker: { symbol: style.symbol, size: 5, color: stroke },
    },
  );
  return [...band, ...spread, middle];
}
