// How an arm looks, everywhere: a colour, a dash and a marker. Any two of the three tell arms apart, so that the page
// can be read in grey and by eyes that see colours differently.

import { svg } from "./dom.js";

// Okabe and Ito (2008), darkened or lightened until each has a contrast of 3 to its paper; the first is the ink.
const LIGHT = ["#1b1b1b", "#c44e00", "#0068a8", "#00805c", "#a8528a", "#8a6d00", "#4a8fc2"];
const DARK = ["#f0ede4", "#ff8f3f", "#6fb7e9", "#3fc79b", "#e39ac8", "#e3c14a", "#9cc9ec"];
const DASHES = ["solid", "6px,3px", "2px,3px", "9px,3px,2px,3px", "12px,4px", "2px,2px,6px,2px", "4px,2px"];
const SYMBOLS = [
  "circle",
  "square",
  "diamond",
  "triangle-up",
  "x",
  "cross",
  "star",
  "triangle-down",
  "pentagon",
];
const dark = matchMedia("(prefers-color-scheme: dark)");

let assigned = [];

/**
 * Of a grid of arms and settings, give every arm a colour and a marker, and every setting a dash: what is alike looks
 * alike. cells: [{arm, settings}]; where only one of the two varies, and where this was not called, all three differ.
 */
export function assignMarks(cells) {
  const arms = [...new Set(cells.map((cell) => cell.arm))];
  const settings = [...new Set(cells.map((cell) => cell.settings.join(" ")))];
  const grid = arms.length > 1 && settings.length > 1;
  assigned = grid
    ? cells.map((cell) => [arms.indexOf(cell.arm), settings.indexOf(cell.settings.join(" "))])
    : [];
}

/** Colour, dash (as Plotly and SVG write it) and marker of the arm at `place`. */
export function mark(place) {
  const colors = dark.matches ? DARK : LIGHT;
  // Past the last colour dashes are shifted by one, so that arms of one colour differ in both other marks.
  const [hue, dash] = assigned[place] ?? [place, place + Math.floor(place / colors.length)];
  const round = assigned.length ? Math.floor(dash / DASHES.length) : 0; // past the last dash: another marker
  return {
    color: colors[hue % colors.length],
    dash: DASHES[dash % DASHES.length],
    symbol: SYMBOLS[(hue + 5 * round) % SYMBOLS.length],
  };
}

/** A colour of the page by its CSS name. */
export function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function onTheme(act) {
  dark.addEventListener("change", act);
}

/** A short line with the arm's dash and marker: the sample in a legend. */
export function sample(place) {
  const { color: stroke, dash, symbol } = mark(place);
  return svg(
    "svg",
    { class: "sample", width: 30, height: 12, viewBox: "0 0 30 12", "aria-hidden": "true" },
    svg("line", {
      x1: 1,
      x2: 29,
      y1: 6,
      y2: 6,
      stroke,
      "stroke-width": 1.6,
      "stroke-dasharray": dasharray(dash),
    }),
    svg("path", { d: PATHS[symbol], transform: "translate(15 6)", fill: stroke }),
  );
}

/** A dash as SVG wants it. */
export function dasharray(dash) {
  return dash === "solid" ? "none" : dash.replaceAll("px", "");
}

const PATHS = {
  circle: "M-3.4,0a3.4,3.4 0 1,0 6.8,0a3.4,3.4 0 1,0 -6.8,0",
  square: "M-3,-3h6v6h-6z",
  diamond: "M0,-4.4L4.4,0L0,4.4L-4.4,0z",
  "triangle-up": "M0,-4L4,3H-4z",
  "triangle-down": "M0,4L4,-3H-4z",
  x: "M-4,-2.4L-2.4,-4L0,-1.6L2.4,-4L4,-2.4L1.6,0L4,2.4L2.4,4L0,1.6L-2.4,4L-4,2.4L-1.6,0z",
  cross: "M-1.2,-4h2.4v2.8h2.8v2.4h-2.8v2.8h-2.4v-2.8h-2.8v-2.4h2.8z",
  star: "M0,-4.8L1.3,-1.5L4.6,-1.5L1.9,.7L2.9,4L0,2L-2.9,4L-1.9,.7L-4.6,-1.5L-1.3,-1.5z",
  pentagon: "M0,-4.2L4,-1.2L2.5,3.5H-2.5L-4,-1.2z",
};
