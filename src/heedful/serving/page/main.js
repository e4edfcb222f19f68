// Opens the page: asks what is served, and sets a tool on the table for it.

import { createApi, Refused } from "./api.js";
import { forecast } from "./forecast.js";
import { continueText, rewrite, translate } from "./generation.js";
import { classifyImage } from "./image.js";
import { el, svg } from "./look/dom.js";
import { createState } from "./look/state.js";
import { classify, compare, fillGaps } from "./reading.js";
import { answerQuestion, tagText } from "./spans.js";
import { complaint, createSpeech } from "./speech.js";

// What outlives the page: language and theme in this browser, as on the pages that `heedful look` writes; the tool in
// the address.
const ALLOWED = { language: ["en", "ko"], theme: ["light", "dark"] };

// A browser may be told to keep nothing.
function stored(key) {
  try {
    const value = localStorage.getItem(`heedful.${key}`);
    return ALLOWED[key].includes(value) ? value : null;
  } catch {
    return null;
  }
}

function store(key, value) {
  try {
    localStorage.setItem(`heedful.${key}`, value);
  } catch {
    // Not remembered: the page works all the same.
  }
}

const spoken = () => navigator.languages.map((tag) => tag.slice(0, 2)).find((tag) => ALLOWED.language.includes(tag));
const darkness = matchMedia("(prefers-color-scheme: dark)");

// The tool that the address names; anyone can write an address.
function named() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

function firstChoice() {
  return {
    language: stored("language") ?? spoken() ?? "en",
    theme: stored("theme") ?? (darkness.matches ? "dark" : "light"),
    tool: named(),
  };
}

// Keep what the reader changes from here on, and follow the address and the system.
function remember(state) {
  for (const key of Object.keys(ALLOWED)) {
    let known = state.get(key);
    state.on(key, () => {
      if (state.get(key) !== known) store(key, (known = state.get(key)));
    });
  }
  addEventListener("hashchange", () => {
    if (location.hash !== "#tool") state.set({ tool: named() }); // that one is the way past the bar
  });
  darkness.addEventListener("change", () => {
    if (!stored("theme")) state.set({ theme: darkness.matches ? "dark" : "light" });
  });
}

// The bar: whose page this is, its language, its light.

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

function bar(context) {
  return el("header", { class: "bar" }, brand(), el("div", { class: "switches" }, languages(context), themeButton(context)));
}

// Which tool serves which task. All translators share one: the languages choose among them.
const TOOLS = {
  translation: translate, language_model: continueText, "text-to-text": rewrite, classification: classify,
  "question-answering": answerQuestion, tagging: tagText, masked: fillGaps, embedding: compare, images: classifyImage, forecasting: forecast,
};

function toolsOf(models) {
  const known = models.filter((model) => model.task in TOOLS);
  const groups = known.filter((model) => model.task !== "translation").map((model) => [model]);
  const translators = known.filter((model) => model.task === "translation");
  if (translators.length) groups.unshift(translators);
  return groups.map((group) => {
    const { task, name } = group[0];
    const alone = groups.filter((other) => other[0].task === task).length === 1;
    return {
      name,
      label: (speech) => [speech.say("span", task), !alone && ` · ${name}`],
      mount: (root, context) => TOOLS[task](root, { ...context, models: group, model: group[0] }),
    };
  });
}

// The theme stands before anything asks for a colour; every sentence follows the language.
function dress(state, speech) {
  const put = () => {
    document.documentElement.dataset.theme = state.get("theme");
    document.documentElement.lang = state.get("language");
    speech.retell(document.body);
  };
  put();
  state.on(["theme", "language"], put);
}

// One link for each tool; what was typed into the others stays there.
function table(tools, context) {
  const { state, speech } = context;
  const links = tools.map((tool) => el("a", { href: `#${encodeURIComponent(tool.name)}` }, tool.label(speech)));
  const rooms = tools.map(() => el("section", { class: "tool", hidden: true }));
  const opened = new Set();

  function show() {
    const chosen = Math.max(0, tools.findIndex((tool) => tool.name === state.get("tool")));
    rooms.forEach((room, place) => (room.hidden = place !== chosen));
    links.forEach((link, place) => {
      if (place === chosen) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    });
    const link = links[chosen];
    link.parentNode?.scrollTo({ left: link.offsetLeft - 0.5 * (link.parentNode.clientWidth - link.offsetWidth) });
    if (!opened.has(chosen)) {
      tools[chosen].mount(rooms[chosen], context);
      speech.retell(rooms[chosen]);
      opened.add(chosen);
    }
  }

  const nav = el("nav", { class: "tools", "data-say-aria-label": "tools" }, links);
  nav.hidden = tools.length < 2;
  state.on("tool", show);
  requestAnimationFrame(show); // once it stands on the page and has a size
  return [nav, el("main", { id: "tool", tabindex: "-1" }, rooms)];
}

async function open() {
  const state = createState(firstChoice());
  const speech = createSpeech(state);
  const page = document.getElementById("page");
  const main = el("div", { class: "room" });
  page.append(speech.say("a", "skip", {}, { class: "skip", href: "#tool" }), bar({ state, speech }), main);
  dress(state, speech);
  remember(state);
  const api = createApi({ state, speech });
  try {
    const served = await api.get("page/models");
    main.append(...table(toolsOf(served.models), { state, speech, api, served }));
    main.append(el("footer", {}, speech.say("span", "footer"), " ", speech.say("a", "docs", {}, { href: "docs" })));
    speech.retell(main);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    main.append(el("div", { class: "tool" }, complaint(speech, error)));
  }
}

open();
