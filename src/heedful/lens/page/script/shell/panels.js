// A panel for each view: heading, one sentence, the buttons, and a place that the view draws into when it comes near.

import { el, clear } from "../dom.js";
import { downloadable } from "../export.js";
import { translator } from "../words.js";

const AHEAD = "500px 0px";

// A view's word, in the variant that fits this document and what is chosen, where there is one.
function varied(view, { doc, state, t }) {
  return (key) => {
    const special = `${key}.${view.variant?.(doc, state)}`;
    return t(special in view.words.en ? special : key);
  };
}

function headed(view, section, { state, t }, said) {
  const title = el("h2", { id: `title-${view.name}` });
  const sentence = el("p", { class: "sentence" });
  const saves = downloadable(section, `heedful-${view.name}`);
  function draw() {
    title.textContent = said("title");
    const own = view.words[state.get("language")]?.[state.get("level")];
    sentence.textContent = own ? said(state.get("level")) : "";
    [...saves.children].forEach((button, index) => {
      button.setAttribute("aria-label", t(index ? "savePng" : "saveSvg", { title: said("title") }));
      button.title = button.getAttribute("aria-label");
    });
  }
  draw();
  state.on(["language", "level", "attention"], draw);
  return el("div", { class: "panel-head" }, el("div", {}, title, sentence), saves);
}

// The state as a view sees it: while the view is far away, what it should hear waits.
function patient(state) {
  const waiting = new Set();
  let near = true;
  return {
    state: {
      ...state,
      on: (keys, callback) => state.on(keys, () => (near ? callback() : waiting.add(callback))),
    },
    come() {
      near = true;
      const now = [...waiting];
      waiting.clear();
      now.forEach((callback) => callback());
    },
    leave() {
      near = false;
    },
  };
}

// A panel, with functions for its coming near and its leaving. The view is mounted when it first comes.
export function panel(view, shared) {
  const t = translator(view.words, shared.state);
  const { state, come, leave } = patient(shared.state);
  const section = el("section", { class: "view", "data-view": view.name, "aria-labelledby": `title-${view.name}` });
  const said = varied(view, { ...shared, t });
  const head = headed(view, section, { ...shared, t }, said);
  const root = el("article", { class: "panel waiting", id: `view-${view.name}` }, head, section);
  let mounted = null;

  async function mount() {
    root.classList.remove("waiting");
    try {
      await view.mount(section, { ...shared, state, t });
    } catch (error) {
      console.error(error);
      clear(section).append(el("p", { class: "failure" }, t("failed", { reason: error.message })));
    }
  }

  function arrive() {
    come();
    return (mounted ??= mount());
  }
  return { name: view.name, root, title: () => said("title"), arrive, leave };
}

// Let each panel arrive as it comes near; all at once where a browser cannot tell, and before printing.
export function arriveWhenNear(panels) {
  const byRoot = new Map(panels.map((each) => [each.root, each]));
  const all = () => Promise.all(panels.map((each) => each.arrive()));
  addEventListener("beforeprint", all);
  if (!panels.length || !("IntersectionObserver" in window)) return all();
  return new Promise((resolve) => {
    const observer = new IntersectionObserver((entries) => {
      const [near, far] = [true, false].map((seen) => entries.filter((entry) => entry.isIntersecting === seen));
      far.forEach((entry) => byRoot.get(entry.target).leave());
      resolve(Promise.all(near.map((entry) => byRoot.get(entry.target).arrive())));
    }, { rootMargin: AHEAD });
    panels.forEach((each) => observer.observe(each.root));
  });
}
