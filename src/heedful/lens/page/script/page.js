// The page around the views: the bar, the header, the list of views, the help; the same for a look and for a report.
import { createArrays } from "./arrays.js";
import { fromAddress, listen, remember, remembered, switches } from "./controls.js";
import { clear, el, onKeys } from "./dom.js";
import { section, translator } from "./i18n.js";
import { arriveWhenNear, panel } from "./panels.js";
import { brand } from "./shell.js";
import { createState } from "./state.js";

const HELD = 1500;

function contents(panels, { state, t, open, signal }) {
  const visit = (each) => (event) => {
    event.preventDefault(); // the address keeps the reader's choices, so a link must not replace it
    open(each.name);
  };
  const links = new Map(panels.map((each) => [each.root, el("a", { href: `#view-${each.name}`, onclick: visit(each) })]));
  const label = el("p", { class: "label" });
  const list = el("ul", {}, [...links.values()].map((link) => el("li", {}, link)));
  const root = el("nav", { class: "contents" }, label, list);

  function draw() {
    label.textContent = t("contents");
    root.setAttribute("aria-label", t("contents"));
    for (const each of panels) links.get(each.root).textContent = each.title();
  }
  draw();
  state.on("language", draw);
  follow(links, root, signal);
  return root;
}

// To a view, for the eye and for the keyboard.
function go(panel) {
  panel.arrive();
  panel.root.scrollIntoView();
  hold(panel.root);
  const title = panel.root.querySelector("h2");
  title.setAttribute("tabindex", "-1");
  title.focus({ preventScroll: true });
}

// Views above draw themselves as they come near and push this one away; stay with it until the reader moves.
function hold(root) {
  const observer = new ResizeObserver(() => root.scrollIntoView());
  const stop = () => observer.disconnect();
  observer.observe(root.parentNode);
  for (const moved of ["wheel", "touchstart", "pointerdown", "keydown"]) {
    addEventListener(moved, stop, { once: true, passive: true });
  }
  setTimeout(stop, HELD);
}

// Mark the view that is read now: the last that has come up to a third of the window.
function follow(links, root, signal) {
  let current = null, planned = false;
  function mark() {
    planned = false;
    const above = [...links.keys()].filter((panel) => panel.getBoundingClientRect().top < innerHeight / 3);
    const link = links.get(above.at(-1));
    if (link === current) return;
    current?.removeAttribute("aria-current");
    link?.setAttribute("aria-current", "true");
    current = link;
    const list = root.querySelector("ul");
    if (link && list.scrollWidth > list.clientWidth) list.scrollTo({ left: link.offsetLeft - list.clientWidth / 3 });
  }
  addEventListener("scroll", () => {
    if (!planned) requestAnimationFrame(mark);
    planned = true;
  }, { passive: true, signal });
}

// What each key does, in a box that `?` closes. Gives the box and the function that opens it.
function help({ t }, keys) {
  const box = el("dialog", { class: "keys", onclick: (event) => event.target === box && box.close() });
  onKeys(box, (key) => (key === "?" ? box.close() : false));
  function open() {
    clear(box).append(
      el("h2", {}, t("help")),
      el("dl", {}, keys.map(([names, word]) => [
        el("dt", {}, names.map((key) => el("kbd", {}, key))), el("dd", {}, t(word)),
      ])),
      el("button", { type: "button", onclick: () => box.close() }, t("close")));
    box.setAttribute("aria-label", t("help"));
    if (!box.open) box.showModal();
  }
  return { box, open };
}

// The theme must stand before anything asks for a color. On paper it is always light.
function dress(state, signal) {
  const paper = matchMedia("print");
  const put = () => {
    document.documentElement.dataset.theme = paper.matches ? "light" : state.get("theme");
    document.documentElement.dataset.level = state.get("level");
    document.documentElement.lang = state.get("language");
  };
  put();
  state.on(["theme", "language", "level"], put);
  paper.addEventListener("change", () => state.notify("theme"), { signal });
}

