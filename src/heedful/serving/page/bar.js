// The bar: whose page this is, its language, its light.

import { el, svg } from "./look/dom.js";

// Many lines that meet in one: what attention does.
function brand() {
  const lines = [3, 7.5, 12, 16.5, 21].map((y, row) => svg("path", {
    d: `M2 ${y}C12 ${y} 12 12 20 12`, fill: "none", stroke: "currentColor", "stroke-linecap": "round",
    "stroke-width": row === 1 ? 2.4 : 1, opacity: row === 1 ? 1 : 0.55,
  }));
  const dot = svg("circle", { cx: 20, cy: 12, r: 2.6, fill: "currentColor" });
  return el("span", { class: "brand" },
    svg("svg", { viewBox: "0 0 24 24", width: 22, height: 22, "aria-hidden": "true" }, lines, dot), "Heedful");
}

function themeButton({ state, speech }) {
  const button = el("button", {
    type: "button", class: "icon", onclick: () => state.set({ theme: state.get("theme") === "dark" ? "light" : "dark" }),
  }, svg("svg", { viewBox: "0 0 20 20", width: 18, height: 18, "aria-hidden": "true" },
    svg("circle", { cx: 10, cy: 10, r: 7.25, fill: "none", stroke: "currentColor", "stroke-width": 1.5 }),
    svg("path", { d: "M10 4.5a5.5 5.5 0 0 1 0 11z", fill: "currentColor" })));
  const name = () => speech.named(button, state.get("theme") === "dark" ? "toLight" : "toDark");
  name();
  state.on(["theme", "language"], name);
  return button;
}

function languages({ state }) {
  const buttons = [["en", "EN"], ["ko", "한국어"]].map(([code, name]) => el("button", {
    type: "button", lang: code, "data-set": `language:${code}`, onclick: () => state.set({ language: code }),
  }, name));
  const press = () => buttons.forEach((one) => one.setAttribute("aria-pressed", one.lang === state.get("language")));
  press();
  state.on("language", press);
  return el("div", { class: "either", role: "group", "data-say-aria-label": "language" }, buttons);
}

export function bar(context) {
  return el("header", { class: "bar" }, brand(), el("div", { class: "switches" }, languages(context), themeButton(context)));
}
