// One head large: who looks at whom, with the weight of every pair.
import { largest, rankIn, rowOf } from "../attention/measure.js";
import { chosen, crossVariant, headName, hiddenIn, kindName, tokensAt, weightsOf, writes } from "../attention/selection.js";
import { kindOf } from "../choice.js";
import { shadeBytes } from "../color.js";
import { el, svg } from "../dom.js";
import { grid, picture, pixels } from "../drawing/matrix.js";
import { createLegend, createMap, isLarge, SCALES } from "../drawing/map.js";
import { latest } from "../drawing/stage.js";
import { resize } from "../drawing/text.js";

export const name = "head";
export const fits = (doc) => doc.attentions.length > 0;
export const variant = crossVariant;

export function mount(root, context) {
  const { doc, state, t } = context;
  const readout = el("p", { class: "said", "aria-live": "polite" });
  const legend = createLegend(SCALES.weights), closeup = createCloseup();
  let current = null;

  const update = (cell) => {
    readout.textContent = cell && current ? sentence(context, current, cell) : t("rest");
    readout.classList.toggle("soft", !cell);
    if (current) closeup.show(current.large ? cell : null, current);
  };
  const map = createMap(root, { onCell: update, onPick: (cell) => state.set({ pair: cell }) });
  root.classList.add("attention");
  root.append(el("div", { class: "beside" }, map.node, el("div", {}, readout, legend.node, closeup.node)));

  const draw = latest((weights) => {
    const { attention, head } = chosen(context);
    const { rows, columns } = tokensAt(doc, attention);
    const most = largest(weights.data);
    const hidden = hiddenIn(attention);
    current = { attention, head, weights, most, hidden, rows, columns, large: isLarge({ rows, columns }) };
    const name = `${kindName(context, kindOf(attention))}, ${headName(context, { attention, head })}`;
    map.draw({
      rows, columns, hidden, panels: [{ map: weights, scale: SCALES.weights, most }], digits: state.get("level") === "deep",
      label: t("label", { name, rows: rows.length, columns: columns.length }), hint: t("hint"),
    });
    legend.draw("0", most.toFixed(state.get("level") === "deep" ? 4 : 2));
  });
  const load = () => draw(weightsOf(context, chosen(context)));
  state.on(["attention", "head", "level", "language", "theme"], load);
  return load();
}

function sentence({ doc, state, t }, { attention, head, weights, hidden, rows, columns }, { query, key }) {
  const values = { query: rows[query].text, key: columns[key].text };
  if (hidden(query, key)) return t("hiddenPair", values);
  const row = rowOf(weights, query), weight = row[key];
  const percent = `${(weight * 100).toFixed(weight < 0.1 ? 1 : 0)}%`;
  if (state.get("level") !== "deep") return t(writes(doc, attention) ? "cellCross" : "cellSimple", { ...values, percent });
  const count = attention.causal ? query + 1 : columns.length;
  const details = { ...values, weight: weight.toFixed(4), rank: rankIn(row, key), count };
  return t(head === "mean" ? "cellMean" : "cellDeep", details);
}

// A few cells around the one under the pointer, large: for maps whose cells are smaller than a finger.

const REACH = 5, CELL = 19, ACROSS = 2 * REACH + 1;

/** A window of 11 × 11 cells that `show(cell, map)` moves; without a cell it is not there. */
function createCloseup() {
  const side = ACROSS * CELL;
  const image = picture(null, { width: side, height: side });
  const middle = svg("rect", { x: REACH * CELL, y: REACH * CELL, width: CELL, height: CELL, fill: "none", class: "cross one" });
  const node = svg("svg", { class: "closeup", "aria-hidden": "true" }, image, middle);
  resize(node, side, side);
  return {
    node,
    show(cell, { weights, most, hidden }) {
      node.style.display = cell ? "block" : "none";
      if (!cell) return;
      const around = grid(ACROSS, ACROSS, (down, right) => {
        const [row, column] = [cell.query + down - REACH, cell.key + right - REACH];
        const within = row >= 0 && column >= 0 && row < weights.shape[0] && column < weights.shape[1];
        return within && !hidden(row, column) ? weights.at(row, column) / most : null;
      });
      image.setAttribute("href", pixels(around, (share) => (share === null ? null : shadeBytes(share))));
    },
  };
}
