// The bar that stays in reach: reading level, language and theme; the keys; and what the browser remembers.
import { attentionOf, headsOf, kindOf, ofKind } from "./choice.js";
import { either, el, replace } from "./dom.js";
import { store, stored, themeIcon } from "./shell.js";

export function switches({ state, t, levels }, openHelp) {
  const root = el("div", { class: "switches" });
  const pair = (key, options) => either(t(key), options.map(([value, text, attributes]) =>
    [value, text, { "data-set": `${key}:${value}`, ...attributes }]), state.get(key), (value) => state.set({ [key]: value }));
  function draw() {
    const themeWord = t(state.get("theme") === "light" ? "toDark" : "toLight");
    replace(root, [
      levels.length > 1 ? pair("level", levels.map((level) => [level, t(`level.${level}`)])) : "",
      pair("language", [["en", "EN", { lang: "en" }], ["ko", "한국어", { lang: "ko" }]]),
      el("button", {
        type: "button", class: "icon", "aria-label": themeWord, title: themeWord, "data-set": "theme", "data-keep": "theme",
        onclick: () => flip(state, "theme", "light", "dark"),
      }, themeIcon()),
      openHelp ? el("button", {
        type: "button", class: "icon asks", "aria-label": t("help"), title: `${t("help")} (?)`, "data-keep": "help",
        onclick: openHelp,
      }, "?") : "",
    ]);
  }
  draw();
  state.on(["level", "language", "theme"], draw);
  return root;
}

// One key for each thing that is done often. A field that takes letters, or uses the arrows itself, comes first;
// so does a view that handles a key and calls preventDefault.

const TAKES_LETTERS = "select, textarea, [contenteditable], dialog[open], input:not([type=range], [type=checkbox], [type=radio])";
const TAKES_ARROWS = "input, [role=slider], [role=grid], [role=tablist], [role=radiogroup]";

// To the attention or head that stands `by` places further, where there is one.
function move(doc, state, key, by) {
  const attention = attentionOf(doc, state.get("attention"));
  if (!attention) return;
  const places = key === "head" ? headsOf(attention) : ofKind(doc, kindOf(attention)).map(({ id }) => id);
  const next = places[places.indexOf(state.get(key)) + by];
  if (next !== undefined) state.set({ [key]: next });
}

function flip(state, key, one, other) {
  state.set({ [key]: state.get(key) === one ? other : one });
}

export function listen({ doc, state, levels, signal }, openHelp) {
  const looking = {
    ArrowLeft: () => state.set({ step: state.get("step") - 1 }),
    ArrowRight: () => state.set({ step: state.get("step") + 1 }),
    ArrowUp: () => move(doc, state, "attention", 1),
    ArrowDown: () => move(doc, state, "attention", -1),
    "[": () => move(doc, state, "head", -1),
    "]": () => move(doc, state, "head", 1),
    m: () => state.set({ head: "mean" }),
    l: () => flip(state, "level", ...levels),
  };
  const actions = {
    ...(doc.attentions ? looking : {}),
    k: () => flip(state, "language", "en", "ko"),
    d: () => flip(state, "theme", "light", "dark"),
    "?": openHelp,
  };
  // With a Korean keyboard the same keys give jamo.
  const jamo = { ㅡ: "m", ㅣ: "l", ㅏ: "k", ㅇ: "d" };
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const taken = event.key.startsWith("Arrow") ? `${TAKES_LETTERS}, ${TAKES_ARROWS}` : TAKES_LETTERS;
    if (event.target.closest?.(taken)) return;
    const action = actions[jamo[event.key] ?? event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }, { signal });
}

// What outlives the page: level, language and theme in this browser, and every choice in the address.

const KEPT = ["level", "language", "theme"];
const SHARED = [...KEPT, "attention", "head", "step", "view"];
const ALLOWED = { language: ["en", "ko"], theme: ["light", "dark"] };

// Of these keys, those whose text can be read: `textOf(key)` gives it, or null.
function readAll(keys, textOf, doc, levels) {
  const allowed = { ...ALLOWED, level: levels, attention: doc.attentions?.map(({ id }) => id) ?? [] };
  const isReadable = ([key, text]) =>
    allowed[key]?.includes(text) ?? (key === "view" || (key === "head" && text === "mean") || /^\d+$/.test(text));
  const entries = keys.map((key) => [key, textOf(key)]).filter(([, text]) => text !== null).filter(isReadable);
  return Object.fromEntries(entries.map(([key, text]) => [key, /^\d+$/.test(text) ? Number(text) : text]));
}

// The choices that the address holds.
export function fromAddress(doc, levels) {
  const parameters = new URLSearchParams(location.hash.slice(1));
  return readAll(SHARED, (key) => parameters.get(key), doc, levels);
}

export const remembered = (doc, levels) => readAll(KEPT, stored, doc, levels);

// Keep what the reader changes from here on, and follow an address that changes.
export function remember(state, doc, levels, signal) {
  const opened = Object.fromEntries(SHARED.map((key) => [key, state.get(key)]));
  const touched = new Set(Object.keys(fromAddress(doc, levels)));
  state.on(SHARED, () => {
    for (const key of SHARED) if (state.get(key) !== opened[key]) touched.add(key);
    for (const key of KEPT) if (touched.has(key)) store(key, state.get(key));
    const address = new URLSearchParams([...touched].map((key) => [key, state.get(key)]));
    try {
      history.replaceState(null, "", `#${address}`);
    } catch {
      // Some browsers count changes of the address and refuse too many.
    }
  });
  addEventListener("hashchange", () => state.set(fromAddress(doc, levels)), { signal });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (query) => {
    if (!touched.has("theme") && !stored("theme")) state.set({ theme: query.matches ? "dark" : "light" });
  }, { signal });
}
