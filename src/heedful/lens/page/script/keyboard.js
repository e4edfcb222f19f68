// One key for each thing that is done often. A field that takes letters, or uses the arrows itself, comes first;
// so does a view that handles a key and calls preventDefault.

import { attentionOf, headsOf, siblings } from "./choice.js";

const TAKES_LETTERS = "select, textarea, [contenteditable], dialog[open], input:not([type=range], [type=checkbox], [type=radio])";
const TAKES_ARROWS = "input, [role=slider], [role=grid], [role=tablist], [role=radiogroup]";

export function moveLayer(doc, state, by) {
  const attention = attentionOf(doc, state.get("attention"));
  if (!attention) return;
  const all = siblings(doc, attention);
  const next = all[all.indexOf(attention) + by];
  if (next) state.set({ attention: next.id });
}

export function moveHead(doc, state, by) {
  const attention = attentionOf(doc, state.get("attention"));
  if (!attention) return;
  const places = headsOf(attention);
  const next = places[places.indexOf(state.get("head")) + by];
  if (next !== undefined) state.set({ head: next });
}

export function flip(state, key, one, other) {
  state.set({ [key]: state.get(key) === one ? other : one });
}

export function listen({ doc, state }, openHelp) {
  const actions = {
    ArrowLeft: () => state.set({ step: state.get("step") - 1 }),
    ArrowRight: () => state.set({ step: state.get("step") + 1 }),
    ArrowUp: () => moveLayer(doc, state, 1),
    ArrowDown: () => moveLayer(doc, state, -1),
    "[": () => moveHead(doc, state, -1),
    "]": () => moveHead(doc, state, 1),
    m: () => state.set({ head: "mean" }),
    l: () => flip(state, "level", "simple", "deep"),
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
  });
}
