// Charts by Plotly, drawn again whenever the selection, the theme or a scale changes.

import { el } from "./dom.js";
import { short } from "./numbers.js";
import { emphasis, select, selection } from "./state.js";
import { color, mark, onTheme } from "./marks.js";

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
const CONFIG = { responsive: true, displayModeBar: false, doubleClick: "reset" };
const BANDS = 6; // arms whose bands can lie over each other; of more, the selected one's is drawn
let charts = [];
const coarse = matchMedia("(pointer: coarse)");

/**
 * A figure with one chart. axes: {x, y} with `title` (and its unit), `log` and, where the axis is to end near them,
 * `extent`: [least, most], and `ticks`: the values that are marked; traces(): Plotly traces, made anew at
 * each drawing; shapes(): Plotly shapes. A point whose `customdata` is [cell, run] selects it when it is clicked.
 */
export function chart(title, axes, traces, { height = 260, shapes = () => [] } = {}) {
  const area = el("div", { class: "plot", style: `height:${height}px` });
  const figure = el(
    "figure",
    { class: "chart", role: "group", "aria-label": title },
    el("figcaption", {}, title),
    area,
  );
  const one = { area, axes, traces, shapes, started: false };
  charts.push(one);
  watcher.observe(area);
  return { figure, redraw: () => draw(one) };
}

// A chart is drawn when it comes near the screen: a page of twenty is then open at once.
const watcher = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      const one = charts.find((other) => other.area === entry.target);
      if (entry.isIntersecting && one) start(one);
    }
  },
  { rootMargin: "600px" },
);
addEventListener("beforeprint", () => present().forEach(start)); // on paper every chart is in sight

/** Those on the page; a panel that is filled anew leaves its old ones behind. */
function present() {
  for (const one of charts) if (!one.area.isConnected) watcher.unobserve(one.area);
  return (charts = charts.filter((one) => one.area.isConnected));
}

function start(one) {
  if (one.started) return;
  one.started = true;
  draw(one);
  one.area.on("plotly_click", (event) => {
    const [cell, run] = event.points[0].customdata ?? [];
    if (cell !== undefined) select(cell, run ?? null);
  });
}

function draw(one) {
  if (!one.started) return;
  const traces = one.traces();
  Plotly.react(one.area, traces, layout(one, traces), CONFIG);
}

function layout({ axes, shapes }, traces) {
  const axis = ({ title, log, ticks, extent: ends, room = 0.05 }, values) => ({
    title: { text: plain(title), font: { size: 12 }, standoff: 8 },
    type: log ? "log" : "linear",
    automargin: true,
    gridcolor: color("rule"),
    linecolor: color("muted"),
    zeroline: false,
    ticks: "outside",
    ticklen: 3,
    tickcolor: color("muted"),
    nticks: 6,
    ...(log ? logTicks(ends ?? extent(values, true)) : {}),
    ...(ends ? { range: padded(ends, log, room) } : {}),
    ...(ticks ? { tickvals: ticks, ticktext: ticks.map((tick) => short(tick)) } : {}),
  });
  return {
    margin: { l: 48, r: 8, t: 6, b: 38 },
    font: { family: FONT, size: 11, color: color("ink") },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    xaxis: {
      ...axis(
        axes.x,
        traces.flatMap((trace) => trace.x),
      ),
      showgrid: false,
    },
    yaxis: axis(
      axes.y,
      traces.flatMap((trace) => trace.y),
    ),
    shapes: shapes(),
    showlegend: false,
    hovermode: "closest",
    hoverlabel: {
      bgcolor: color("paper"),
      bordercolor: color("muted"),
      font: { color: color("ink"), size: 12 },
      align: "left",
    },
    dragmode: coarse.matches ? false : "zoom", // a finger scrolls the page
  };
}

/** 1, 2, 5 in a narrow range, whole decades in a wide one, and numbers that can be read in both. */
function logTicks(ends) {
  const decades = ends ? Math.log10(ends[1] / ends[0]) : 1;
  const tickformat = ends && ends[0] < 1e-3 ? ".0e" : "~g";
  if (decades < 0.5) return { tickformat };
  return { dtick: decades < 2.8 ? "D2" : Math.ceil(decades / 6), tickformat };
}

/** A little room beside the ends, so that marks are whole; on a log scale the ends are exponents. */
function padded([least, most], log, share) {
  const [from, to] = log ? [Math.log10(least), Math.log10(most)] : [least, most];
  const room = (to - from || Math.abs(to) || 1) * share;
  return [from - room, to + room];
}

