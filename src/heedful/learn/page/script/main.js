// The shell of a page of the course: the bar, the reading level, the theme, progress, copy buttons and the figures.
import { either, el, onWidth, refill, replace } from "../lens/dom.js";
import { brand, store, stored, themeIcon } from "../lens/shell.js";

const root = document.documentElement;

function switches({ document: doc, message, choose }) {
  const { language, languages } = doc;
  const toggled = root.dataset.theme === "dark" ? "light" : "dark";
  const word = message(toggled === "dark" ? "toDark" : "toLight");
  const levels = ["simple", "deep"].map((level) => [level, message(`level.${level}`), { "data-set": `level:${level}` }]);
  return [
    doc.chapter ? either(message("level"), levels, root.dataset.level, (level) => choose("level", level)) : "",
    el("div", { class: "either", role: "group", "aria-label": message("language") }, [["en", "EN"], ["ko", "한국어"]].map(([name, text]) =>
      el("a", { href: languages[name], lang: name, hreflang: name, "aria-current": name === language && "true" }, text))),
    el("button", {
      type: "button", class: "icon", "aria-label": word, title: word, "data-set": "theme", "data-keep": "theme",
      onclick: () => choose("theme", toggled),
    }, themeIcon()),
  ];
}

// Screen readers hear what changes in the readouts of a figure that is used; a live region must outlast its drawings.
function announce(stage) {
  const region = el("p", { class: "skip", "aria-live": "polite" });
  let before = [];
  stage.after(region);
  new MutationObserver(() => {
    const texts = [...stage.querySelectorAll(".readout")].map((node) => node.textContent);
    const changed = texts.filter((text) => !before.includes(text));
    before = texts;
    if (changed.length && stage.matches(":focus-within, :hover")) region.textContent = changed.join(" ");
  }).observe(stage, { childList: true, subtree: true });
}

// Each figure is drawn when the page opens, and again when its width or the theme changes or it calls for it; `state`
// outlives that.
function figures(doc, drawings, redrawn) {
  for (const node of document.querySelectorAll("figure.live")) {
    const { data, messages } = doc.figures[node.dataset.figure];
    const stage = node.querySelector(".stage"), state = {};
    const message = (key, values = {}) => (messages[key] ?? key).replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
    const draw = () => refill(stage, () => {
      stage.style.minHeight = `${stage.offsetHeight}px`; // so that the page does not jump
      stage.replaceChildren();
      drawings[node.dataset.figure](stage, data, message, state, draw);
      stage.style.minHeight = "";
    });
    announce(stage);
    onWidth(stage, draw);
    redrawn.push(draw);
  }
}

function copyButtons(message) {
  for (const code of navigator.clipboard ? document.querySelectorAll("pre.code") : []) {
    const button = el("button", { type: "button", class: "copy", onclick: async () => {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = message("copied");
    } }, message("copy"));
    code.before(button);
  }
}

// A chapter is read when its end has been seen; the list of chapters marks those.
function progress(doc, message) {
  const mark = (chapter) => {
    for (const link of document.querySelectorAll(`li[data-chapter="${chapter}"] a:not(:has(.read))`)) {
      link.append(el("span", { class: "read", role: "img", "aria-label": message("read"), title: message("read") }, "✓"));
    }
  };
  for (const { dataset } of document.querySelectorAll("li[data-chapter]")) if (stored(`learn.${dataset.chapter}`)) mark(dataset.chapter);
  if (!doc.chapter) return;
  new IntersectionObserver(([{ isIntersecting }]) => {
    if (!isIntersecting) return;
    store(`learn.${doc.chapter}`, "read");
    mark(doc.chapter);
  }).observe(document.querySelector(".neighbors"));
}

// The theme and the level must stand before anything is painted.
function dress() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = stored("theme") ?? (dark ? "dark" : "light");
  root.dataset.level = stored("learn.level") === "deep" ? "deep" : "simple";
}

// `drawings` are the functions of the page's figures, by name.
export function openPage(drawings) {
  dress();
  addEventListener("DOMContentLoaded", () => {
    const doc = JSON.parse(document.getElementById("document").textContent);
    const message = (key) => doc.messages[key] ?? key;
    const redrawn = [], bar = document.querySelector(".bar"), right = el("div", { class: "switches" });
    const show = () => replace(right, switches({ document: doc, message, choose }));
    function choose(key, value) {
      root.dataset[key] = value;
      store(key === "level" ? "learn.level" : key, value);
      for (const box of document.querySelectorAll("details.deep")) box.open = root.dataset.level === "deep";
      show();
      if (key === "theme") redrawn.forEach((draw) => draw());
    }
    bar.append(el("a", { class: "home", href: doc.home }, brand()), right);
    show();
    const wide = matchMedia("(min-width: 68rem)"), contents = document.querySelector(".contents details");
    const unfold = () => contents?.toggleAttribute("open", wide.matches);
    unfold();
    wide.addEventListener("change", unfold);
    for (const box of document.querySelectorAll("details.deep")) box.open = root.dataset.level === "deep";
    copyButtons(message);
    progress(doc, message);
    figures(doc, drawings, redrawn);
  });
}
