// Runs that agree in some settings, taken together.

import { short } from "./numbers.js";
import { valueOf } from "./query.js";

/** [{label, values, runs}] in the order of their labels; one group of all where there are no keys. */
export function grouped(page, runs, keys) {
  const found = new Map();
  for (const run of runs) {
    const values = keys.map((key) => valueOf(page, run, key) ?? null);
    const name = JSON.stringify(values);
    if (!found.has(name)) found.set(name, { label: labelled(keys, values), values, runs: [] });
    found.get(name).runs.push(run);
  }
  const seed = (run) => Number(valueOf(page, run, "seed") ?? 0);
  for (const group of found.values()) group.runs.sort((a, b) => seed(a) - seed(b));
  return [...found.values()].sort((a, b) => a.label.localeCompare(b.label, "en", { numeric: true }));
}

function labelled(keys, values) {
  const texts = values.map((value) =>
    value === null ? "none" : typeof value === "number" ? short(value) : String(value),
  );
  return keys.length === 1
    ? texts[0]
    : texts.map((text, i) => `${keys[i].split(".").at(-1)} ${text}`).join(" · ") || "all runs";
}

/** Settings other than the seed in which a group's runs differ: its interval is then not one over seeds alone. */
export function alsoDiffering(runs, keys) {
  const names = Object.keys(runs[0]?.config ?? {});
  return names.filter(
    (key) =>
      key !== "seed" &&
      !keys.includes(key) &&
      !key.startsWith("study.") &&
      new Set(runs.map((run) => JSON.stringify(run.config[key]))).size > 1,
  );
}

/** The numbers of a group's finished runs under a name. What was not finite is NaN, so that no mean leaves it out. */
export function numbersOf(page, runs, key) {
  return runs
    .filter((run) => run.state === "done")
    .map((run) => (run.results[key] === null ? NaN : valueOf(page, run, key)))
    .filter((value) => typeof value === "number");
}
