// All runs: filter, sort, group, and look at the curves of what is left.

import { choice, el, nothing, panel, quoted } from "./dom.js";
import { estimate, even, short } from "./numbers.js";
import { clearSelection, emphasis, keep, onSelection, remembered, restoreSelection, select } from "./state.js";
import { sample } from "./marks.js";
import { armTraces, chart } from "./chart.js";
import { legend } from "./legend.js";
import { sortable } from "./table.js";
import { lineOf, missing, scaleButtons, stepExtent } from "./curves.js";
import { keysOf, parse, valueOf } from "./query.js";
import { alsoDiffering, grouped, numbersOf } from "./groups.js";

const FIRST_NUMBERS = ["final/dev/nll", "final/dev/prefix_nll", "test/prefix/bleu"];
const CHARTS = { "train/loss/nll": "Training loss, dropout on", "dev/nll": "Dev loss, teacher-forced", "dev/prefix_nll": "Dev loss from the prefix" };
const NATS = "nats a token";

export function explorerPage(page, head, bar, content) {
  if (!page.runs.length) {
    title(page, head);
    content.append(panel("runs", "Runs", null, ...notes(page), nothing(`There are no runs below ${page.output}/runs. \`attnlab run\` makes one.`)));
    return;
  }
  const chosen = remember(page);
  const view = { runs: [], groups: [] };
  const tableHost = el("div");
  const problem = el("p", { class: "problem", role: "status" });
  const charts = chartsPanel(page, view);
  title(page, head);
  const fillLegend = legend(bar, () => view.groups.map((group) => ({ place: group.place, label: group.label, runs: group.runs.map((run) => ({ id: run.id, seed: valueOf(page, run, "seed") })) })));

  function fill() {
    const query = parse(chosen.query, page);
    problem.textContent = query.problem;
    // Places are those among all runs, so that a filter changes no colour.
    const all = grouped(page, page.runs, chosen.groups.length ? chosen.groups : chosen.colors);
    all.forEach((group, place) => group.runs.forEach((run) => (run.cell = place)));
    view.groups = all.map((group, place) => ({ ...group, place, runs: group.runs.filter(query.keep) })).filter((group) => group.runs.length);
    view.runs = view.groups.flatMap((group) => group.runs);
    restoreSelection(all.length, view.runs);
    fillLegend();
    tableHost.replaceChildren(view.runs.length ? (chosen.groups.length ? groupTable(page, view, chosen) : runTable(page, view, chosen)) : nothing("The filter lets no run through."));
    charts.fill();
  }
  content.append(
    panel("runs", "Runs", null, ...notes(page), controls(page, chosen, fill), problem, tableHost),
    charts.element,
    commonPanel(page),
  );
  onSelection(() => {
    for (const line of tableHost.querySelectorAll("tr[data-cell]")) line.className = emphasis(Number(line.dataset.cell), line.dataset.run ?? null);
  });
  fill();
}

function title(page, head) {
  const states = page.runs.reduce((found, run) => found.set(run.state, (found.get(run.state) ?? 0) + 1), new Map());
  head.append(
    el("p", { class: "kind" }, page.version ? "attnlab runs, live" : "attnlab runs"),
    el("h1", {}, quoted(page.title)),
    el("p", { class: "small" }, quoted(page.output), ` · ${page.runs.length} runs`, ...[...states].map(([state, count]) => ` · ${count} ${state}`)),
  );
}

function notes(page) {
  return page.notes.length ? [el("ul", { class: "notes" }, ...page.notes.map((note) => el("li", {}, quoted(note))))] : [];
}

