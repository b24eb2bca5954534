// All runs: filter, sort, group, and look at the curves of what is left.

import { el, nothing, panel, quoted } from "./dom.js";
import {
  clearSelection,
  emphasis,
  keep,
  onSelection,
  remembered,
  rememberedValue,
  restoreSelection,
  selection,
} from "./state.js";
import { assignMarks } from "./marks.js";
import { legend } from "./legend.js";
import { keysOf, parse, valueOf } from "./query.js";
import { grouped } from "./groups.js";
import { groupTable, runTable } from "./run_tables.js";
import { chartsPanel } from "./run_charts.js";

const FIRST_NUMBERS = ["final/dev/nll", "final/dev/prefix_nll", "test/prefix/bleu"];

export function explorerPage(page, head, bar, content) {
  if (!page.runs.length) {
    title(page, head);
    content.append(
      panel(
        "runs",
        "Runs",
        null,
        ...notes(page),
        nothing(`There are no runs below ${page.output}/runs. \`attnlab run\` makes one.`),
      ),
    );
    return;
  }
  assignMarks([]);
  const chosen = remember(page);
  const view = { runs: [], groups: [] };
  const tableHost = el("div");
  const problem = el("p", { class: "problem", role: "status" });
  const charts = chartsPanel(page, view);
  title(page, head);
  const fillLegend = legend(bar, () =>
    view.groups.map((group) => ({
      place: group.place,
      label: group.label,
      runs: group.runs.map((run) => ({ id: run.id, seed: valueOf(page, run, "seed") })),
    })),
  );

  function fill() {
    const query = parse(chosen.query, page);
    problem.textContent = query.problem;
    // Places are those among all runs, so that a filter changes no colour.
    const all = grouped(page, page.runs, chosen.groups.length ? chosen.groups : chosen.colors);
    all.forEach((group, place) => group.runs.forEach((run) => (run.cell = place)));
    view.groups = all
      .map((group, place) => ({ ...group, place, runs: group.runs.filter(query.keep) }))
      .filter((group) => group.runs.length);
    view.runs = view.groups.flatMap((group) => group.runs);
    restoreSelection(all.length, view.runs);
    fillLegend();
    tableHost.replaceChildren(
      view.runs.length
        ? chosen.groups.length
          ? groupTable(page, view, chosen)
          : runTable(page, view, chosen)
        : nothing("The filter lets no run through."),
    );
    charts.fill();
  }
  content.append(
    panel(
      "runs",
      "Runs",
      null,
      ...notes(page),
      controls(page, chosen, fill),
      problem,
      tableHost,
      details(page),
    ),
    charts.element,
    commonPanel(page),
  );
  onSelection(() => {
    for (const line of tableHost.querySelectorAll("tr[data-cell]"))
      line.className = emphasis(Number(line.dataset.cell), line.dataset.run ?? null);
  });
  fill();
}

function title(page, head) {
  const states = page.runs.reduce(
    (found, run) => found.set(run.state, (found.get(run.state) ?? 0) + 1),
    new Map(),
  );
  head.append(
    el("p", { class: "kind" }, page.version ? "attnlab runs, live" : "attnlab runs"),
    el("h1", {}, quoted(page.title)),
    el(
      "p",
      { class: "small" },
      quoted(page.output),
      ` · ${page.runs.length} runs`,
      ...[...states].map(([state, count]) => ` · ${count} ${state}`),
    ),
  );
}

function notes(page) {
  return page.notes.length
    ? [el("ul", { class: "notes" }, ...page.notes.map((note) => el("li", {}, quoted(note))))]
    : [];
}

/** What was chosen before, or to begin with: the settings that differ and the three numbers that keep a leak honest. */
function remember(page) {
  const known = new Set(keysOf(page));
  const differing = [...new Set(page.runs.flatMap((run) => Object.keys(run.config)))];
  const names = differing.filter(
    (key) =>
      !key.startsWith("study.") &&
      (key === "seed" || !key.startsWith("attention.") || key === "attention.name"),
  );
  const numbers = FIRST_NUMBERS.filter((key) => known.has(key));
  const first = [...names.slice(0, 5), ...numbers];
  const list = (name, otherwise) => {
    const before = rememberedValue(name);
    return (Array.isArray(before) ? before : otherwise).filter((key) => known.has(key));
  };
  return {
    query: remembered("filter", ""),
    groups: list("group", []),
    colors: known.has("attention.name") ? ["attention.name"] : [],
    columns: list("columns", first),
    sort: rememberedValue("sort"),
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
    picker(
      "group",
      "group by",
      settings,
      chosen.groups,
      (list) => (keep("group", list.length ? JSON.stringify(list) : null), clearSelection(), fill()),
    ),
    picker(
      "columns",
      "columns",
      keys.filter((key) => key !== "id" && key !== "state"),
      chosen.columns,
      (list) => (keep("columns", JSON.stringify(list)), fill()),
    ),
  );
}

/** A list of names: each can be taken out, and any other put in. */
function picker(id, label, names, list, change) {
  const chips = el("span", { class: "chips" });
  const input = el("input", {
    id,
    list: `${id}-names`,
    placeholder: "add …",
    "aria-label": `${label}: add a name`,
  });
  const fill = () => chips.replaceChildren(...list.map(chip));
  const chip = (name) =>
    el(
      "button",
      { type: "button", class: "chip", title: `take ${name} out`, onclick: () => remove(name) },
      quoted(name),
      " ×",
    );
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
  return el(
    "div",
    { class: "choice" },
    el("span", {}, label),
    chips,
    input,
    el("datalist", { id: `${id}-names` }, ...names.map((name) => el("option", { value: name }))),
  );
}

/** What there is to say about the selected run; nothing where none is. */
function details(page) {
  const box = el("div", { class: "details", role: "status" });
  function fill() {
    const run = page.runs.find((one) => one.id === selection.run);
    box.replaceChildren(...(run ? described(run) : []));
  }
  onSelection(fill);
  fill();
  return box;
}

function described(run) {
  const facts = { updated: run.updated, error: run.error, ...run.config };
  const shown = Object.entries(facts).filter(([, value]) => value !== "" && value !== null);
  return [
    el("h3", {}, "Run ", quoted(run.id), `, ${run.state}`),
    run.alarms.length
      ? el("ul", { class: "notes" }, ...run.alarms.map((alarm) => el("li", {}, "▲ ", quoted(alarm))))
      : el("p", { class: "small" }, "No alarm."),
    el(
      "dl",
      { class: "facts" },
      ...shown.flatMap(([key, value]) => [el("dt", {}, quoted(key)), el("dd", {}, quoted(String(value)))]),
    ),
  ];
}

function commonPanel(page) {
  const facts = Object.entries(page.common).flatMap(([key, value]) => [
    el("dt", {}, quoted(key)),
    el("dd", {}, quoted(String(value))),
  ]);
  return panel(
    "common",
    "What all runs have in common",
    null,
    el(
      "details",
      {},
      el("summary", {}, `${facts.length / 2} settings`),
      el("dl", { class: "facts" }, ...facts),
    ),
  );
}
