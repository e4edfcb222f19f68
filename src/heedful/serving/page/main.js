// Opens the page: asks what is served, and sets a tool on the table for it.

import { createApi, Refused } from "./api.js";
import { bar } from "./bar.js";
import { el } from "./look/dom.js";
import { createState } from "./look/state.js";
import { firstChoice, remember } from "./memory.js";
import { complaint, createSpeech } from "./speech.js";
import { toolsOf } from "./tools.js";

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
