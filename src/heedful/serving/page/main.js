// Opens the page: asks what is served, and sets a tool on the table for it.

import { createApi, Refused } from "./api.js";
import { forecast } from "./forecast.js";
import { continueText, rewrite, translate } from "./generation.js";
import { classifyImage } from "./image.js";
import { switches } from "./look/controls.js";
import { el } from "./look/dom.js";
import { brand, store, stored } from "./look/shell.js";
import { createState } from "./look/state.js";
import { answerQuestion, classify, compare, fillGaps, tagText } from "./reading.js";
import { complaint, createSpeech } from "./speech.js";

// What outlives the page: language and theme in this browser, as on the pages that `heedful look` writes; the tool in
// the address.
const ALLOWED = { language: ["en", "ko"], theme: ["light", "dark"] };

const remembered = (key) => (ALLOWED[key].includes(stored(key)) ? stored(key) : null);
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

// Keep what the reader changes from here on, and follow the address and the system.
function remember(state) {
  for (const key of Object.keys(ALLOWED)) state.on(key, () => store(key, state.get(key)));
  addEventListener("hashchange", () => {
    if (location.hash !== "#tool") state.set({ tool: named() }); // that one is the way past the bar
  });
  darkness.addEventListener("change", () => {
    if (!remembered("theme")) state.set({ theme: darkness.matches ? "dark" : "light" });
  });
}

// Which tool serves which task. All translators share one: the languages choose among them.
const TOOLS = {
  translation: translate, "language-model": continueText, "text-to-text": rewrite, classification: classify,
  "question-answering": answerQuestion, tagging: tagText, "masked-lm": fillGaps, embedding: compare, images: classifyImage, forecasting: forecast,
};

function toolsOf(models) {
  const current = models.filter((model) => model.task in TOOLS);
  const groups = current.filter((model) => model.task !== "translation").map((model) => [model]);
  const translators = current.filter((model) => model.task === "translation");
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
  const state = createState({
    language: remembered("language") ?? spoken() ?? "en",
    theme: remembered("theme") ?? (darkness.matches ? "dark" : "light"),
    tool: named(),
  });
  const speech = createSpeech(state);
  const page = document.getElementById("page");
  // The theme stands before anything asks for a color; every sentence follows the language.
  const dress = () => {
    document.documentElement.dataset.theme = state.get("theme");
    document.documentElement.lang = state.get("language");
    speech.retell(document.body);
  };
  const main = el("div", { class: "room" });
  page.append(speech.say("a", "skip", {}, { class: "skip", href: "#tool" }), el("header", { class: "bar" }, brand(), switches({ state, t: speech.t, levels: [] })), main);
  dress();
  state.on(["theme", "language"], dress);
  remember(state);
  const api = createApi({ speech });
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
