// A study's page: verdicts and table first, then what lies behind them.

import { el, quoted } from "./dom.js";
import { restoreSelection } from "./state.js";
import { assignMarks } from "./marks.js";
import { legend } from "./legend.js";
import { claimsPanel } from "./claims.js";
import { ablationPanel } from "./ablation.js";
import { curvesPanel } from "./curves.js";
import { leakPanel } from "./leak.js";
import { responsePanels } from "./response.js";
import { entropyPanel } from "./entropy.js";
import { gradientsPanel } from "./gradients.js";
import { parallelPanel } from "./parallel.js";
import { mapsPanel } from "./maps.js";
import { translationsPanel } from "./translations.js";
import { provenancePanel } from "./provenance.js";

const PANELS = [
  claimsPanel,
  ablationPanel,
  leakPanel,
  responsePanels,
  curvesPanel,
  entropyPanel,
  gradientsPanel,
  parallelPanel,
  mapsPanel,
  translationsPanel,
  provenancePanel,
];

/** As the table names it, with the last part of each key alone: `no_scale d_k=64`. */
function brief({ arm, settings }) {
  return [arm, ...settings.map((item) => item.replace(/^[^=]*\.(?=[^.=]+=)/, ""))].join(" ");
}

export function studyPage(page, head, bar, content) {
  for (const cell of page.cells) cell.name = brief(cell);
  assignMarks(page.cells);
  const runs = page.runs.length;
  head.append(
    el("p", { class: "kind" }, "attnlab study"),
    el("h1", {}, quoted(page.title)),
    el("p", { class: "question" }, quoted(page.question)),
    el(
      "p",
      { class: "small" },
      `${page.cells.length} cells, ${runs} runs, ${page.runs.filter((run) => run.state === "done").length} done.`,
    ),
  );
  const cells = page.cells.map((cell, place) => ({
    place,
    label: cell.name,
    runs: page.runs.filter((run) => run.cell === place),
  }));
  legend(bar, () => cells);
  content.append(...PANELS.flatMap((make) => make(page)));
  restoreSelection(page.cells.length, page.runs);
}
