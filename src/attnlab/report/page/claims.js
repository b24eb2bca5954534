// The verdicts: what was claimed before the runs, and where the intervals lie.

import { el, nothing, panel, quoted, svg } from "./dom.js";
import { minus, short } from "./numbers.js";
import { select } from "./state.js";

const SIGNS = { confirmed: "●", refuted: "✕", inconclusive: "○" };
const WIDTH = 190;

export function claimsPanel(page) {
  const reading =
    "The band is where the claim says that the number lies, the bar its 95% interval over seeds, the dot its mean.";
  if (!page.claims.length)
    return panel(
      "claims",
      "Verdicts",
      null,
      nothing("No claims are registered: the study has no expected.yaml."),
    );
  const items = page.claims.map((claim) => item(claim, page));
  return panel(
    "claims",
    "Verdicts",
    `${count(page.claims)} ${reading}`,
    el("ol", { class: "claims" }, ...items),
    el("p", { class: "small" }, page.verdicts),
  );
}

function count(all) {
  const checks = all.filter((claim) => claim.check);
  const claims = all.filter((claim) => !claim.check);
  const of = (some, verdict) => some.filter((claim) => claim.verdict === verdict).length;
  const apart = checks.length
    ? ` ${of(checks, "confirmed")} of ${checks.length} checks on the harness hold; they follow by construction and are no predictions.`
    : "";
  return `${claims.length} claims: ${of(claims, "confirmed")} confirmed, ${of(claims, "refuted")} refuted, ${of(claims, "inconclusive")} inconclusive.${apart}`;
}

function item(claim, page) {
  const cell = page.cells.findIndex((one) => one.label === claim.cells[0]);
  const text = claim.numbers.map((number) => minus(`${number.mean} ${number.interval}`.trim())).join("; ");
  const name = quoted(claim.id);
  return el(
    "li",
    { class: `claim ${claim.verdict}`, "data-cell": cell },
    el("span", { class: "sign", "aria-hidden": "true" }, SIGNS[claim.verdict]),
    el(
      "div",
      { class: "what" },
      el(
        "p",
        {},
        el("strong", {}, claim.check ? `check ${claim.verdict}` : claim.verdict),
        " ",
        cell >= 0 ? el("button", { type: "button", class: "link", onclick: () => select(cell) }, name) : name,
        " ",
        quoted(claim.statement),
      ),
      el("p", { class: "small" }, quoted(`${claim.measured}: ${claim.predicted}. Source: ${claim.source}.`)),
    ),
    el(
      "div",
      { class: "shown" },
      claim.numbers.map((number) => interval(claim.region, number)),
      el("p", { class: "small figures" }, text || "–", ` · ${claim.reason}`),
    ),
  );
}

/** The predicted region as a band, the interval as a bar over it; an open end of the region runs to the edge. */
function interval([low, high], number) {
  const known = [low, high, number.low, number.high, number.value].filter((value) => value !== null);
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const margin = (most - least || Math.abs(most) || 1) * 0.15;
  const x = (value) => ((value - least + margin) / (most - least + 2 * margin)) * WIDTH;
  const [from, to] = [low === null ? 0 : x(low), high === null ? WIDTH : x(high)];
  const bounds = [low, high]
    .filter((value) => value !== null)
    .map((value) =>
      svg(
        "text",
        {
          x: x(value),
          y: 27,
          "text-anchor": x(value) > WIDTH - 30 ? "end" : x(value) < 30 ? "start" : "middle",
        },
        short(value),
      ),
    );
  const bar =
    number.low === null
      ? null
      : svg("line", { class: "bar", x1: x(number.low), x2: x(number.high), y1: 9, y2: 9 });
  const dot =
    number.value === null ? null : svg("circle", { class: "dot", cx: x(number.value), cy: 9, r: 3.5 });
  return svg(
    "svg",
    { class: "interval", viewBox: `0 0 ${WIDTH} 30`, width: WIDTH, height: 30, "aria-hidden": "true" },
    svg("rect", { class: "region", x: from, y: 2, width: Math.max(to - from, 1.5), height: 14 }),
    svg("line", { class: "axis", x1: 0, x2: WIDTH, y1: 17.5, y2: 17.5 }),
    bar,
    dot,
    ...bounds,
  );
}
