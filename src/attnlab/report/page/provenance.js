// Where the numbers come from.

import { el, panel, quoted } from "./dom.js";
import { emphasis, onSelection, select } from "./state.js";
import { short } from "./numbers.js";
import { sortable } from "./table.js";

export function provenancePanel(page) {
  const facts = page.provenance.flatMap(([name, text]) => [
    el("dt", {}, name),
    el("dd", {}, ["table", "runs"].includes(name) ? el("code", {}, text) : quoted(text)),
  ]);
  return panel(
    "provenance",
    "Provenance",
    "Every number above comes from these run folders and nothing else.",
    el("dl", { class: "facts" }, ...facts),
    runTable(page),
  );
}

function runTable(page) {
  const columns = [
    {
      key: "id",
      title: "run",
      value: (run) => run.id,
      cell: (run) =>
        el(
          "button",
          { type: "button", class: "link", onclick: () => select(run.cell, run.id) },
          quoted(run.id),
        ),
    },
    {
      key: "arm",
      title: "arm",
      value: (run) => page.cells[run.cell].label,
      cell: (run) => quoted(page.cells[run.cell].label),
    },
    { key: "seed", title: "seed", number: true, value: (run) => run.seed, cell: (run) => short(run.seed) },
    { key: "state", title: "state", value: (run) => run.state, cell: (run) => run.state },
    { key: "step", title: "updates", number: true, value: (run) => run.step, cell: (run) => short(run.step) },
    {
      key: "alarms",
      title: "alarms",
      number: true,
      value: (run) => run.alarms.length,
      cell: (run) => short(run.alarms.length),
    },
    {
      key: "error",
      title: "what went wrong",
      value: (run) => run.error,
      cell: (run) => quoted(run.error || "–"),
    },
  ];
  const table = sortable(columns, page.runs, {
    caption: "Runs",
    attributes: (run) => ({ "data-run": run.id, "data-cell": run.cell, class: emphasis(run.cell, run.id) }),
  });
  onSelection(() => {
    for (const line of table.querySelectorAll("tr[data-run]"))
      line.className = emphasis(Number(line.dataset.cell), line.dataset.run);
  });
  return table;
}
