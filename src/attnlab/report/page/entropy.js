// How spread attention is, over training: by site for all arms, by head for each.

import { el, nothing, panel, quoted } from "./dom.js";
import { short } from "./numbers.js";
import { emphasis, onSelection, select } from "./state.js";
import { sample } from "./marks.js";
import { curveChart, scaleButtons } from "./curves.js";
import { heat } from "./heat.js";

const SITES = {
  encoder: "Encoder self-attention",
  decoder: "Decoder self-attention",
  cross: "Cross-attention",
};

export function entropyPanel(page) {
  const scales = { x: false, y: false, band: true };
  const charts = [];
  const buttons = scaleButtons("entropy", scales, () => charts.forEach((one) => one.redraw()));
  for (const [site, title] of Object.entries(SITES))
    charts.push(curveChart(page, `probe/entropy/${site}`, title, "entropy (nats)", scales));
  const reading =
    "Entropy of the weights on allowed keys, mean over queries that have a choice. An arm with the inverted mask has none: it puts nothing on allowed keys.";
  return panel(
    "entropy",
    "Entropy",
    reading,
    buttons,
    el("div", { class: "grid" }, ...charts.map((one) => one.figure)),
    ...strips(page),
  );
}

function strips(page) {
  const { heads } = page.heads;
  if (!heads.length)
    return [nothing("No run has entropies by head: probes were off (measure.enabled=false).")];
  const title = el("h3", {}, "Every head");
  const reading = el(
    "p",
    { class: "reading" },
    "Rows are heads, by layer within encoder, decoder and cross-attention; columns are updates. Faint is spread over all keys, strong is one key (entropy / log of the allowed keys, mean over seeds); a stroke is no value.",
  );
  const cards = page.cells.map((cell, place) => card(page, cell, place));
  return [title, reading, el("div", { class: "cards strips" }, ...cards)];
}

function card(page, cell, place) {
  const steps = page.heads.steps[place];
  const body = steps?.length
    ? picture(page.heads, place)
    : nothing(cell.done ? "No entropies by head." : "No seed is done.");
  const box = el(
    "div",
    { class: "card", "data-cell": place },
    el(
      "button",
      { type: "button", class: "link", onclick: () => select(place) },
      sample(place),
      quoted(cell.name),
    ),
    body,
  );
  onSelection(() => (box.className = `card ${emphasis(place)}`));
  return box;
}

function picture({ heads, steps, values }, place) {
  const rows = values[place];
  const columns = steps[place];
  const first = heads.map(([site], i) => (i === 0 || heads[i - 1][0] !== site ? site : ""));
  const gaps = heads.flatMap(([site, layer], i) =>
    i && (heads[i - 1][0] !== site || heads[i - 1][1] !== layer) ? [i] : [],
  );
  return heat({
    rows: { count: heads.length, labels: first, gaps },
    columns: { count: columns.length, labels: [] },
    size: {
      width: Math.max(3, Math.min(16, Math.floor(150 / columns.length))),
      height: heads.length > 60 ? 3 : 5,
    },
    shade: (row, column) => (rows[row][column] === null ? null : 1 - rows[row][column] / 1000),
    read: (row, column) => {
      const [site, layer, head] = heads[row];
      const value = rows[row][column];
      return `${site}, layer ${layer}, head ${head}, update ${short(columns[column])}: ${value === null ? "no value" : (value / 1000).toFixed(3)}`;
    },
    label: "Normalized entropy by head and update",
  });
}
