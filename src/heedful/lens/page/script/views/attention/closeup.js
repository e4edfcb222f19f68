// A few cells around the one under the pointer, large: for maps whose cells are smaller than a finger.
import { shade } from "../../colour.js";
import { svg } from "../../dom.js";
import { resize } from "./labels.js";

const REACH = 5, CELL = 19, ACROSS = 2 * REACH + 1;

/** A window of 11 × 11 cells that `show(cell, map)` moves; without a cell it is not there. */
export function createCloseup() {
  const places = Array.from({ length: ACROSS ** 2 }, (_, place) => ({ down: Math.floor(place / ACROSS), right: place % ACROSS }));
  const square = ({ down, right }) => ({ x: right * CELL, y: down * CELL, width: CELL - 1, height: CELL - 1, rx: 2 });
  const cells = places.map((place) => svg("rect", square(place)));
  const middle = svg("rect", { ...square({ down: REACH, right: REACH }), fill: "none", class: "cross one" });
  const node = svg("svg", { class: "closeup", "aria-hidden": "true" }, cells, middle);
  resize(node, ACROSS * CELL, ACROSS * CELL);
  return {
    node,
    show(cell, { weights, most, hidden }) {
      const [rows, columns] = weights.shape;
      node.style.display = cell ? "block" : "none";
      if (!cell) return;
      places.forEach(({ down, right }, place) => {
        const row = cell.query + down - REACH, column = cell.key + right - REACH;
        const within = row >= 0 && column >= 0 && row < rows && column < columns && !hidden(row, column);
        cells[place].setAttribute("fill", within ? shade(weights.data[row * columns + column] / most) : "none");
      });
    },
  };
}
