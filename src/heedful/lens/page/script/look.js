// The look page: one input through one model. Its header, and every view in the order of the page.
import { pickers } from "./attention/selection.js";
import { firstChoice, reconciler } from "./choice.js";
import { clear, el, onWidth } from "./dom.js";
import { messages } from "./messages.js";
import { openPage } from "./page.js";
import * as ablation from "./views/ablation.js";
import * as beams from "./views/beams.js";
import * as entry from "./views/entry.js";
import { compare, head, heads } from "./views/heads.js";
import { classes, image, series } from "./views/input.js";
import * as layer from "./views/layer.js";
import * as lens from "./views/lens.js";
import * as model from "./views/model.js";
import * as numbers from "./views/numbers.js";
import * as patching from "./views/patching.js";
import * as positions from "./views/positions.js";
import * as tokens from "./views/tokens.js";
import { alignment, cross } from "./views/translation.js";
import { next, writing } from "./views/writing.js";

// A view shows itself where `fits(doc)` says so.
const views = [
  model, entry, image, series, classes, tokens, heads, head, compare, cross, writing, next, beams, alignment, numbers, layer, lens, positions,
  ablation, patching,
];

// [keys, message] of the help box.
const KEYS = [
  [["←", "→"], "keyStep"], [["↑", "↓"], "keyLayer"], [["[", "]"], "keyHead"], [["m"], "keyMean"],
  [["l"], "keyLevel"], [["k"], "keyLanguage"], [["d"], "keyTheme"], [["?"], "keyHelp"], [["Tab", "Enter"], "keyTab"],
];

const SIZES = [[28, "large"], [80, "medium"], [Infinity, "small"]];
const WIDE = /[\u1100-\u11ff\u3000-\u30ff\u3130-\u318f\u4e00-\u9fff\uac00-\ud7a3]/u;

// The more there is to read, the smaller it is written; Hangul and its like count twice.
function sizeOf(text) {
  const length = [...text].reduce((sum, letter) => sum + (WIDE.test(letter) ? 2 : 1), 0);
  return SIZES.find(([most]) => length <= most)[1];
}

// A text of more than three lines is folded, and opens at a touch.
function folded(tag, text, className, t) {
  const node = el(tag, { class: `${className} ${sizeOf(text)} folded` }, text);
  const turn = () => {
    const open = !node.classList.toggle("folded");
    button.setAttribute("aria-expanded", open);
    button.textContent = t(open ? "less" : "more");
  };
  const button = el("button", { type: "button", class: "unfold", hidden: true, "aria-expanded": "false", onclick: turn }, t("more"));
  onWidth(node, () => (button.hidden = node.classList.contains("folded") && node.scrollHeight <= node.clientHeight + 4));
  return [node, button];
}


function facts(doc, state, t) {
  const { model } = doc;
  const deep = state.get("level") === "deep" ? model.facts : [];
  const count = new Intl.NumberFormat(state.get("language"), { notation: "compact", maximumSignificantDigits: 3 });
  return el("p", { class: "facts" },
    el("b", {}, model.name), model.family !== model.name && el("span", {}, model.family),
    el("span", {}, t("parameters", { n: count.format(model.parameters) })),
    deep.map(([name, value]) => el("span", {}, el("code", {}, name), ` ${value}`)));
}

function questionText({ question, series }, t) {
  if (!series) return question;
  const named = [series.name, series.column].filter(Boolean).join(" · ");
  return named || question || t("continued", { read: series.context.length, written: series.forecast.length });
}

// A text, or the likeliest class with its share.
function answered(doc) {
  if (doc.answer || !doc.classes?.length) return [doc.answer];
  const { label, probability } = doc.classes[0];
  return [label, ` ${(100 * probability).toFixed(probability < 0.995 ? 0 : 1)}%`];
}

// The large words of the page: the question, quiet where there is an answer, and the answer.
function exchange(doc, t) {
  const question = questionText(doc, t);
  const [answer, share] = answered(doc);
  const lines = [[question, answer ? "question" : "question alone"], [answer, "answer"]].filter(([text]) => text);
  if (!lines.length) lines.push([doc.model.name, "question alone"]);
  const nodes = lines.map(([text, className], place) => folded(place ? "p" : "h1", text, className, t));
  if (share) nodes.at(-1)[0].append(el("small", {}, share));
  if (doc.ablation) nodes.splice(-1, 0, el("p", { class: "given" }, t("ablated", { n: doc.ablation.heads.length })));
  if (doc.given) nodes.splice(-1, 0, el("p", { class: "given" }, t("given")));
  return el("div", { class: "exchange" },
    doc.image && el("img", { src: doc.image.png, alt: t("image") }), el("div", {}, nodes));
}

function header({ doc, state, t }) {
  const root = el("header", { class: "opening" });
  function draw() {
    clear(root).append(
      el("p", { class: "eyebrow" }, t(doc.kind)),
      exchange(doc, t),
      facts(doc, state, t),
      ...(doc.unknown_words?.length
        ? [el("p", { class: "caution", role: "note" }, t("unknownWords", { words: doc.unknown_words.join(", ") }))] : []),
      el("p", { class: "caution", role: "note" }, t("caution"), doc.digits && ` ${t("rounded", { digits: doc.digits })}`));
  }
  draw();
  state.on(["language", "level"], draw);
  return root;
}

openPage({
  messages, views, header, keys: KEYS, levels: ["simple", "deep"], choice: firstChoice, reconcile: reconciler, tools: pickers,
});
