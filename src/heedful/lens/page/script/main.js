// Opens the page: reads the document, builds the shell, and mounts the views that fit.

import { createArrays } from "./arrays.js";
import { firstChoice, settler } from "./choice.js";
import { el, svg } from "./dom.js";
import { listen } from "./keyboard.js";
import { fromAddress, remember, remembered } from "./memory.js";
import { contents, go } from "./shell/contents.js";
import { pickers, switches } from "./shell/controls.js";
import { header } from "./shell/header.js";
import { help } from "./shell/help.js";
import { arriveWhenNear, panel } from "./shell/panels.js";
import { createState } from "./state.js";
import { views } from "./views.js";
import { shellWords, translator } from "./words.js";

function openedState(doc) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const choice = { level: "simple", language: doc.language, theme: dark ? "dark" : "light", ...firstChoice(doc) };
  const state = createState(choice, settler(doc));
  state.set({ ...remembered(doc), ...fromAddress(doc) });
  return state;
}

// The theme must stand before anything asks for a colour.
function dress(state) {
  const put = () => {
    document.documentElement.dataset.theme = state.get("theme");
    document.documentElement.dataset.level = state.get("level");
    document.documentElement.lang = state.get("language");
  };
  put();
  state.on(["theme", "language", "level"], put);
}

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

// A sentence of the shell that follows the language.
function spoken({ state, t }, key, tag, attributes) {
  const root = el(tag, attributes, t(key));
  state.on("language", () => (root.textContent = t(key)));
  return root;
}

function open() {
  const doc = JSON.parse(document.getElementById("document").textContent);
  const state = openedState(doc);
  dress(state);
  const context = { doc, state, arrays: createArrays(doc.arrays), t: translator(shellWords, state) };
  const helpBox = help(context);
  const panels = views.filter((view) => view.fits(doc)).map((view) => panel(view, context));
  document.getElementById("page").append(
    spoken(context, "skip", "a", { class: "skip", href: "#views" }),
    el("div", { class: "bar" }, brand(), switches(context, helpBox.open), pickers(context)),
    header(context),
    el("div", { class: "columns" },
      contents(panels, context), el("main", { id: "views", tabindex: "-1" }, panels.map((each) => each.root))),
    spoken(context, "footer", "footer"),
    helpBox.box);
  listen(context, helpBox.open);
  remember(state, doc);
  const wanted = panels.find((each) => each.name === state.get("view"));
  if (wanted) go(wanted);
  window.heedful = { state, doc, ready: arriveWhenNear(panels) };
}

open();
