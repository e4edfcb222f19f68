// A look-ahead mask and the padding of a batch, and the mask that both give for one sentence of the batch.
import { shadeBytes } from "../../lens/color.js";
import { equation, matrix } from "../../lens/drawing/matrix.js";
import { controls, controlsOf, gridOf, readout, sized } from "../controls.js";

export function draw(root, data, message, state, redraw) {
  state.row ??= 0;
  const width = Math.min(root.clientWidth, 800), tokens = data.tokens[state.row], facts = readout();
  const places = data.causal.map((_, n) => String(n + 1)), names = data.tokens.map((_, n) => message("sentence", { n: n + 1 }));
  const leave = () => facts.replaceChildren(message("hint", { b: names.length, t: places.length, n: state.row + 1, tokens: tokens.join(" ") }));
  const look = (q, k) => facts.replaceChildren(message(data.both[state.row][q][k] ? "allowed" : k > q ? "ahead" : "padded", { from: tokens[q], to: tokens[k] }));
  const choose = (row) => { state.row = row; redraw(); };
  const map = (key, values, rows, columns, watch) =>
    matrix({ name: message(key), source: gridOf(values), unit: [26, 26], color: (value) => shadeBytes(0.62 * value), rows, columns, watch });
  const { node, height } = equation([
    [null, map("causal", data.causal, places, places)],
    ["&", map("padding", data.padding, names, places, { choose })],
    ["=", map("both", data.both[state.row], tokens, tokens, { look, leave })],
  ], width);
  leave();
  root.append(controls(controlsOf(state, redraw).either("row", message("sentences"), names.map((name, n) => [n, name]))),
    sized(message("name"), width, height + 4, node), facts);
}
