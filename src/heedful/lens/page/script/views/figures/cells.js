// A map of cells under the pointer and the arrow keys: which cell is looked at, which is chosen.
import { svg } from "../../dom.js";

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

// `look(row, column, box)` is told the cell, `leave()` that there is none, `choose(row, column)` of a click or
// Enter; the keys begin at `start`.
export function cells({ rows, columns, width, height, name, look, leave, choose, key, start = [0, 0] }) {
  const high = height / rows;
  const wide = width / columns;
  const cursor = svg("rect", { width: wide, height: high, fill: "none", stroke: "var(--accent-2)", "stroke-width": 2 });
  const ground = svg("rect", { width, height, fill: "transparent" });
  const node = svg("g", { tabindex: 0, role: choose ? "button" : "img", "aria-label": name }, ground, cursor);
  if (key) node.setAttribute("data-keep", key);
  if (choose) node.style.cursor = "pointer";
  cursor.style.pointerEvents = "none";
  cursor.style.display = "none";
  let at = start;

  function show(row, column) {
    at = [row, column];
    cursor.setAttribute("x", column * wide);
    cursor.setAttribute("y", row * high);
    cursor.style.display = "";
    look?.(row, column, cursor.getBoundingClientRect());
  }
  function hide() {
    cursor.style.display = "none";
    leave?.();
  }
  function under(event) {
    const box = ground.getBoundingClientRect();
    const place = (value, count) => Math.min(count - 1, Math.max(0, Math.floor(value * count)));
    return [place((event.clientY - box.top) / box.height, rows), place((event.clientX - box.left) / box.width, columns)];
  }

  node.addEventListener("pointermove", (event) => show(...under(event)));
  node.addEventListener("pointerleave", hide);
  node.addEventListener("click", (event) => choose?.(...under(event)));
  node.addEventListener("focus", () => node.matches(":focus-visible") && show(...at));
  node.addEventListener("blur", hide);
  node.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (move) show((at[0] + move[0] + rows) % rows, (at[1] + move[1] + columns) % columns);
    else if (choose && (event.key === "Enter" || event.key === " ")) choose(...at);
    else return;
    event.preventDefault();
    event.stopPropagation(); // the page's own arrow keys stay out of a map that has the focus
  });
  return node;
}
