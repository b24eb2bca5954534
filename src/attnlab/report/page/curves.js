// Curves of training, arm by arm.

import { el, nothing, panel, toggle } from "./dom.js";
import { keep, remembered } from "./state.js";
import { armTraces, chart, extent } from "./chart.js";

/** One run's curve of a metric as {x, y}, or null. `place` is the run's in the page's list. */
export function lineOf(curves, metric, place) {
  const found = curves.lines[metric]?.[place];
  return found ? { x: curves.grids[found[0]], y: found[1] } : null;
}

/** What `armTraces` draws of a metric: every arm with those of its runs that have it. */
export function armsOf(page, metric) {
  return page.cells.map((cell, place) => ({
    cell: place,
    label: cell.name,
    runs: page.runs.flatMap((run, index) => {
      const line = run.cell === place ? lineOf(page.curves, metric, index) : null;
      return line ? [{ id: run.id, seed: run.seed, ...line }] : [];
    }),
  }));
}

/** A chart of one metric over training; in its place, why there is none. */
export function curveChart(page, metric, title, unit, scales) {
  const arms = armsOf(page, metric);
  if (arms.every((arm) => arm.runs.length === 0))
    return { figure: missing(title, `No run has ${metric}.`), redraw: () => {} };
  const axes = { x: { title: "update", log: false }, y: { title: unit, log: false } };
  const one = chart(title, axes, () => {
    axes.x.log = scales.x;
    axes.y.log = scales.y;
    axes.x.extent = stepExtent(arms, scales.x);
    return armTraces(arms, unit, { band: scales.band, log: scales.y });
  });
  return one;
}

/** From the first update to the last, of all arms. */
export function stepExtent(arms, log) {
  return extent(
    arms.flatMap((arm) => arm.runs.flatMap((run) => run.x)),
    log,
  );
}

export function missing(title, why) {
  return el("figure", { class: "chart empty" }, el("figcaption", {}, title), nothing(why));
}

/** Buttons for the scales of a panel's charts; they are kept in the address under `id`. */
export function scaleButtons(id, scales, redraw, texts = {}) {
  for (const key of Object.keys(scales))
    scales[key] = remembered(`${id}-${key}`, scales[key] ? "1" : "0") === "1";
  const names = { x: "log updates", y: "log values", band: "seed bands", ...texts };
  const buttons = Object.keys(scales).map((key) =>
    toggle(names[key], scales[key], (on) => {
      scales[key] = on;
      keep(`${id}-${key}`, on ? "1" : "0");
      redraw();
    }),
  );
  return el("div", { class: "controls" }, ...buttons);
}

export function curvesPanel(page) {
  const scales = { x: false, y: true, band: true };
  const charts = [];
  const buttons = scaleButtons("curves", scales, () => charts.forEach((one) => one.redraw()));
  charts.push(
    curveChart(page, "train/loss/nll", "Training loss, dropout on", "nats a token", scales),
    curveChart(page, "dev/nll", "Dev loss, teacher-forced: a leak looks good here", "nats a token", scales),
    curveChart(page, "dev/prefix_nll", "Dev loss from each token's own prefix", "nats a token", scales),
  );
  const reading =
    "Mean over seeds; the band runs from the lowest seed to the highest (with many arms, of the selected one). Click a line, or an arm above, to follow it through the page.";
  return panel(
    "curves",
    "Training",
    reading,
    buttons,
    el("div", { class: "grid" }, ...charts.map((one) => one.figure)),
  );
}
