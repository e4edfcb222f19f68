// The report page: the results of a run. Its header, and every section in the order of the page.
import { el } from "./dom.js";
import { phraseTranslator, section } from "./i18n.js";
import { messages } from "./messages.js";
import { openPage } from "./page.js";
import { attention, byLength, confusion, constructions, forecasts, images, training } from "./report/figures.js";
import { comparison, continuations, facts, notes, reading, samples, scores } from "./report/tables.js";
import * as positions from "./views/positions.js";

const views = [
  facts, scores, notes, constructions, byLength, comparison, confusion, samples, continuations, images, forecasts,
  attention, training, reading, positions,
];
const KEYS = [[["k"], "keyLanguage"], [["d"], "keyTheme"], [["?"], "keyHelp"], [["Tab", "Enter"], "keyTab"]];

function header({ doc, state, t }) {
  const eyebrow = el("p", { class: "eyebrow" }), title = el("h1", { class: "question alone medium", dir: "auto" });
  const phrase = phraseTranslator(section(messages, "phrases"), state);
  function draw() {
    eyebrow.textContent = t("report");
    title.textContent = phrase(doc.title) ?? doc.title;
    document.title = `${title.textContent} · Heedful`;
  }
  draw();
  state.on("language", draw);
  return el("header", { class: "opening" }, eyebrow, title);
}

openPage({ messages, views, header, keys: KEYS, levels: ["simple"], choice: () => ({ head: 0 }), reconcile: () => () => ({}) });
