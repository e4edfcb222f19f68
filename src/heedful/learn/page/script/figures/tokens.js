// A text becomes pieces, ids, rows of the embedding table, and rows times √d_model; all numbers on one color scale.
import { divergingBytes } from "../../lens/color.js";
import { svg } from "../../lens/dom.js";
import { matrix, robustMax } from "../../lens/drawing/matrix.js";
import { stepFigure } from "../../lens/drawing/stage.js";
import { label, marked, number, spelled, wrapWords } from "../../lens/drawing/text.js";
import { controls, figure, gridOf, indexed } from "../controls.js";

const LINE = 40;

// A box for each text; those in `parts` belong to a piece of several tokens.
function chips(texts, parts, room) {
  const { boxes, lines } = wrapWords(texts, room, { size: 15, padding: 9, gap: 6, narrowest: 34 });
  const node = svg("g", {}, boxes.map(({ text, x, width, line }, n) => [
    svg("rect", { x, y: line * LINE, width, height: 30, rx: 7, fill: "var(--tint)", stroke: "var(--line)" }),
    label(marked(text), x + width / 2, line * LINE + 20, { size: 15, anchor: "middle", fill: parts[n] ? "var(--accent-2)" : "var(--ink)" }),
  ]));
  return { node, height: lines * LINE };
}

export const textToVectors = figure(800, { text: 0 }, ({ data, message, state, width, facts, tell, dropdown }) => {
  const item = data.texts[state.text], { pieces } = item, ids = pieces.flatMap((piece) => piece.ids);
  const isSplit = (piece) => piece.ids.length > 1, most = robustMax(gridOf(item.stages.scaled));
  const values = { t: ids.length, d: data.d_model, last: data.vocabulary - 1 };
  const step = (key, draw) => ({ title: message(`${key}.title`, values), text: message(`${key}.text`, { ...values, ...item.lengths }), draw });

  const rows = (key) => step(key, (room) => {
    const source = gridOf(item.stages[key]), wide = Math.min(420, room - 50);
    const look = (row, column) => tell("cell", { id: ids[row], column, value: number(source.at(row, column)) });
    const block = matrix({
      name: message(`${key}.map`), source, unit: [wide / source.columns, 18], color: (value) => divergingBytes(value / most),
      rows: ids.map(String), watch: { look },
    });
    return { node: svg("g", { transform: `translate(${block.left} ${block.top})` }, block.node), height: block.top + block.height };
  });
  tell("hint");
  return [controls(dropdown("text", message("text"), indexed(data.texts.map(({ text }) => text)))), stepFigure(width, [
    step("pieces", (room) => chips(pieces.map((piece) => spelled(piece.text)), pieces.map(isSplit), room)),
    step("ids", (room) => chips(ids.map(String), pieces.flatMap((piece) => piece.ids.map(() => isSplit(piece))), room)),
    rows("rows"), rows("scaled"), rows("positions"),
  ], message("name")), facts];
});
