// One or more maps of the same tokens, with one shared cell under the pointer or the keyboard.
import { el, svg } from "../../dom.js";
import { cellAt, frame } from "./frame.js";
import { paint } from "./panels.js";

const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/** A place for maps as wide as `root`: `draw(spec)` shows them, `onCell` and `onPick` hear of the reader's cell. */
export function createMap(root, { onCell, onPick }) {
  const drawing = svg("svg", { role: "img", class: "map" });
  const node = el("div", { class: "scroll map-frame", tabindex: "0", role: "group" }, drawing);
  let spec = null, sizes = null, cell = null, marks = [], width = 0;

  const show = (next) => {
    if (next?.query === cell?.query && next?.key === cell?.key) return;
    cell = next;
    for (const mark of marks) mark(cell);
    onCell(cell);
  };
  const under = (event) => {
    const box = drawing.getBoundingClientRect();
    return sizes && cellAt(sizes, event.clientX - box.left, event.clientY - box.top);
  };
  drawing.addEventListener("pointermove", (event) => show(under(event)));
  drawing.addEventListener("pointerleave", () => show(node.matches(":focus-visible") ? cell : null));
  drawing.addEventListener("click", (event) => {
    show(under(event));
    if (cell) onPick(cell);
  });
  node.addEventListener("blur", () => show(null));
  node.addEventListener("keydown", (event) => {
    if (!spec || event.ctrlKey || event.metaKey || event.altKey) return;
    const move = MOVES[event.key];
    if (move) show(moved(cell, move, spec));
    else if (event.key === "Escape") show(null);
    else if ((event.key === "Enter" || event.key === " ") && cell) onPick(cell);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  const redraw = () => {
    if (!spec || !width) return;
    sizes = frame(spec, width);
    marks = paint(drawing, spec, sizes);
    for (const mark of marks) mark(cell);
  };
  new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width === width) return;
    width = contentRect.width;
    redraw();
  }).observe(root);
  return {
    node,
    draw(next) {
      spec = next;
      if (cell && (cell.query >= spec.rows.length || cell.key >= spec.columns.length)) cell = null;
      node.setAttribute("aria-label", spec.hint);
      drawing.setAttribute("aria-label", spec.label);
      redraw();
      onCell(cell);
    },
  };
}

function moved(cell, [down, right], { rows, columns }) {
  if (!cell) return { query: 0, key: 0 };
  const within = (value, count) => Math.min(count - 1, Math.max(0, value));
  return { query: within(cell.query + down, rows.length), key: within(cell.key + right, columns.length) };
}
