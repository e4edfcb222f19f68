// A layer's other half: what is left at each depth with and without bypass and norm, and the neurons of a feed-forward.
import { hue } from "../../lens/color.js";
import { el } from "../../lens/dom.js";
import { bars } from "../../lens/drawing/chart.js";
import { grid, shares } from "../../lens/drawing/matrix.js";
import { brief, percent } from "../../lens/drawing/text.js";
import { controls, controlsOf, figure, gridOf, indexed, map, namedChart, readout } from "../controls.js";

const WIRINGS = ["bare", "norm", "post", "pre"], MEASURES = ["gradient", "likeness", "size"];
const LEFT = 76; // room for the words beside the neurons

export const throughTheLayers = figure(760, { depth: 24, measure: "gradient" }, ({ data, message, state, width, named, either }) => {
  const traces = data.traces[state.depth];
  // The gradient is read where it ends up, at the first layer; the others at the last.
  const value = (wiring) => {
    const values = traces[wiring][state.measure];
    return state.measure === "gradient" ? `${values[0] <= -12 ? "≤ " : ""}${brief(10 ** values[0])}` : brief(values.at(-1));
  };
  return [
    controls(either("depth", message("layers"), data.depths.map((depth) => [depth, message("deep", { n: depth })])),
      either("measure", message("measure"), named(MEASURES))),
    namedChart({
      series: WIRINGS.map((wiring) => ({ name: message(wiring), points: traces[wiring][state.measure].map((value, at) => [at, value]) })),
      width, high: 200, xLabel: message("depth"), name: message(`${state.measure}.name`),
      range: { gradient: [-12, 2], likeness: [0, 1.02] }[state.measure],
    }),
    readout(el("b", {}, message(`${state.measure}.name`)), " ", message(`${state.measure}.text`), " ",
      WIRINGS.map((wiring) => `${message(wiring)}: ${value(wiring)}`).join(" · "))];
});

// Neurons over a sentence; of one neuron, what wakes it and what it writes.
export const neurons = figure(760, { sentence: 0 }, ({ data, message, state, redraw, width, facts, tell }) => {
  const words = data.sentences[state.sentence], rows = data.activations[state.sentence], count = rows[0].length;
  // To begin with, the strongest neuron at the last word before the sentence ends.
  state.neuron ??= rows.at(-2).indexOf(Math.max(...rows.at(-2)));
  const n = state.neuron + 1, highest = Math.max(...data.activations.flat(2));
  const leave = () => tell("silent", { share: percent(data.silent) });
  const look = (row, n) => tell(rows[row][n] ? "awake" : "asleep", { n: n + 1, word: words[row], value: brief(rows[row][n]) });
  const choose = (_, neuron) => { state.neuron = neuron; redraw(); };
  const part = (key, entries, series) => el("div", {}, el("b", {}, message(key, { n })), bars(entries.map(([word, value]) =>
    ({ name: word, share: Math.max(0, value / (entries[0][1] || 1)), text: brief(value), bar: { fill: hue(series) } })), width < 560 ? width : (width - 24) / 2, ""));
  const another = controlsOf(state, () => { state.neuron = undefined; redraw(); });
  leave();
  return [
    controls(another.dropdown("sentence", message("sentence"), indexed(data.sentences.map((sentence) => sentence.join(" ").replace(" .", "."))))),
    map(width, {
      name: message("map"), source: gridOf(rows), unit: [(width - LEFT) / count, 26], color: shares(grid(1, 1, () => highest)),
      rows: words.slice(0, rows.length), span: [state.neuron, n], watch: { look, leave, choose },
    }, LEFT),
    el("div", { class: "halves" }, part("wakes", data.wakes[state.neuron], 1), part("writes", data.writes[state.neuron], 0)), facts];
});
