// The explorer's curves: of the runs that the filter lets through, by group.

import { choice, el, panel } from "./dom.js";
import { keep, remembered } from "./state.js";
import { armTraces, chart } from "./chart.js";
import { lineOf, missing, scaleButtons, stepExtent } from "./curves.js";
import { valueOf } from "./query.js";

const CHARTS = {
  "train/loss/nll": "Training loss, dropout on",
  "dev/nll": "Dev loss, teacher-forced",
  "dev/prefix_nll": "Dev loss from the prefix",
};
const NATS = "nats a token";

export function chartsPanel(page, view) {
  const scales = { x: false, y: true, band: true };
  const metrics = Object.keys(page.curves.lines).sort();
  let metric = remembered("metric", "train/grad/norm");
  if (!metrics.includes(metric)) [metric] = metrics;
  const grid = el("div", { class: "grid" });
  let drawn = [];

  function fill() {
    const wanted = [...Object.entries(CHARTS), ...(metric && !(metric in CHARTS) ? [[metric, metric]] : [])];
    drawn = wanted.map(([name, text]) => one(name, text));
    grid.replaceChildren(...drawn.map((chart) => chart.figure));
  }
  function one(name, text) {
    const arms = view.groups.map((group) => ({
      cell: group.place,
      label: group.label,
      runs: group.runs.flatMap((run) => {
        const line = lineOf(page.curves, name, page.runs.indexOf(run));
        return line ? [{ id: run.id, seed: valueOf(page, run, "seed"), ...line }] : [];
      }),
    }));
    if (arms.every((arm) => !arm.runs.length))
      return { figure: missing(text, `None of these runs has ${name} yet.`), redraw: () => {} };
    const axes = {
      x: { title: "update", log: false },
      y: { title: name in CHARTS ? NATS : name, log: false },
    };
    return chart(text, axes, () => {
      axes.x.log = scales.x;
      axes.y.log = scales.y;
      axes.x.extent = stepExtent(arms, scales.x);
      return armTraces(arms, name in CHARTS ? NATS : "", { band: scales.band, log: scales.y });
    });
  }
  const buttons = scaleButtons("runs", scales, () => drawn.forEach((chart) => chart.redraw()));
  if (metrics.length)
    buttons.append(
      choice(
        "and",
        metrics.map((name) => [name, name]),
        metric,
        (value) => (keep("metric", (metric = value)), fill()),
      ),
    );
  const reading =
    "Of the runs in the table, by group (by arm where none is chosen): the mean at the updates that all of a group's runs have, and the range of its runs.";
  return { element: panel("curves", "Curves", reading, buttons, grid), fill };
}
