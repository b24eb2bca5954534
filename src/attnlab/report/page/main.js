// Which page this is, and, when it is served, when to take up new numbers.

import { redrawCharts } from "./chart.js";
import { forget, onSelection } from "./state.js";
import { studyPage } from "./study.js";
import { explorerPage } from "./explorer.js";

const POLL = 5000; // milliseconds
const PAGES = { study: studyPage, runs: explorerPage };

function show(page) {
  const [head, bar, content] = ["head", "legend", "content"].map((id) => document.getElementById(id));
  content.style.minHeight = `${content.offsetHeight}px`; // or the page would jump to its top
  forget();
  for (const host of [head, bar, content]) host.replaceChildren();
  onSelection(() => requestAnimationFrame(redrawCharts));
  PAGES[page.kind](page, head, bar, content);
  requestAnimationFrame(() => (content.style.minHeight = ""));
}

async function follow(version) {
  const typing = () => ["INPUT", "SELECT"].includes(document.activeElement?.tagName);
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, POLL));
    if (document.hidden || typing()) continue;
    try {
      const now = await (await fetch("/version")).text();
      if (now === version) continue;
      show(await (await fetch("/data")).json());
      version = now;
    } catch {
      continue; // the server was stopped: what is shown stays
    }
  }
}

const page = JSON.parse(document.getElementById("data").textContent);
show(page);
if (page.version) follow(page.version);