/** What was chosen before, or to begin with: the settings that differ and the three numbers that keep a leak honest. */
function remember(page) {
  const known = new Set(keysOf(page));
  const differing = [...new Set(page.runs.flatMap((run) => Object.keys(run.config)))];
  const names = differing.filter((key) => !key.startsWith("study.") && (key === "seed" || !key.startsWith("attention.") || key === "attention.name"));
  const numbers = FIRST_NUMBERS.filter((key) => known.has(key));
  const first = [...names.slice(0, 5), ...numbers];
  const list = (name, otherwise) => JSON.parse(remembered(name, null) ?? JSON.stringify(otherwise)).filter((key) => known.has(key));
  return {
    query: remembered("filter", ""),
    groups: list("group", []),
    colors: known.has("attention.name") ? ["attention.name"] : [],
    columns: list("columns", first),
    sort: JSON.parse(remembered("sort", "null")),
  };
}

function controls(page, chosen, fill) {
  const keys = keysOf(page);
  const search = el("input", {
    type: "search",
    id: "filter",
    value: chosen.query,
    placeholder: "attention.name=no_scale bleu>10 state=done",
    oninput: (event) => (keep("filter", (chosen.query = event.target.value)), fill()),
  });
  const settings = keys.filter((key) => page.runs.some((run) => key in run.config));
  return el(
    "div",
    { class: "explore" },
    el("label", { class: "choice grow" }, el("span", {}, "filter"), search),
    picker("group", "group by", settings, chosen.groups, (list) => (keep("group", list.length ? JSON.stringify(list) : null), clearSelection(), fill())),
    picker("columns", "columns", keys.filter((key) => key !== "id" && key !== "state"), chosen.columns, (list) => (keep("columns", JSON.stringify(list)), fill())),
  );
}

/** A list of names: each can be taken out, and any other put in. */
function picker(id, label, names, list, change) {
  const chips = el("span", { class: "chips" });
  const input = el("input", { id, list: `${id}-names`, placeholder: "add …", "aria-label": `${label}: add a name` });
  const fill = () => chips.replaceChildren(...list.map(chip));
  const chip = (name) => el("button", { type: "button", class: "chip", title: `take ${name} out`, onclick: () => remove(name) }, quoted(name), " ×");
  function remove(name) {
    list.splice(list.indexOf(name), 1);
    fill();
    change(list);
  }
  input.addEventListener("change", () => {
    const name = input.value.trim();
    input.value = "";
    if (!names.includes(name) || list.includes(name)) return;
    list.push(name);
    fill();
    change(list);
  });
  fill();
  return el("div", { class: "choice" }, el("span", {}, label), chips, input, el("datalist", { id: `${id}-names` }, ...names.map((name) => el("option", { value: name }))));
}

