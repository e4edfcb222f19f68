// The neurons of a trained feed-forward network over a sentence; of one neuron, what wakes it and what it writes.
import { hue } from "../../lens/color.js";
import { el } from "../../lens/dom.js";
import { bars } from "../../lens/drawing/chart.js";
import { grid, shares } from "../../lens/drawing/matrix.js";
import { brief, percent } from "../../lens/drawing/text.js";
import { controls, controlsOf, gridOf, map, readout } from "../controls.js";

const LEFT = 76;

export function draw(root, data, message, state, redraw) {
  state.sentence ??= 0;
  const width = Math.min(root.clientWidth, 760), highest = Math.max(...data.activations.flat(2));
  const words = data.sentences[state.sentence], rows = data.activations[state.sentence], count = rows[0].length;
  // To begin with, the strongest neuron at the last word before the sentence ends.
  state.neuron ??= rows.at(-2).indexOf(Math.max(...rows.at(-2)));
  const facts = readout(), n = state.neuron + 1;
  const leave = () => facts.replaceChildren(message("silent", { share: percent(data.silent) }));
  const look = (row, n) => facts.replaceChildren(message(rows[row][n] ? "awake" : "asleep", { n: n + 1, word: words[row], value: brief(rows[row][n]) }));
  const choose = (_, neuron) => { state.neuron = neuron; redraw(); };
  const part = (key, entries, series) => el("div", {}, el("b", {}, message(key, { n })), bars(entries.map(([word, value]) =>
    ({ name: word, share: Math.max(0, value / (entries[0][1] || 1)), text: brief(value), bar: { fill: hue(series) } })), width < 560 ? width : (width - 24) / 2, ""));
  const another = controlsOf(state, () => { state.neuron = undefined; redraw(); });
  leave();
  root.append(
    controls(another.dropdown("sentence", message("sentence"), data.sentences.map((sentence, n) => [n, sentence.join(" ").replace(" .", ".")]))),
    map(width, {
      name: message("map"), source: gridOf(rows), unit: [(width - LEFT) / count, 26], color: shares(grid(1, 1, () => highest)),
      rows: words.slice(0, rows.length), span: [state.neuron, n], watch: { look, leave, choose },
    }, LEFT),
    el("div", { class: "halves" }, part("wakes", data.wakes[state.neuron], 1), part("writes", data.writes[state.neuron], 0)), facts);
}
