// The ablation table: the same numbers as `attnlab table`, digit for digit.

import { el, panel, quoted } from "./dom.js";
import { minus } from "./numbers.js";
import { emphasis, onSelection, select, selection } from "./state.js";
import { sample } from "./marks.js";
import { sortable } from "./table.js";

export function ablationPanel(page) {
  const rows = page.cells.map((cell, place) => ({ cell, place, numbers: page.rows[place] }));
  const columns = [
    { key: "cell", title: "arm", value: (row) => row.cell.label, cell: (row) => name(row) },
    {
      key: "n",
      title: "seeds",
      number: true,
      about: "seeds that are done, of all",
      value: (row) => row.cell.done,
      cell: (row) => `${row.cell.done}/${row.cell.total}`,
    },
    ...page.columns.flatMap((column, i) => pair(column, i)),
  ];
  const table = sortable(columns, rows, {
    caption: `Study ${page.title}: mean ± sd and 95% interval over seeds`,
    attributes: (row) => ({ "data-cell": row.place, class: emphasis(row.place) }),
  });
  onSelection(() => {
    for (const line of table.querySelectorAll("tr[data-cell]"))
      line.className = emphasis(Number(line.dataset.cell));
    for (const button of table.querySelectorAll("th button.link"))
      button.setAttribute(
        "aria-pressed",
        String(Number(button.closest("tr").dataset.cell) === selection.cell),
      );
  });
  const notes = page.notes.length
    ? el("ul", { class: "notes" }, ...page.notes.map((note) => el("li", {}, quoted(note))))
    : null;
  return panel(
    "table",
    "Ablation",
    `Control: ${page.control ?? "none"}. Δ is the arm less its control, paired by seed.`,
    table,
    notes,
    alarms(page),
    el("p", { class: "small legend-text" }, page.legend),
  );
}

function pair(column, i) {
  const one = (key, title, pick, about) => ({
    key,
    title,
    about,
    number: true,
    value: (row) => pick(row)?.value ?? null,
    cell: (row) =>
      figures(
        pick(row),
        key === column.metric ? row.numbers[i].exact : null,
        key === column.metric ? null : row.numbers[i].p,
        column.metric,
      ),
  });
  const plain = one(column.metric, column.title, (row) => row.numbers[i].number, column.metric);
  if (!column.compared) return [plain];
  return [
    plain,
    one(
      `Δ ${column.metric}`,
      "Δ",
      (row) => row.numbers[i].difference,
      `difference of ${column.title} to the control`,
    ),
  ];
}

/** The mean large, what belongs to it small. `data-value` is the number in full. */
function figures(number, exact, p, metric) {
  if (!number) return [el("span", { class: "none" }, "–")];
  const small = [exact ? `${exact} exact` : number.interval, p ? `p ${p}` : ""].filter(Boolean);
  return [
    el("span", { class: "mean", "data-metric": metric, "data-value": number.value }, minus(number.mean)),
    number.sd ? el("span", { class: "sd" }, ` ± ${number.sd}`) : null,
    ...small.map((text) => el("span", { class: "beside" }, minus(text))),
  ];
}

function name({ cell, place }) {
  return [
    sample(place),
    el(
      "button",
      {
        type: "button",
        class: "link",
        "aria-pressed": String(selection.cell === place),
        onclick: () => select(place),
      },
      quoted(cell.label),
    ),
    cell.state ? el("span", { class: "state" }, cell.state) : null,
    cell.alarms.length
      ? el(
          "span",
          { class: "alarm" },
          `▲ ${cell.alarms.length} ${cell.alarms.length === 1 ? "alarm" : "alarms"}`,
        )
      : null,
  ];
}

function alarms(page) {
  const found = page.cells.filter((cell) => cell.alarms.length);
  if (!found.length) return el("p", { class: "small" }, "No run raised an alarm.");
  const lists = found.map((cell) => [
    el("dt", {}, quoted(cell.label)),
    ...cell.alarms.map((alarm) => el("dd", {}, quoted(alarm))),
  ]);
  return el(
    "details",
    {},
    el("summary", {}, `▲ What the alarms of ${found.length === 1 ? "one arm" : `${found.length} arms`} say`),
    el("dl", {}, ...lists.flat()),
  );
}
