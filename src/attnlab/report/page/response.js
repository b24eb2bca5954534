// A study over the values of a factor: what each arm's results do along it.

import { el, panel } from "./dom.js";
import { short } from "./numbers.js";
import { emphasis, selection } from "./state.js";
import { color, mark } from "./marks.js";
import { chart, extent, hover } from "./chart.js";
import { missing } from "./curves.js";

const FEWEST = 3; // values: two are a difference, which the table shows
const UNITS = [
  ["nll", "nats a token"],
  ["bleu", "0 to 100"],
]; // of a metric by the end of its name; others have their own, see docs/metrics.md
const WIDE = 5; // from this ratio of largest to smallest on the axis is logarithmic

/** A panel for each factor that the study has at several numbers; none for a study without one. */
export function responsePanels(page) {
  const columns = page.columns.map((column, i) => ({ ...column, i })).filter((column) => column.compared);
  return factorsOf(page).map(({ key, places }) => {
    const charts = columns.map((column) => along(page, key, places, column));
    const reading =
      "Each mark is a row of the table, its bar the 95% interval over seeds; a line joins what differs in this factor alone.";
    const grid = el("div", { class: "grid" }, ...charts.map((one) => one.figure));
    return panel(`along-${key}`, `Along ${key.split(".").at(-1)}`, reading, grid);
  });
}

/** [{key, places}]: each setting with its cells' [place, value]. */
function factorsOf(page) {
  const found = new Map();
  page.cells.forEach((cell, place) => {
    for (const item of cell.settings) {
      const [key, text] = item.split("=");
      if (text === "" || Number.isNaN(Number(text))) continue;
      if (!found.has(key)) found.set(key, []);
      found.get(key).push([place, Number(text)]);
    }
  });
  return [...found]
    .map(([key, places]) => ({ key, places }))
    .filter(({ places }) => new Set(places.map(([, value]) => value)).size >= FEWEST);
}

function along(page, key, places, column) {
  const values = places.map(([, value]) => value);
  const sign = values.every((value) => value < 0) ? -1 : 1; // a fill of -10,000 has no place on a plain axis
  const sizes = values.map((value) => sign * value);
  const log = Math.min(...sizes) > 0 && Math.max(...sizes) >= WIDE * Math.min(...sizes);
  const unit = UNITS.find(([end]) => column.metric.endsWith(end));
  if (places.every(([place]) => page.rows[place][column.i].number === null))
    return { figure: missing(column.title, `No row of the table has ${column.metric}.`) };
  const ticks = [...new Set(sizes)].sort((a, b) => a - b);
  const axes = {
    x: { title: `${sign < 0 ? "−" : ""}${key}`, log, ticks, extent: extent(sizes, log) },
    y: { title: `${column.title}${unit ? ` (${unit[1]})` : ""}`, log: false },
  };
  return chart(column.title, axes, () =>
    lines(page, key, places).map((line) => trace(page, line, column, sign)),
  );
}

/** Cells that differ in the factor alone, by its values. */
function lines(page, key, places) {
  const found = new Map();
  for (const [place, value] of places) {
    const { arm, settings } = page.cells[place];
    const name = [arm, ...settings.filter((item) => !item.startsWith(`${key}=`))].join(" ");
    if (!found.has(name)) found.set(name, []);
    found.get(name).push([place, value]);
  }
  return [...found.values()].map((line) => line.sort((a, b) => a[1] - b[1]));
}

function trace(page, line, column, sign) {
  const numbers = line.map(([place]) => page.rows[place][column.i].number);
  const style = mark(line[0][0]);
  const off = line.every(([place]) => emphasis(place) === "off");
  const stroke = off ? color("faint") : style.color;
  const half = (end) => numbers.map((one) => (one?.[end] == null ? 0 : Math.abs(one[end] - one.value)));
  return {
    x: line.map(([, value]) => sign * value),
    y: numbers.map((one) => one?.value ?? null),
    mode: "lines+markers",
    line: { color: stroke, width: off ? 1 : 1.5, dash: style.dash },
    marker: {
      symbol: style.symbol,
      size: line.map(([place]) => (selection.cell === place ? 12 : 7)),
      color: stroke,
    },
    error_y: {
      type: "data",
      symmetric: false,
      array: half("high"),
      arrayminus: half("low"),
      color: stroke,
      thickness: 1.2,
      width: 0,
    },
    hoverinfo: "text",
    hovertext: line.map(([place], i) =>
      hover(
        page.cells[place].label,
        `${column.title} ${short(numbers[i]?.value)} ${numbers[i]?.interval ?? ""}`,
      ),
    ),
    customdata: line.map(([place]) => [place, null]),
  };
}
