// The table of positions as a map, and some of its columns as waves; a click on a column shows or hides its wave.
import { hue } from "../../lens/color.js";
import { svg } from "../../lens/dom.js";
import { ticks } from "../../lens/drawing/chart.js";
import { matrix, signed } from "../../lens/drawing/matrix.js";
import { label, number } from "../../lens/drawing/text.js";
import { gridOf, namedChart, readout, sized } from "../controls.js";

const SIDE = 34, MOST = 4;

export function draw(root, data, message, state, redraw) {
  state.waves ??= data.waves;
  const width = Math.min(root.clientWidth, 760), source = gridOf(data.table);
  const unit = [(width - SIDE) / source.columns, 2.4], facts = readout(message("hint"));

  function choose(_, column) {
    const without = state.waves.filter((other) => other !== column);
    const chosen = without.length < state.waves.length ? without : [...state.waves.slice(state.waves.length < MOST ? 0 : 1), column];
    if (chosen.length) state.waves = chosen.sort((a, b) => a - b);
    redraw();
  }
  function map() {
    const look = (row, column) => (facts.textContent = message("cell", { row, column, value: number(source.at(row, column)) }));
    const block = matrix({ name: message("map"), source, unit, color: signed(source), watch: { look, choose, start: [1, 0] } });
    const node = svg("g", { transform: `translate(${SIDE} ${block.top})` }, block.node,
      ticks([0, source.rows - 1], 4).map((row) => label(row, -7, (row + 0.5) * unit[1] + 4, { size: 11, anchor: "end" })));
    state.waves.forEach((column, n) => {
      const x = (column + 0.5) * unit[0];
      node.append(svg("path", { d: `M${x - 5} ${block.height + 10}l5 -8l5 8z`, fill: hue(n) }),
        label(column, x, block.height + 24, { anchor: "middle", weight: 600, fill: hue(n) }));
    });
    return sized(message("map"), width, block.top + block.height + 32, node);
  }
  const series = state.waves.map((column) => ({ name: message("dimension", { n: column }), points: data.table.map((row, pos) => [pos, row[column]]) }));
  root.append(map(), namedChart({ series, width, range: [-1.08, 1.08], xLabel: message("position"), name: message("waves") }), facts);
}