/** Least and most of all values; on a log scale of those above 0. Null for none. */
export function extent(values, log) {
  const known = values.filter((value) => value !== null && (!log || value > 0));
  return known.length ? [Math.min(...known), Math.max(...known)] : null;
}

/** Text for Plotly, which would read <b> and its like as markup. */
export function plain(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Hover text: a head and lines, all of them text. */
export function hover(head, ...lines) {
  return [`<b>${plain(head)}</b>`, ...lines.map(plain)].join("<br>");
}

/**
 * Traces of arms over steps: each arm's mean as a line, the range of its seeds as a band; with an arm selected, its
 * seeds as thin lines. arms: [{cell, label, runs: [{id, seed, x, y}]}], y with null for NaN.
 */
export function armTraces(arms, unit, { band = true, log = false } = {}) {
  const drawn = arms.filter((arm) => arm.runs.length);
  const order = [...drawn].sort((a, b) => (emphasis(a.cell) === "on") - (emphasis(b.cell) === "on"));
  return order.flatMap((arm) => {
    const off = emphasis(arm.cell) === "off";
    const style = mark(arm.cell);
    const whole = merged(arm.runs);
    const traces = [];
    if (band && arm.runs.length > 1 && (selection.cell === arm.cell || (!off && drawn.length <= BANDS)))
      traces.push(...bandTraces(whole, style.color, log));
    if (arm.runs.length > 1 && selection.cell === arm.cell)
      for (const run of arm.runs) traces.push(seedTrace(arm, run, style, unit));
    traces.push({
      x: whole.x,
      y: positive(whole.middle, log),
      mode: whole.x.length <= 16 ? "lines+markers" : "lines",
      line: { color: off ? color("faint") : style.color, dash: style.dash, width: off ? 1 : 2 },
      marker: { symbol: style.symbol, size: 6, color: off ? color("faint") : style.color },
      hoverinfo: "text",
      hovertext: whole.x.map((x, i) =>
        hover(
          arm.label,
          `${short(whole.middle[i])} ${unit}`,
          `update ${short(x)}`,
          ...range(arm.runs.length, whole, i),
        ),
      ),
      customdata: whole.x.map(() => [arm.cell, arm.runs.length === 1 ? arm.runs[0].id : null]),
    });
    return traces;
  });
}

function range(seeds, whole, i) {
  return seeds > 1 ? [`${seeds} seeds: ${short(whole.low[i])} to ${short(whole.high[i])}`] : [];
}

function seedTrace(arm, run, style, unit) {
  const chosen = selection.run === run.id;
  return {
    x: run.x,
    y: run.y,
    mode: "lines",
    line: { color: style.color, width: chosen ? 3 : 0.8 },
    hoverinfo: "text",
    hovertext: run.x.map((x, i) =>
      hover(`${arm.label}, seed ${run.seed}`, `${short(run.y[i])} ${unit}`, `update ${short(x)}`),
    ),
    customdata: run.x.map(() => [arm.cell, run.id]),
  };
}

function bandTraces(whole, stroke, log) {
  const line = { width: 0, color: stroke };
  const common = { x: whole.x, mode: "lines", line, hoverinfo: "skip" };
  return [
    { ...common, y: positive(whole.low, log) },
    { ...common, y: positive(whole.high, log), fill: "tonexty", fillcolor: `${stroke}2b` },
  ];
}

/** On a log scale what is not above 0 is a gap. */
function positive(values, log) {
  return log ? values.map((value) => (value > 0 ? value : null)) : values;
}

/** Mean, lowest and highest over runs, at the steps that all of them have. */
export function merged(runs) {
  if (runs.length === 1) return { x: runs[0].x, middle: runs[0].y, low: runs[0].y, high: runs[0].y };
  const lines = runs.map((run) => new Map(run.x.map((x, i) => [x, run.y[i]])));
  const x = runs[0].x.filter((step) => lines.every((line) => line.has(step)));
  const at = x.map((step) => lines.map((line) => line.get(step)));
  const of = (fold) => at.map((values) => (values.includes(null) ? null : fold(values)));
  return {
    x,
    middle: of((values) => values.reduce((a, b) => a + b, 0) / values.length),
    low: of((values) => Math.min(...values)),
    high: of((values) => Math.max(...values)),
  };
}

/** Draw all charts again. */
export function redrawCharts() {
  present().forEach(draw);
}
onTheme(redrawCharts);
