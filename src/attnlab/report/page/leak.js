// The leak plot: what the teacher-forced loss promises, against what the model can do on its own.

import { el, panel } from "./dom.js";
import { short } from "./numbers.js";
import { emphasis, selection } from "./state.js";
import { color, mark } from "./marks.js";
import { chart, extent, hover, plain } from "./chart.js";
import { missing, scaleButtons } from "./curves.js";

const TEACHER = "final/dev/nll";
const PREFIX = "final/dev/prefix_nll";
const NAMED = 8; // arms whose names can stand in a chart together

export function leakPanel(page) {
  const bleu = page.columns.find((column) => column.metric.endsWith("/bleu"));
  const shown = (metric) => page.columns.some((column) => column.metric === metric);
  if (!bleu || !shown(TEACHER) || !shown(PREFIX)) return []; // the study has other columns: study.columns
  const scales = { x: true };
  const charts = [];
  const buttons = scaleButtons("leak", scales, () => charts.forEach((one) => one.redraw()), {
    x: "log losses",
  });
  charts.push(
    scatter(
      page,
      PREFIX,
      "Dev loss from the prefix (nats a token)",
      "Loss from the prefix against teacher-forced loss",
      scales,
      true,
    ),
    scatter(
      page,
      bleu.metric,
      `${bleu.title}, test (0 to 100)`,
      "BLEU against teacher-forced loss",
      scales,
      false,
    ),
  );
  const reading =
    "Small marks are runs, large ones means of arms. Left: on the line both losses are equal (the prefix loss is of the first dev sentences alone); far above it the model was shown the future. Right: an arm at the bottom left has a fine loss and translates nothing.";
  return panel(
    "leak",
    "Leak plot",
    reading,
    buttons,
    el("div", { class: "grid wide" }, ...charts.map((one) => one.figure)),
  );
}

function scatter(page, metric, yTitle, title, scales, diagonal) {
  const points = page.runs.filter(
    (run) => typeof run.values[TEACHER] === "number" && typeof run.values[metric] === "number",
  );
  if (!points.length)
    return { figure: missing(title, `No finished run has both ${TEACHER} and ${metric}.`), redraw: () => {} };
  const axes = {
    x: { title: "Dev loss, teacher-forced (nats a token)", log: true, room: 0.1 },
    y: { title: yTitle, log: false, room: 0.1 },
  };
  const above = namesAbove(page, points, metric);
  const options = { height: 340, shapes: () => (diagonal ? [equalLine(points, metric)] : []) };
  return chart(
    title,
    axes,
    () => {
      axes.x.log = scales.x;
      axes.y.log = scales.x && diagonal; // BLEU may be 0
      const losses = points.map((run) => run.values[TEACHER]);
      const values = points.map((run) => run.values[metric]);
      axes.x.extent = extent(losses, axes.x.log);
      axes.y.extent = extent(diagonal ? [...values, ...losses] : values, axes.y.log);
      return page.cells.flatMap((cell, place) =>
        armPoints(
          page,
          cell,
          place,
          points.filter((run) => run.cell === place),
          metric,
          above,
        ),
      );
    },
    options,
  );
}

function armPoints(page, cell, place, runs, metric, above) {
  if (!runs.length) return [];
  const style = mark(place);
  const fill = (run) => (emphasis(place, run) === "off" ? color("faint") : style.color);
  const named = page.cells.length <= NAMED || selection.cell === place;
  const average = (name) => runs.reduce((sum, run) => sum + run.values[name], 0) / runs.length;
  const several = runs.length > 1;
  const small = {
    x: runs.map((run) => run.values[TEACHER]),
    y: runs.map((run) => run.values[metric]),
    mode: "markers",
    marker: {
      symbol: style.symbol,
      size: runs.map((run) => (several ? (selection.run === run.id ? 10 : 5) : 10)),
      color: runs.map((run) => fill(run.id)),
      opacity: several ? 0.7 : 1,
    },
    hoverinfo: "text",
    hovertext: runs.map((run) =>
      hover(
        `${cell.name}, seed ${run.seed}`,
        `teacher-forced ${short(run.values[TEACHER])} nats`,
        `${metric} ${short(run.values[metric])}`,
      ),
    ),
    customdata: runs.map((run) => [place, several ? run.id : null]),
  };
  const large = {
    x: [average(TEACHER)],
    y: [average(metric)],
    mode: named ? "markers+text" : "markers",
    text: [plain(cell.name)],
    textposition: above(place) ? "top center" : "bottom center",
    textfont: { size: 11, color: fill(null) },
    cliponaxis: false,
    marker: {
      symbol: style.symbol,
      size: several ? 11 : 10,
      color: fill(null),
      line: { width: 1, color: color("paper") },
    },
    hoverinfo: "text",
    hovertext: [
      hover(
        `${cell.name}, mean of ${runs.length}`,
        `teacher-forced ${short(average(TEACHER))} nats`,
        `${metric} ${short(average(metric))}`,
      ),
    ],
    customdata: [[place, null]],
  };
  return [small, large];
}

/**
 * Whether an arm's name stands above its mark: where it lies higher than its neighbour on the x axis, so that the two
 * names part; of neighbours at one height every other one.
 */
function namesAbove(page, points, metric) {
  const arms = page.cells
    .map((_, place) => ({ place, run: points.find((run) => run.cell === place) }))
    .filter((arm) => arm.run)
    .map(({ place, run }) => ({
      place,
      x: Math.log(Math.max(run.values[TEACHER], 1e-9)),
      y: run.values[metric],
    }))
    .sort((a, b) => a.x - b.x);
  const found = new Map();
  arms.forEach((arm, i) => {
    const beside = [arms[i - 1], arms[i + 1]]
      .filter(Boolean)
      .sort((a, b) => Math.abs(a.x - arm.x) - Math.abs(b.x - arm.x))[0];
    found.set(arm.place, !beside || beside.y === arm.y ? i % 2 === 0 : arm.y > beside.y);
  });
  return (place) => found.get(place) ?? true;
}

function equalLine(points, metric) {
  const known = points
    .flatMap((run) => [run.values[TEACHER], run.values[metric]])
    .filter((value) => value > 0);
  const [least, most] = [Math.min(...known), Math.max(...known)];
  return {
    type: "path",
    path: diagonalPath(least, most),
    line: { color: color("muted"), width: 1, dash: "dot" },
    layer: "below",
  };
}

/** y = x in data coordinates, by enough points to bend with a log axis. */
function diagonalPath(least, most) {
  const steps = Array.from({ length: 41 }, (_, i) => least * (most / least) ** (i / 40));
  return steps.map((value, i) => `${i ? "L" : "M"}${value},${value}`).join(" ");
}
