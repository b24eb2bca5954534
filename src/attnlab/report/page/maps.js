// The attention of one sentence, every arm side by side.

import { choice, el, nothing, panel, quoted } from "./dom.js";
import { emphasis, keep, onSelection, remembered, select } from "./state.js";
import { sample } from "./marks.js";
import { heat } from "./heat.js";

const LEVELS = 254; // a byte b is the weight b / 254; 255 is no number

export function mapsPanel(page) {
  const cells = page.maps.cells;
  const names = Object.values(cells).flatMap((one) => Object.keys(one.weights));
  if (!names.length) return panel("maps", "Attention", null, nothing(why(page)));
  const parts = names.map((name) => name.match(/^(\w+)\/layer(\d+)\/head(\d+)$/)).filter(Boolean);
  const known = (index) => [...new Set(parts.map((part) => part[index]))];
  const chosen = {
    site: pick("site", known(1), "decoder"),
    layer: pick("layer", known(2), "1"),
    head: pick("head", known(3), "1"),
  };
  const grid = el("div", { class: "cards maps" });

  function fill() {
    grid.replaceChildren(
      ...page.cells.map((cell, place) =>
        card(page, cell, place, `${chosen.site}/layer${chosen.layer}/head${chosen.head}`),
      ),
    );
  }
  const control = (key, values) =>
    choice(
      key,
      values.map((value) => [value, value]),
      chosen[key],
      (value) => {
        chosen[key] = value;
        keep(`map-${key}`, value);
        fill();
      },
    );
  const controls = el(
    "div",
    { class: "controls" },
    control("site", known(1)),
    control("layer", known(2)),
    control("head", known(3)),
  );
  onSelection(() => {
    for (const box of grid.children) box.className = `card ${emphasis(Number(box.dataset.cell))}`;
  });
  fill();
  const reading =
    "One dev sentence, teacher-forced, after training: rows are queries, columns keys. The stronger a square, the larger the weight (its square root, on one scale for all maps). In the decoder the line separates what a correct mask allows (left) from the future. Of each arm its first finished seed.";
  return panel("maps", "Attention", reading, controls, grid);
}

function pick(key, values, otherwise) {
  const before = remembered(`map-${key}`, otherwise);
  return values.includes(before) ? before : values[0];
}

function why(page) {
  const reasons = [...new Set(Object.values(page.maps.missing))];
  return `No run has attention maps: ${reasons.join("; ") || "there are no runs"}.`;
}

function card(page, cell, place, name) {
  const maps = page.maps.cells[place];
  const body = !maps
    ? nothing(page.maps.missing[place] ?? cell.state)
    : maps.weights[name]
      ? picture(maps, name, cell.name)
      : nothing(`This arm has no ${name}.`);
  const head = el(
    "button",
    { type: "button", class: "link", onclick: () => select(place) },
    sample(place),
    quoted(cell.name),
  );
  return el("div", { class: `card ${emphasis(place)}`, "data-cell": place }, head, body);
}

function picture({ src, tgt, weights }, name, label) {
  const site = name.split("/")[0];
  const queries = site === "encoder" ? src : tgt;
  const keys = site === "decoder" ? tgt : src;
  const bytes = Uint8Array.from(atob(weights[name]), (letter) => letter.charCodeAt(0));
  const at = (row, column) => bytes[row * keys.length + column];
  const side = Math.max(7, Math.min(15, Math.floor(216 / Math.max(queries.length, keys.length))));
  const stairs =
    site === "decoder"
      ? queries.flatMap((_, i) => [
          [i, i + 1],
          [i + 1, i + 1],
        ])
      : [];
  return heat({
    rows: { count: queries.length, labels: queries.map(token) },
    columns: { count: keys.length, labels: keys.map(token) },
    size: { width: side, height: side },
    shade: (row, column) => (at(row, column) > LEVELS ? null : Math.sqrt(at(row, column) / LEVELS)),
    read: (row, column) =>
      `${token(queries[row])} → ${token(keys[column])}: ${at(row, column) > LEVELS ? "not a number" : (at(row, column) / LEVELS).toFixed(2)}`,
    line: stairs,
    label: `Attention of ${label}, ${name}`,
  });
}

/** A piece as it reads: SentencePiece writes the space before a word as ▁. */
function token(piece) {
  return piece.replace(/^▁(?=.)/, "");
}
