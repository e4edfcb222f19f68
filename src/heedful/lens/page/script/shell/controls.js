// The bar that stays in reach: which attention, layer and head; how it is told; how it looks.

import { el, clear, svg } from "../dom.js";
import { attentionOf, headsOf, siblings } from "../choice.js";
import { flip } from "../keyboard.js";

// Nothing where there is nothing to choose.
function picker(label, options, value, choose) {
  if (options.length < 2) return null;
  const select = el("select", { "aria-label": label, onchange: () => choose(select.value) },
    options.map(([key, text]) => el("option", { value: key, selected: String(key) === String(value) }, text)));
  return el("label", { class: "chooser" }, el("span", {}, label), select);
}

// One attention for each kind, to change between them: the same layer where it exists.
function kinds(doc, attention) {
  const firsts = new Map();
  for (const other of doc.attentions) {
    const key = `${other.stack}.${other.kind}`;
    if (!firsts.has(key) || other.layer === attention.layer) firsts.set(key, other.id);
  }
  return firsts;
}

export function pickers({ doc, state, t }) {
  const root = el("div", { class: "pickers", role: "group" });
  function draw() {
    const attention = attentionOf(doc, state.get("attention"));
    if (!attention) return;
    const focused = [...root.querySelectorAll("select")].indexOf(document.activeElement);
    const found = kinds(doc, attention);
    const choices = [...found].map(([key, id]) => [id, t(key)]);
    const layers = siblings(doc, attention).map((other) => [other.id, String(other.layer)]);
    const heads = headsOf(attention).map((head) => [head, head === "mean" ? t("mean") : String(head)]);
    const pickId = (id) => state.set({ attention: id });
    const pickHead = (head) => state.set({ head: head === "mean" ? head : Number(head) });
    const made = [
      picker(t("attention"), choices, attention.id, pickId), picker(t("layer"), layers, attention.id, pickId),
      picker(t("head"), heads, state.get("head"), pickHead),
    ];
    clear(root).append(...made.filter(Boolean));
    root.setAttribute("aria-label", t("attention"));
    root.querySelectorAll("select")[focused]?.focus();
  }
  draw();
  state.on(["attention", "head", "language"], draw);
  return root;
}

// Two words side by side, one of them pressed.
function pair(state, key, label, options) {
  const pressed = (value) => String(state.get(key) === value);
  return el("div", { class: "either", role: "group", "aria-label": label },
    options.map(([value, text]) => el("button", {
      type: "button", "aria-pressed": pressed(value), lang: key === "language" ? value : null,
      "data-set": `${key}:${value}`, onclick: () => state.set({ [key]: value }),
    }, text)));
}

function themeIcon() {
  return svg("svg", { viewBox: "0 0 20 20", width: 18, height: 18, "aria-hidden": "true" },
    svg("circle", { cx: 10, cy: 10, r: 7.25, fill: "none", stroke: "currentColor", "stroke-width": 1.5 }),
    svg("path", { d: "M10 4.5a5.5 5.5 0 0 1 0 11z", fill: "currentColor" }));
}

export function switches({ state, t }, openHelp) {
  const root = el("div", { class: "switches" });
  function draw() {
    const focused = [...root.querySelectorAll("button")].indexOf(document.activeElement);
    const themeWord = t(state.get("theme") === "light" ? "toDark" : "toLight");
    clear(root).append(
      pair(state, "level", t("level"), [["simple", t("simple")], ["deep", t("deep")]]),
      pair(state, "language", t("language"), [["en", "EN"], ["ko", "한국어"]]),
      el("button", {
        type: "button", class: "icon", "aria-label": themeWord, title: themeWord, "data-set": "theme",
        onclick: () => flip(state, "theme", "light", "dark"),
      }, themeIcon()),
      el("button", {
        type: "button", class: "icon asks", "aria-label": t("help"), title: `${t("help")} (?)`, onclick: openHelp,
      }, "?"));
    root.querySelectorAll("button")[focused]?.focus();
  }
  draw();
  state.on(["level", "language", "theme"], draw);
  return root;
}
