// What the reader chose: kept in the address, so that it outlives a reload and can be sent to someone.

const parameters = new URLSearchParams(location.hash.slice(1));
const listeners = [];

/** cell: the place of an arm (a group, in the explorer); run: a run's id. Both null: all are alike. */
export const selection = { cell: null, run: null };

/** Call `act` whenever the selection changes. */
export function onSelection(act) {
  listeners.push(act);
}

/** Nothing listens any more: the page is about to be made anew. */
export function forget() {
  listeners.length = 0;
}

/** Select an arm, or one run of it; what is selected already is let go. */
export function select(cell, run = null) {
  const same = selection.cell === cell && selection.run === run;
  set(same ? null : cell, same ? null : run);
}

export function clearSelection() {
  set(null, null);
}

function set(cell, run) {
  selection.cell = cell;
  selection.run = run;
  keep("cell", cell === null ? null : String(cell));
  keep("run", run);
  for (const act of listeners) act();
}

/** Take up what the address says, where the page still has it. */
export function restoreSelection(cells, runs) {
  const run = runs.find((one) => one.id === parameters.get("run"));
  const cell = run ? run.cell : Number(parameters.get("cell") ?? NaN);
  if (Number.isInteger(cell) && cell >= 0 && cell < cells) {
    selection.cell = cell;
    selection.run = run ? run.id : null;
    for (const act of listeners) act();
  }
}

/** "on", "off", or "" when nothing is selected: how something that belongs to `cell` (and `run`) is shown. */
export function emphasis(cell, run = null) {
  if (selection.cell === null) return "";
  if (cell !== selection.cell) return "off";
  return selection.run === null || run === null || run === selection.run ? "on" : "off";
}

/** A choice that was made before, or `otherwise`. */
export function remembered(name, otherwise) {
  return parameters.get(name) ?? otherwise;
}

/** A list or object that was kept as JSON; null for none, and for an address that someone cut or changed. */
export function rememberedValue(name) {
  try {
    return JSON.parse(parameters.get(name));
  } catch {
    return null;
  }
}

/** Keep a choice in the address; null takes it out. */
export function keep(name, value) {
  if (value === null || value === "") parameters.delete(name);
  else parameters.set(name, value);
  const text = parameters.toString();
  history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") clearSelection();
});