// A sentence of the shell that follows the language.
function spoken({ state, t }, key, tag, attributes) {
  const root = el(tag, attributes, t(key));
  state.on("language", () => (root.textContent = t(key)));
  return root;
}

// What a page that shows another document keeps of the choices.
const STAYING = ["level", "language", "theme", "view", "attention", "head", "compare", "step", "pair"];

// Once a view has drawn it, unless the reader has gone elsewhere.
function refocus(selector, signal) {
  const observer = new MutationObserver(() => {
    const node = document.querySelector(selector);
    if (!node) return;
    observer.disconnect();
    if (document.activeElement === document.body) node.focus({ preventScroll: true });
  });
  observer.observe(document.getElementById("page"), { childList: true, subtree: true });
  signal.addEventListener("abort", () => observer.disconnect());
}

// Shows a document in place of the page `before`. Panels keep their heights until they are drawn, so that nothing moves
// under the reader, and what had the focus (by its data-keep) has it again.
function show(doc, { messages, views, header, keys, levels, choice, reconcile, tools }, before) {
  const closing = new AbortController(), { signal } = closing;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const opening = { level: levels[0], language: doc.language, theme: dark ? "dark" : "light", view: null };
  const staying = Object.fromEntries(before ? STAYING.map((key) => [key, before.state.get(key)]) : []);
  const state = createState({ ...opening, ...choice(doc), ...staying }, reconcile(doc));
  state.set(before ? {} : { ...remembered(doc, levels), ...fromAddress(doc, levels) });
  dress(state, signal);
  const t = translator([section(messages, "common")], state);
  const context = { doc, state, messages, levels, t, signal, arrays: createArrays(doc.arrays) };
  const helpBox = help(context, keys);
  const panels = views.filter((view) => view.fits(doc)).map((view) => panel(view, context));
  // To the first of these views that the page has.
  context.open = (...names) => {
    const [target] = names.flatMap((name) => panels.filter((each) => each.name === name));
    if (!target) return;
    state.set({ view: target.name });
    go(target);
  };
  const focused = before && { view: document.activeElement.closest(".panel")?.id, key: document.activeElement.dataset.keep };
  for (const { name, root } of before?.panels ?? []) {
    panels.find((each) => each.name === name)?.root.style.setProperty("min-height", `${root.offsetHeight}px`);
  }
  before?.closing.abort();
  document.getElementById("page").replaceChildren(
    spoken(context, "skip", "a", { class: "skip", href: "#views" }),
    el("div", { class: "bar" }, brand(), switches(context, helpBox.open), tools?.(context) ?? ""),
    header(context),
    el("div", { class: "columns" }, panels.length > 1 ? contents(panels, context) : "",
      el("main", { id: "views", tabindex: "-1" }, panels.map((each) => each.root))),
    spoken(context, "footer", "footer"),
    helpBox.box);
  listen(context, helpBox.open);
  remember(state, doc, levels, signal);
  const wanted = !before && panels.find((each) => each.name === state.get("view"));
  if (wanted) go(wanted);
  if (focused?.key) refocus(`#${focused.view} [data-keep="${CSS.escape(focused.key)}"]`, signal);
  const ready = arriveWhenNear(panels, signal);
  if (before) setTimeout(() => panels.forEach(({ root }) => root.style.removeProperty("min-height")), HELD);
  window.heedful = { state, doc, ready };
  return { state, panels, closing };
}

// Opens the page of the document in it. `views` show themselves where they fit; `header(context)` stands above them
// and `tools(context)` in the bar; `keys` are listed by the help; `choice(doc)` and `reconcile(doc)` make the state;
// `levels` are the reading levels to choose from. A server's page, which holds this one in a frame, may send another
// document.
export function openPage(options) {
  let page = show(JSON.parse(document.getElementById("document").textContent), options, null);
  addEventListener("message", ({ source, data }) => {
    if (source === window.parent && source !== window && data?.document) page = show(data.document, options, page);
  });
}
