// The head of the page: what was asked, what came back, and of which model.

import { el, clear } from "../dom.js";

const LONG = 220;

// Long texts are folded, and open at a touch.
function folded(tag, text, className, t) {
  const node = el(tag, { class: className }, text);
  if (text.length <= LONG) return node;
  node.classList.add("long", "folded");
  const button = el("button", { type: "button", class: "unfold", "aria-expanded": "false" }, t("more"));
  button.addEventListener("click", () => {
    const open = !node.classList.toggle("folded");
    button.setAttribute("aria-expanded", open);
    button.textContent = t(open ? "less" : "more");
  });
  return [node, button];
}

function counted(number, language) {
  return new Intl.NumberFormat(language, { notation: "compact", maximumSignificantDigits: 3 }).format(number);
}

function facts(doc, state, t) {
  const { model } = doc;
  const deep = state.get("level") === "deep" ? model.facts : [];
  return el("p", { class: "facts" },
    el("b", {}, model.name), el("span", {}, model.family),
    el("span", {}, t("parameters", { n: counted(model.parameters, state.get("language")) })),
    deep.map(([name, value]) => el("span", {}, el("code", {}, name), ` ${value}`)));
}

function asked(doc) {
  if (doc.question || !doc.series) return doc.question;
  return [doc.series.name, doc.series.column].filter(Boolean).join(" · ");
}

// A text, or the likeliest class with its share.
function answered(doc) {
  if (doc.answer || !doc.classes?.length) return [doc.answer];
  const { label, probability } = doc.classes[0];
  return [label, ` ${(100 * probability).toFixed(probability < 0.995 ? 0 : 1)} %`];
}

// The large words of the page: the question, quiet where there is an answer, and the answer.
function exchange(doc, t) {
  const question = asked(doc);
  const [answer, share] = answered(doc);
  const lines = [[question, answer ? "question" : "question alone"], [answer, "answer"]].filter(([text]) => text);
  if (!lines.length) lines.push([doc.model.name, "question alone"]);
  const nodes = lines.flatMap(([text, className], place) => folded(place ? "p" : "h1", text, className, t));
  if (share) nodes.at(-1).append(el("small", {}, share));
  return el("div", { class: "exchange" },
    doc.image && el("img", { src: doc.image.png, alt: t("image") }), el("div", {}, nodes));
}

export function header({ doc, state, t }) {
  const root = el("header", { class: "opening" });
  function draw() {
    clear(root).append(
      el("p", { class: "eyebrow" }, t(doc.kind)),
      exchange(doc, t),
      facts(doc, state, t),
      el("p", { class: "caution", role: "note" }, t("caution")));
  }
  draw();
  state.on(["language", "level"], draw);
  return root;
}
