// Parallel coordinates: every run as a line through its factors and its results.

import { el, nothing, panel, svg } from "./dom.js";
import { short } from "./numbers.js";
import { emphasis, onSelection, select, selection } from "./state.js";
import { dasharray, mark, onTheme } from "./marks.js";

const HEIGHT = 320;
const [TOP, BOTTOM] = [44, 292]; // of the axes; a run without a value passes below
const SPACE = 118; // pixels between axes, at least
const FEW = 10; // values that get a tick each

export function parallelPanel(page) {
  const runs = page.runs.filter((run) => run.state === "done" || run.state === "diverged");
  if (!runs.length)
    return panel("factors", "Factors and results", null, nothing("No run has come to an end."));
  const axes = allAxes(page, runs);
  const host = el("div", {
    class: "scroll parallel",
    tabindex: 0,
    role: "application",
    "aria-label": "Parallel coordinates. Left and right arrow keys go from run to run, Escape lets go.",
  });
  const out = el("output", { class: "readout" }, "\u00a0");
  const draw = () =>
    host.replaceChildren(
      picture(page, runs, axes, Math.max(host.clientWidth, 140 + SPACE * (axes.length - 1)), tell),
    );
  const tell = (run) => (out.textContent = run ? described(page, run, axes) : "\u00a0");
  host.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move) return;
    event.preventDefault();
    const at = runs.findIndex((run) => run.id === selection.run);
    const next = runs[(Math.max(at, move > 0 ? -1 : 0) + move + runs.length) % runs.length];
    select(next.cell, next.id);
    tell(next);
  });
  new ResizeObserver(draw).observe(host);
  onSelection(draw);
  onTheme(draw);
  const more = page.left_out_axes.length
    ? ` Not drawn, for want of room: ${page.left_out_axes.join(", ")}.`
    : "";
  const reading = `Each line is a run. Factors stand left, results right; a line that passes below an axis has no value there.${more}`;
  return panel("factors", "Factors and results", reading, host, out);
}

function allAxes(page, runs) {
  const label = (run) => page.cells[run.cell];
  const factor = (title, value) => ordinal(title, value, runs);
  const ends = page.axes.map((key) => key.split(".").at(-1));
  const named = (key, i) => (ends.filter((end) => end === ends[i]).length > 1 ? key : ends[i]); // d_k, not model.d_k
  const settings = page.axes.map((key, i) => factor(named(key, i), (run) => run.factors[key]));
  const seeds = new Set(runs.map((run) => run.seed)).size > 1 ? [factor("seed", (run) => run.seed)] : [];
  const results = page.columns.filter((column) =>
    runs.some((run) => typeof run.values[column.metric] === "number"),
  );
  return [
    factor("arm", (run) => label(run).arm),
    ...settings,
    ...seeds,
    ...results.map((column) => numeric(column.title, (run) => run.values[column.metric], runs)),
  ];
}

/** Values side by side at equal distances: numbers in their order, texts as they come. */
function ordinal(title, value, runs) {
  const known = [...new Set(runs.map(value))];
  if (known.every((one) => typeof one === "number")) {
    if (known.length > FEW) return numeric(title, value, runs);
    known.sort((a, b) => a - b);
  }
  const y = (one) =>
    known.length > 1
      ? BOTTOM - ((BOTTOM - TOP) * known.indexOf(one)) / (known.length - 1)
      : (TOP + BOTTOM) / 2;
  const text = (one) => (one === null ? "null" : short(one));
  return { title, value, y, text, ticks: known.map((one) => [y(one), text(one)]), spread: 10 };
}

function numeric(title, value, runs) {
  const known = runs.map(value).filter((one) => typeof one === "number");
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const y = (one) =>
    most > least ? BOTTOM - ((BOTTOM - TOP) * (one - least)) / (most - least) : (TOP + BOTTOM) / 2;
  const ticks = most > least ? [least, (least + most) / 2, most] : [least];
  return { title, value, y, text: short, ticks: ticks.map((one) => [y(one), short(one)]), spread: 0 };
}

function picture(page, runs, axes, width, tell) {
  const left = 20;
  const x = (i) => left + (axes.length > 1 ? (i * (width - left - 100)) / (axes.length - 1) : 0);
  const missing = axes.map((axis) =>
    runs.some((run) => typeof (axis.value(run) ?? undefined) === "undefined"),
  );
  const order = [...runs].sort(
    (a, b) => (emphasis(a.cell, a.id) === "on") - (emphasis(b.cell, b.id) === "on"),
  );
  return svg(
    "svg",
    { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true" },
    ...order.map((run) => runLine(page, run, axes, x, tell)),
    ...axes.map((axis, i) => axisMarks(axis, x(i), missing[i])),
  );
}

function axisMarks(axis, x, missing) {
  return svg(
    "g",
    { class: "axis" },
    svg("line", { x1: x, x2: x, y1: TOP, y2: BOTTOM }),
    svg("text", { class: "title", x: x - 4, y: 16 }, clipped(axis.title, 17)),
    ...axis.ticks.map(([y, text]) => svg("text", { x: x + 6, y: y + 3.5 }, clipped(text, 18))),
    missing ? svg("text", { class: "none", x: x + 6, y: BOTTOM + 20 }, "no value") : null,
  );
}

function runLine(page, run, axes, x, tell) {
  const style = mark(run.cell);
  const shift = page.cells.length > 1 ? run.cell / (page.cells.length - 1) - 0.5 : 0; // lines on one tick lie side by side
  const points = axes.map((axis, i) => {
    const value = axis.value(run);
    return [
      x(i),
      value === undefined || (value === null && axis.spread === 0)
        ? BOTTOM + 16
        : axis.y(value) + shift * axis.spread,
    ];
  });
  const path = points.map(([a, b], i) => `${i ? "L" : "M"}${a.toFixed(1)},${b.toFixed(1)}`).join("");
  const line = svg("path", {
    class: `run ${emphasis(run.cell, run.id)}`,
    d: path,
    stroke: style.color,
    "stroke-dasharray": dasharray(style.dash),
    "data-run": run.id,
  });
  const target = svg("path", {
    class: "target",
    d: path,
    onclick: () => select(run.cell, run.id),
    onpointerenter: () => (line.classList.add("near"), tell(run)),
    onpointerleave: () => (line.classList.remove("near"), tell(null)),
  });
  return svg("g", {}, line, target);
}

function described(page, run, axes) {
  const parts = axes.map((axis) => `${axis.title} ${axis.text(axis.value(run))}`);
  return `${page.cells[run.cell].label}, run ${run.id}: ${parts.join(" · ")}`;
}

function clipped(text, length) {
  const letters = [...String(text)];
  return letters.length > length ? `${letters.slice(0, length - 1).join("")}…` : String(text);
}
