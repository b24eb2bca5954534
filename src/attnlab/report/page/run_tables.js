// The explorer's table: a row a run, or a row a group of runs.

import { el, quoted } from "./dom.js";
import { estimate, even, short } from "./numbers.js";
import { emphasis, keep, select } from "./state.js";
import { sample } from "./marks.js";
import { sortable } from "./table.js";
import { valueOf } from "./query.js";
import { alsoDiffering, numbersOf } from "./groups.js";

export function runTable(page, view, chosen) {
  const columns = [
    {
      key: "id",
      title: "run",
      value: (run) => run.id,
      cell: (run) => [
        sample(run.cell),
        el(
          "button",
          { type: "button", class: "link", onclick: () => select(run.cell, run.id) },
          quoted(run.id),
        ),
        run.error ? el("span", { class: "state" }, quoted(run.error)) : null,
      ],
    },
    { key: "state", title: "state", value: (run) => run.state, cell: (run) => progress(run) },
    ...chosen.columns.map((key) => ({
      key,
      title: shortName(key),
      about: key,
      number: isNumber(page, view.runs, key),
      value: (run) => valueOf(page, run, key) ?? null,
      cell: (run) => shown(valueOf(page, run, key), key),
    })),
  ];
  return sortable(columns, view.runs, {
    sort: chosen.sort,
    onsort: (sort) => keep("sort", (chosen.sort = sort) && JSON.stringify(sort)),
    caption: `${view.runs.length} runs`,
    attributes: (run) => ({ "data-run": run.id, "data-cell": run.cell, class: emphasis(run.cell, run.id) }),
  });
}

function progress(run) {
  const part = run.state !== "done" && run.steps ? ` ${short(run.step)}/${short(run.steps)}` : "";
  const alarms = run.alarms.length
    ? el("span", { class: "alarm", title: run.alarms.join("\n") }, ` ▲ ${run.alarms.length}`)
    : null;
  return [run.state + part, alarms];
}

export function groupTable(page, view, chosen) {
  const rows = view.groups.map((group) => ({
    ...group,
    done: group.runs.filter((run) => run.state === "done").length,
    also: alsoDiffering(group.runs, chosen.groups),
  }));
  const columns = [
    {
      key: "group",
      title: chosen.groups.join(", "),
      value: (row) => (row.values.length === 1 ? row.values[0] : row.label),
      cell: (row) => [
        sample(row.place),
        el("button", { type: "button", class: "link", onclick: () => select(row.place) }, quoted(row.label)),
        row.also.length
          ? el(
              "span",
              { class: "state" },
              `also differ in ${row.also.slice(0, 4).join(", ")}${row.also.length > 4 ? " …" : ""}`,
            )
          : null,
      ],
    },
    {
      key: "n",
      title: "done",
      number: true,
      value: (row) => row.done,
      cell: (row) => `${row.done}/${row.runs.length}`,
    },
    ...chosen.columns
      .filter((key) => !chosen.groups.includes(key))
      .map((key) => ({
        key,
        title: shortName(key),
        about: key,
        number: isNumber(page, view.runs, key),
        value: (row) => sortValue(page, row, key),
        cell: (row) => summary(page, row, key),
      })),
  ];
  return sortable(columns, rows, {
    sort: chosen.sort,
    onsort: (sort) => keep("sort", (chosen.sort = sort) && JSON.stringify(sort)),
    caption: `${rows.length} groups of ${view.runs.length} runs: mean ± sd and 95% t-interval over the finished ones`,
    attributes: (row) => ({ "data-cell": row.place, class: emphasis(row.place) }),
  });
}

function sortValue(page, row, key) {
  const values = numbersOf(page, row.runs, key);
  const middle = values.length ? estimate(values, page.t).mean : (valueOf(page, row.runs[0], key) ?? null);
  return Number.isNaN(middle) ? null : middle;
}

/** Of numbers of runs the mean with its interval; of a setting its values. */
function summary(page, row, key) {
  const isResult = row.runs.some((run) => key in run.results);
  if (!isResult) {
    const values = [...new Set(row.runs.map((run) => valueOf(page, run, key)))].sort((a, b) =>
      typeof a === "number" && typeof b === "number" ? a - b : 0,
    );
    return values.length <= 4
      ? values.map((value) => shown(value, key)).flatMap((node, i) => (i ? [", ", node] : [node]))
      : `${values.length} values`;
  }
  const values = numbersOf(page, row.runs, key);
  if (!values.length) return [el("span", { class: "none" }, "–")];
  const lost = values.filter(Number.isNaN).length;
  if (lost) return [el("span", { class: "none" }, `NaN in ${lost} of ${values.length}`)];
  const found = estimate(values, page.t);
  const beside =
    found.half === null
      ? `n ${found.n}`
      : found.half === 0
        ? "all equal"
        : `[${short(found.mean - found.half)}, ${short(found.mean + found.half)}]`;
  return [
    el("span", { class: "mean", "data-metric": key, "data-value": found.mean }, even(found.mean)),
    found.sd === null ? null : el("span", { class: "sd" }, ` ± ${short(found.sd, 2)}`),
    el("span", { class: "beside" }, beside),
  ];
}

function shown(value, key) {
  if (value === undefined || value === null)
    return el("span", { class: "none" }, value === null ? "null" : "–");
  if (typeof value === "number") return el("span", { "data-metric": key, "data-value": value }, even(value));
  return quoted(String(value));
}

function isNumber(page, runs, key) {
  return runs.some((run) => typeof valueOf(page, run, key) === "number");
}

/** The end of a name, which is what tells columns apart; the whole name is the heading's tooltip. */
function shortName(key) {
  return key.replace(/^final\//, "").replace(/^attention\.name$/, "arm");
}