function runTable(page, view, chosen) {
  const columns = [
    { key: "id", title: "run", value: (run) => run.id, cell: (run) => [sample(run.cell), el("button", { type: "button", class: "link", onclick: () => select(run.cell, run.id) }, quoted(run.id)), run.error ? el("span", { class: "state" }, quoted(run.error)) : null] },
    { key: "state", title: "state", value: (run) => run.state, cell: (run) => progress(run) },
    ...chosen.columns.map((key) => ({ key, title: shortName(key), about: key, number: isNumber(page, view.runs, key), value: (run) => valueOf(page, run, key) ?? null, cell: (run) => shown(valueOf(page, run, key), key) })),
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
  const alarms = run.alarms.length ? el("span", { class: "alarm", title: run.alarms.join("\n") }, ` ▲ ${run.alarms.length}`) : null;
  return [run.state + part, alarms];
}

function groupTable(page, view, chosen) {
  const rows = view.groups.map((group) => ({ ...group, done: group.runs.filter((run) => run.state === "done").length, also: alsoDiffering(group.runs, chosen.groups) }));
  const columns = [
    { key: "group", title: chosen.groups.join(", "), value: (row) => (row.values.length === 1 ? row.values[0] : row.label), cell: (row) => [sample(row.place), el("button", { type: "button", class: "link", onclick: () => select(row.place) }, quoted(row.label)), row.also.length ? el("span", { class: "state" }, `also differ in ${row.also.slice(0, 4).join(", ")}${row.also.length > 4 ? " …" : ""}`) : null] },
    { key: "n", title: "done", number: true, value: (row) => row.done, cell: (row) => `${row.done}/${row.runs.length}` },
    ...chosen.columns.filter((key) => !chosen.groups.includes(key)).map((key) => ({ key, title: shortName(key), about: key, number: isNumber(page, view.runs, key), value: (row) => sortValue(page, row, key), cell: (row) => summary(page, row, key) })),
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
  return values.length ? estimate(values, page.t).mean : (valueOf(page, row.runs[0], key) ?? null);
}

/** Of numbers of runs the mean with its interval; of a setting its values. */
function summary(page, row, key) {
  const isResult = row.runs.some((run) => key in run.results);
  if (!isResult) {
    const values = [...new Set(row.runs.map((run) => valueOf(page, run, key)))].sort((a, b) => (typeof a === "number" && typeof b === "number" ? a - b : 0));
    return values.length <= 4 ? values.map((value) => shown(value, key)).flatMap((node, i) => (i ? [", ", node] : [node])) : `${values.length} values`;
  }
  const values = numbersOf(page, row.runs, key);
  if (!values.length) return [el("span", { class: "none" }, "–")];
  const found = estimate(values, page.t);
  const beside = found.half === null ? `n ${found.n}` : found.half === 0 ? "all equal" : `[${short(found.mean - found.half)}, ${short(found.mean + found.half)}]`;
  return [el("span", { class: "mean", "data-metric": key, "data-value": found.mean }, even(found.mean)), found.sd === null ? null : el("span", { class: "sd" }, ` ± ${short(found.sd, 2)}`), el("span", { class: "beside" }, beside)];
}

function shown(value, key) {
  if (value === undefined || value === null) return el("span", { class: "none" }, value === null ? "null" : "–");
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

function chartsPanel(page, view) {
  const scales = { x: false, y: true, band: true };
  const metrics = Object.keys(page.curves.lines).sort();
  let metric = remembered("metric", "train/grad/norm");
  if (!metrics.includes(metric)) [metric] = metrics;
  const grid = el("div", { class: "grid" });
  let drawn = [];

  function fill() {
    const wanted = [...Object.entries(CHARTS), ...(metric && !(metric in CHARTS) ? [[metric, metric]] : [])];
    drawn = wanted.map(([name, text]) => one(name, text));
    grid.replaceChildren(...drawn.map((chart) => chart.figure));
  }
  function one(name, text) {
    const arms = view.groups.map((group) => ({
      cell: group.place,
      label: group.label,
      runs: group.runs.flatMap((run) => {
        const line = lineOf(page.curves, name, page.runs.indexOf(run));
        return line ? [{ id: run.id, seed: valueOf(page, run, "seed"), ...line }] : [];
      }),
    }));
    if (arms.every((arm) => !arm.runs.length)) return { figure: missing(text, `None of these runs has ${name} yet.`), redraw: () => {} };
    const axes = { x: { title: "update", log: false }, y: { title: name in CHARTS ? NATS : name, log: false } };
    return chart(text, axes, () => {
      axes.x.log = scales.x;
      axes.y.log = scales.y;
      axes.x.extent = stepExtent(arms, scales.x);
      return armTraces(arms, name in CHARTS ? NATS : "", { band: scales.band, log: scales.y });
    });
  }
  const buttons = scaleButtons("runs", scales, () => drawn.forEach((chart) => chart.redraw()));
  if (metrics.length) buttons.append(choice("and", metrics.map((name) => [name, name]), metric, (value) => (keep("metric", (metric = value)), fill())));
  const reading = "Of the runs in the table, by group (by arm where none is chosen): the mean at the updates that all of a group's runs have, and the range of its runs.";
  return { element: panel("curves", "Curves", reading, buttons, grid), fill };
}

function commonPanel(page) {
  const facts = Object.entries(page.common).flatMap(([key, value]) => [el("dt", {}, quoted(key)), el("dd", {}, quoted(String(value)))]);
  return panel("common", "What all runs have in common", null, el("details", {}, el("summary", {}, `${facts.length / 2} settings`), el("dl", { class: "facts" }, ...facts)));
}
