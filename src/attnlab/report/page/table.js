// A table that sorts by any column, from the keyboard as well.

import { el } from "./dom.js";

/**
 * columns: [{key, title, about, number, value(row), cell(row)}]; `value` is what is sorted by (null sorts last), `cell`
 * the nodes that are shown. sort: {key, down}, or null for the order given; onsort hears of a change. Each row element
 * gets `attributes(row)`.
 */
export function sortable(
  columns,
  rows,
  { sort = null, onsort = () => {}, attributes = () => ({}), caption } = {},
) {
  const body = el("tbody");
  const heads = columns.map((column) => {
    const button = el(
      "button",
      { type: "button", title: column.about, onclick: () => next(column) },
      column.title,
      el("span", { class: "arrow", "aria-hidden": "true" }),
    );
    return el("th", { scope: "col", class: column.number ? "number" : null }, button);
  });
  let current = sort;

  function next(column) {
    const same = current?.key === column.key;
    // Numbers first from the largest, texts from A; a third press gives the order of the grid back.
    const first = Boolean(column.number);
    if (!same) current = { key: column.key, down: first };
    else current = current.down === first ? { key: column.key, down: !first } : null;
    onsort(current);
    fill();
  }

  function fill() {
    const column = columns.find((one) => one.key === current?.key);
    const ordered = column ? [...rows].sort(compare(column, current.down)) : rows;
    columns.forEach((one, i) => {
      const state = one === column ? (current.down ? "descending" : "ascending") : null;
      if (state) heads[i].setAttribute("aria-sort", state);
      else heads[i].removeAttribute("aria-sort");
    });
    body.replaceChildren(...ordered.map((row) => line(columns, row, attributes)));
  }

  fill();
  const table = el(
    "table",
    {},
    caption ? el("caption", {}, caption) : null,
    el("thead", {}, el("tr", {}, ...heads)),
    body,
  );
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption ?? "table" }, table);
}

function line(columns, row, attributes) {
  const cells = columns.map((column, i) =>
    el(
      i ? "td" : "th",
      { class: column.number ? "number" : null, scope: i ? null : "row" },
      column.cell(row),
    ),
  );
  return el("tr", attributes(row), ...cells);
}

function compare(column, down) {
  return (a, b) => {
    const [x, y] = [column.value(a), column.value(b)];
    if (x === y) return 0;
    if (x === null || x === undefined) return 1;
    if (y === null || y === undefined) return -1;
    const order =
      typeof x === "number" && typeof y === "number"
        ? x - y
        : String(x).localeCompare(String(y), "en", { numeric: true });
    return down ? -order : order;
  };
}
