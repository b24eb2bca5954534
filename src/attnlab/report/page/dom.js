// Elements made from data. Text goes in as text nodes alone: nothing in a run's name, setting or translation is markup.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element. Attributes `on...` are listeners, `false` and `null` are left out; children are nodes or texts. */
export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** Text of a run: kept apart from its surroundings, in its own direction (a right-to-left name moves nothing else). */
export function quoted(text, attributes = {}) {
  return el("bdi", { dir: "auto", ...attributes }, text);
}

/** A panel with a heading and a sentence on how to read it; its number is its place on the page. */
export function panel(id, title, reading, ...children) {
  return el(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    el("h2", { id: `${id}-title` }, title),
    reading ? el("p", { class: "reading" }, reading) : null,
    ...children,
  );
}

/** In place of a panel's content: why there is none. */
export function nothing(why) {
  return el("p", { class: "nothing" }, why);
}

/** A labelled choice. options: [value, text] pairs. */
export function choice(label, options, value, onchange) {
  const box = el(
    "select",
    { onchange: (event) => onchange(event.target.value) },
    ...options.map(([key, text]) => el("option", { value: key, selected: key === value }, text)),
  );
  return el("label", { class: "choice" }, el("span", {}, label), box);
}

/** A button that is on or off. */
export function toggle(text, on, onchange) {
  const button = el("button", { type: "button", class: "toggle", "aria-pressed": String(on) }, text);
  button.addEventListener("click", () => {
    const now = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(now));
    onchange(now);
  });
  return button;
}
