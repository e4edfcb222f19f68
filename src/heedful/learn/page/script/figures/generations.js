// One sentence through three translators: what each writes, where it reads, and its score by length.
import { diverging } from "../../lens/color.js";
import { el, svg } from "../../lens/dom.js";
import { lineLook } from "../../lens/drawing/chart.js";
import { shares } from "../../lens/drawing/matrix.js";
import { percent } from "../../lens/drawing/text.js";
import { caption, controls, figure, gridOf, map, namedChart, sized } from "../controls.js";

const MODELS = ["vector", "additive", "transformer"];

// Of several heads the one that looks least at the end mark: many heads rest there.
const clearest = (heads) => heads.map((head) => head.reduce((sum, row) => sum + row.at(-1), 0))
  .reduce((best, rest, n, all) => (rest < all[best] ? n : best), 0);

function translation(item, written, message) {
  const words = written.map((token, n) => (token === item.target[n] ? token : el("del", {}, token)));
  const right = words.every((word) => typeof word === "string") && words.length === item.target.length;
  return el("div", { class: "translation" },
    el("p", {}, el("b", {}, message("source")), " ", item.source.slice(0, -1).join(" ")),
    el("p", {}, el("b", {}, message("writes")), " ", words.flatMap((word) => [word, " "]), el("span", { class: right ? "good" : "failure" }, message(right ? "right" : "wrong"))),
    el("p", { class: "soft" }, right ? "\u00a0" : `${message("reference")} ${item.target.join(" ")}`));
}

// All that the decoder gets of the sentence: one number a cell.
function oneVector(values, width, name) {
  const across = width < 480 ? 16 : 32, unit = Math.min(20, width / across), most = Math.max(...values.map(Math.abs));
  const cells = values.map((value, n) => svg("rect", {
    x: (n % across) * unit, y: Math.floor(n / across) * unit, width: unit - 1, height: unit - 1, fill: diverging(value / most),
  }, svg("title", {}, String(value))));
  return [caption(name), sized(name, width, Math.ceil(values.length / across) * unit, cells)];
}

export const threeGenerations = figure(700, { model: "additive", length: 1, nth: 0 }, ({ data, message, state, redraw, width, facts, tell, named, either }) => {
  const sentences = data.lengths[state.length - 1];
  const item = sentences[state.nth % sentences.length], { heads, vector, output: written } = item[state.model];
  const another = () => { state.nth += 1; redraw(); };
  function weights() {
    const source = gridOf(heads[clearest(heads)]), unit = Math.min(34, (width - 84) / source.columns);
    const look = (row, column) => tell("weight", { token: written[row], source: item.source[column], value: percent(source.at(row, column)) });
    return map(width, { name: message("weights"), source, unit: [unit, Math.max(14, Math.min(unit, 26))], color: shares(source), rows: written, columns: item.source, watch: { look } });
  }
  const look = (name, n) => ({ ...lineLook(n), "stroke-width": name === state.model ? 3 : 1.6, opacity: name === state.model ? 1 : 0.65 });
  const scored = message("scores", { n: data.n_scored });
  tell(`${state.model}.text`);
  return [
    controls(either("model", message("model"), named(MODELS))),
    controls(el("span", {}, message("clauses")), either("length", message("clauses"), data.lengths.map((_, n) => [n + 1, String(n + 1)])),
      sentences.length > 1 && el("button", { type: "button", "data-keep": "nth", onclick: another }, message("next"))),
    translation(item, written, message),
    ...(vector ? oneVector(vector, width, message("one", { n: vector.length })) : [weights()]), facts, caption(scored),
    namedChart({
      series: MODELS.map((name, n) => ({ name: message(name), look: look(name, n), points: data.scores[name].map((score, at) => [at, 100 * score]) })),
      width, high: 140, range: [0, 104], xNames: data.scores.vector.map((_, n) => String(n + 1)), xLabel: message("clauses"), name: scored, dots: true,
    })];
});
