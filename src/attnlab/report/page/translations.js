// The same source, translated by every arm, beside its reference.

import { choice, el, nothing, panel, quoted } from "./dom.js";
import { emphasis, keep, onSelection, remembered, select, selection } from "./state.js";
import { sample } from "./marks.js";

export function translationsPanel(page) {
  const { sources, references, lines, missing } = page.translations;
  const protocols = Object.keys(lines);
  if (!protocols.length) {
    const reasons = [...new Set(Object.values(missing))].join("; ");
    return panel(
      "translations",
      "Translations",
      null,
      nothing(`No run has translations: ${reasons || "there are no runs"}.`),
    );
  }
  const chosen = {
    protocol: remembered("protocol", protocols[0]),
    sentence: Number(remembered("sentence", "0")),
  };
  if (!protocols.includes(chosen.protocol)) [chosen.protocol] = protocols;
  if (!(chosen.sentence >= 0 && chosen.sentence < sources.length)) chosen.sentence = 0;
  const list = el("dl", { class: "translations" });
  const place = el("output", {});

  function fill() {
    const i = chosen.sentence;
    place.textContent = `sentence ${i + 1} of ${sources.length}`;
    list.replaceChildren(
      ...entry("source", sources[i], "given"),
      ...entry("reference", references[i], "given"),
      ...page.cells.flatMap((cell, at) => armEntry(page, cell, at, lines[chosen.protocol], i)),
    );
  }
  function move(step) {
    chosen.sentence = (chosen.sentence + step + sources.length) % sources.length;
    keep("sentence", String(chosen.sentence));
    fill();
  }
  const controls = el(
    "div",
    { class: "controls" },
    el("button", { type: "button", class: "toggle", onclick: () => move(-1) }, "← previous"),
    el("button", { type: "button", class: "toggle", onclick: () => move(1) }, "next →"),
    place,
    protocols.length > 1
      ? choice(
          "decode protocol",
          protocols.map((one) => [one, one]),
          chosen.protocol,
          (value) => (keep("protocol", (chosen.protocol = value)), fill()),
        )
      : null,
  );
  onSelection(fill);
  fill();
  const reading =
    "The first test sentences. Of an arm with several seeds the selected one's, else the first's.";
  return panel("translations", "Translations", reading, controls, list);
}

function armEntry(page, cell, at, lines, i) {
  const runs = page.runs.map((run, index) => ({ ...run, index })).filter((run) => run.cell === at);
  const run = runs.find((one) => one.id === selection.run) ?? runs.find((one) => lines[one.index]) ?? runs[0];
  const head = el(
    "button",
    { type: "button", class: "link", onclick: () => select(at) },
    sample(at),
    quoted(cell.name),
    runs.length > 1 && run ? ` seed ${run.seed}` : null,
  );
  if (!run || !lines[run.index])
    return entry(head, null, emphasis(at), run ? page.translations.missing[run.index] : cell.state);
  return entry(head, lines[run.index][i], emphasis(at));
}

function entry(head, text, state, why) {
  const body =
    text === null ? el("em", {}, why ?? "none") : text === "" ? el("em", {}, "(empty)") : quoted(text);
  return [el("dt", { class: state }, head), el("dd", { class: state }, body)];
}
