// Draws a view, and draws it again when its width or the state it follows changes.
import { clear, el } from "../../dom.js";
import { tip } from "./tip.js";

function failed(error) {
  console.error(error);
  return [el("p", { class: "failure" }, error.message)];
}

// `draw(width, note)` gives the nodes (or a promise of them); the last one asked for wins, and what had the
// focus (by its data-keep) has it again. Gives a function that draws again.
export function drawn(root, state, keys, draw) {
  const stage = el("div", { class: "figure-stage waiting" });
  root.append(stage);
  const note = tip(root);
  root.style.position = "relative";
  let turn = 0;
  let width = 0;

  async function again() {
    turn += 1;
    const mine = turn;
    const nodes = await Promise.resolve().then(() => draw(width, note)).catch(failed);
    if (mine !== turn) return;
    const kept = stage.contains(document.activeElement) ? document.activeElement.dataset.keep : undefined;
    const unfolded = stage.querySelector("details[open]") !== null;
    note.hide();
    clear(stage).append(...nodes);
    stage.classList.remove("waiting");
    if (unfolded) stage.querySelector("details")?.setAttribute("open", "");
    if (kept) stage.querySelector(`[data-keep="${CSS.escape(kept)}"]`)?.focus({ preventScroll: true });
  }

  state.on([...keys, "language", "level", "theme"], again);
  new ResizeObserver(() => {
    const now = Math.floor(stage.clientWidth);
    if (!now || now === width) return;
    width = now;
    again();
  }).observe(stage);
  return again;
}
