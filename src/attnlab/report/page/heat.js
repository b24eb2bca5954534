// A grid of shaded cells on a canvas, with a cursor for the mouse and the arrow keys and a line that reads it out.

import { el } from "./dom.js";
import { color, onTheme } from "./marks.js";

const LABEL = 10; // pixels of its letters
const FONT = `${LABEL}px system-ui, sans-serif`;

/**
 * rows, columns: {count, labels, gaps}: `labels[i]` is written beside line i ("" for none), `gaps` are the lines before
 * which some space is left. size: width and height of a cell. shade(row, column): 0 to 1, or null for no value.
 * read(row, column): what the line below says. line: [[row, column], ...], corners of a path drawn over the cells.
 */
export function heat({ rows, columns, size, shade, read, line = [], label }) {
  const left = gutter(rows.labels);
  const top = columns.labels.some(Boolean) ? gutter(columns.labels) : 2;
  const at = { row: places(rows, size.height, top), column: places(columns, size.width, left) };
  const width = at.column[columns.count - 1] + size.width + 1;
  const height = at.row[rows.count - 1] + size.height + 1;
  const canvas = el("canvas", {
    tabindex: 0,
    role: "img",
    "aria-label": `${label}. Arrow keys read it cell by cell.`,
  });
  const out = el("output", { class: "readout" }, "\u00a0");
  let cursor = null;

  function draw() {
    const scale = devicePixelRatio || 1;
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.style.width = `${width}px`;
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    cells(context);
    labels(context);
    if (line.length) path(context);
    if (cursor) frame(context);
  }

  function cells(context) {
    const ink = color("ink"); // asked for once: it makes the browser compute the page's style
    for (let row = 0; row < rows.count; row += 1) {
      for (let column = 0; column < columns.count; column += 1) {
        const value = shade(row, column);
        const [x, y] = [at.column[column], at.row[row]];
        if (value === null) absent(context, x, y);
        else {
          context.globalAlpha = value;
          context.fillStyle = ink;
          context.fillRect(x, y, size.width, size.height);
          context.globalAlpha = 1;
        }
      }
    }
    context.strokeStyle = color("rule");
    context.strokeRect(left - 0.5, top - 0.5, width - left, height - top);
  }

  function absent(context, x, y) {
    context.strokeStyle = color("muted");
    context.lineWidth = 0.5;
    context.beginPath();
    context.moveTo(x + 1, y + size.height - 1);
    context.lineTo(x + size.width - 1, y + 1);
    context.stroke();
    context.lineWidth = 1;
  }

  function labels(context) {
    context.fillStyle = color("muted");
    context.font = FONT;
    context.textBaseline = "middle";
    context.textAlign = "right";
    rows.labels.forEach(
      (text, i) => text && context.fillText(shortened(text), left - 4, at.row[i] + size.height / 2),
    );
    context.textAlign = "left";
    columns.labels.forEach((text, i) => {
      if (!text) return;
      context.save();
      context.translate(at.column[i] + size.width / 2, top - 4);
      context.rotate(-Math.PI / 2);
      context.fillText(shortened(text), 0, 0);
      context.restore();
    });
  }

  function path(context) {
    context.strokeStyle = color("mark");
    context.lineWidth = 1.5;
    context.beginPath();
    line.forEach(([row, column], i) => {
      const x = column < columns.count ? at.column[column] : width - 1;
      const y = row < rows.count ? at.row[row] : height - 1;
      if (i) context.lineTo(x, y);
      else context.moveTo(x, y);
    });
    context.stroke();
    context.lineWidth = 1;
  }

  function frame(context) {
    context.strokeStyle = color("mark");
    context.lineWidth = 2;
    context.strokeRect(at.column[cursor.column] - 1, at.row[cursor.row] - 1, size.width + 2, size.height + 2);
    context.lineWidth = 1;
  }

  function point(row, column) {
    cursor = row === null ? null : { row, column };
    out.textContent = cursor ? read(row, column) : "\u00a0";
    draw();
  }

  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const zoom = width / box.width; // the page may show it smaller
    const [x, y] = [(event.clientX - box.left) * zoom, (event.clientY - box.top) * zoom];
    if (x < left || y < top) point(null);
    else point(index(at.row, y), index(at.column, x));
  });
  canvas.addEventListener("pointerleave", () => point(null));
  canvas.addEventListener("blur", () => point(null));
  canvas.addEventListener("keydown", (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    const from = cursor ?? { row: -move[0], column: -move[1] };
    point(clamp(from.row + move[0], rows.count), clamp(from.column + move[1], columns.count));
  });
  onTheme(draw);
  draw();
  return el("div", { class: "heat" }, canvas, out);
}

function places({ count, gaps = [] }, size, start) {
  const found = [];
  let position = start;
  for (let i = 0; i < count; i += 1) {
    if (gaps.includes(i)) position += 3;
    found.push(position);
    position += size;
  }
  return found;
}

function index(starts, position) {
  let found = 0;
  starts.forEach((start, i) => {
    if (start <= position) found = i;
  });
  return found;
}

function clamp(value, count) {
  return Math.max(0, Math.min(count - 1, value));
}

const measure = document.createElement("canvas").getContext("2d");

function gutter(labels) {
  measure.font = FONT;
  return Math.ceil(Math.max(0, ...labels.map((text) => measure.measureText(shortened(text)).width))) + 8;
}

function shortened(text) {
  const letters = [...text];
  return letters.length > 14 ? `${letters.slice(0, 13).join("")}…` : text;
}
