// The bar of arms that stays in sight: legend of every chart, and the keyboard's way to select.

import { el, quoted } from "./dom.js";
import { clearSelection, onSelection, select, selection } from "./state.js";
import { onTheme, sample } from "./marks.js";

/** cells(): [{place, label, runs: [{id, seed}]}], read anew whenever `redraw` is called. */
export function legend(host, cells) {
  function fill() {
    const known = cells();
    const arms = known.map(({ place, label }) =>
      button(() => select(place), selection.cell === place, sample(place), quoted(label)),
    );
    const chosen = known.find((cell) => cell.place === selection.cell);
    const seeds = chosen && chosen.runs.length > 1 ? chosen.runs.map((run) => seedButton(run)) : [];
    const clear = chosen
      ? [el("button", { type: "button", class: "clear", onclick: clearSelection }, "show all (Esc)")]
      : [];
    const focused = [...host.querySelectorAll("button")].indexOf(document.activeElement);
    host.replaceChildren(
      el("div", { class: "arms" }, ...arms),
      el("div", { class: "seeds" }, ...seeds, ...clear),
    );
    if (focused >= 0) host.querySelectorAll("button")[focused]?.focus();
  }

  function seedButton(run) {
    return button(() => select(selection.cell, run.id), selection.run === run.id, `seed ${run.seed}`);
  }

  onSelection(fill);
  onTheme(fill);
  fill();
  return fill;
}

function button(act, on, ...children) {
  return el(
    "button",
    { type: "button", class: "arm", "aria-pressed": String(on), onclick: act },
    ...children,
  );
}
