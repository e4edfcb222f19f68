// A text becomes pieces, ids, rows of the embedding table, and rows times √d_model; all numbers on one color scale.
import { divergingBytes } from "../../lens/color.js";
import { svg } from "../../lens/dom.js";
import { matrix, robustMax } from "../../lens/drawing/matrix.js";
import { stepFigure } from "../../lens/drawing/stage.js";
import { label, marked, number, spelled, wrapWords } from "../../lens/drawing/text.js";
import { controls, controlsOf, gridOf, readout } from "../controls.js";

const LINE = 40;

// One box for a text, with a line below it if there is one.
function chips(entries, room) {
  const { boxes, lines } = wrapWords(entries.map(([text]) => text), room, { size: 15, padding: 9, gap: 6, narrowest: 34 });
  const node = svg("g", {}, boxes.map(({ text, x, width, line }, n) => [
    svg("rect", { x, y: line * LINE, width, height: 30, rx: 7, fill: "var(--tint)", stroke: "var(--line)" }),
    label(marked(text), x + width / 2, line * LINE + 20, { size: 15, anchor: "middle", fill: entries[n][1] ? "var(--accent-2)" : "var(--ink)" }),
  ]));
  return { node, height: lines * LINE };
}

export function draw(root, data, message, state, redraw) {
  state.text ??= 0;
  const item = data.texts[state.text], ids = item.pieces.flatMap((piece) => piece.ids);
  const facts = readout(message("hint")), most = robustMax(gridOf(item.stages.scaled));
  const values = { t: ids.length, d: data.d_model, last: data.vocabulary - 1 };
  const step = (key, draw) => ({ title: message(`${key}.title`, values), text: message(`${key}.text`, { ...values, ...item.lengths }), draw });

  const rows = (key) => (room) => {
    const source = gridOf(item.stages[key]), wide = Math.min(420, room - 50);
    const look = (row, column) => (facts.textContent = message("cell", { id: ids[row], column, value: number(source.at(row, column)) }));
    const block = matrix({
      name: message(`${key}.map`), source, unit: [wide / source.columns, 18], color: (value) => divergingBytes(value / most),
      rows: ids.map(String), watch: { look },
    });
    return { node: svg("g", { transform: `translate(${block.left} ${block.top})` }, block.node), height: block.top + block.height };
  };
  const figure = stepFigure(Math.min(root.clientWidth, 800), [
    step("pieces", (room) => chips(item.pieces.map((piece) => [spelled(piece.text), piece.ids.length > 1]), room)),
    step("ids", (room) => chips(item.pieces.flatMap((piece) => piece.ids.map((id) => [String(id), piece.ids.length > 1])), room)),
    step("rows", rows("rows")), step("scaled", rows("scaled")), step("positions", rows("positions")),
  ], message("name"));
  root.append(controls(controlsOf(state, redraw).dropdown("text", message("text"), data.texts.map(({ text }, n) => [n, text]))), figure, facts);
}
