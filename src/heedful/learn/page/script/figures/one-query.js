// One query against all keys, in the numbers of a trained head: scores, ÷√d_k, softmax, weighted sum, on one color scale.
import { diverging } from "../../lens/color.js";
import { svg } from "../../lens/dom.js";
import { label, number, percent, resize } from "../../lens/drawing/text.js";
import { controls, controlsOf, dot, readout } from "../controls.js";

const ROW = 30, NAME = 84;

export function draw(root, data, message, state, redraw) {
  state.kind ??= "cross";
  state.head ??= 1;
  state.query ??= 3;
  const part = data[state.kind];
  state.query = Math.min(state.query, part.queries.length - 1);
  const [query, keys, values] = [part.query[state.head][state.query], part.key[state.head], part.value[state.head]];
  const [weights, output] = [part.weights[state.head][state.query], part.output[state.head][state.query]];
  const most = Math.max(...[query, output, ...keys, ...values].flat().map(Math.abs)), scale = Math.sqrt(query.length);
  const width = Math.min(root.clientWidth, 700), cell = Math.min(22, (width - NAME - 86) / (2 * query.length));
  const strip = cell * query.length, [scored, second] = [NAME + strip + 8, width - strip];
  const drawing = svg("svg", { role: "group", "aria-label": message("name") }), facts = readout(message("hint"));

  // The numbers between the keys and the values; a phone has room for the last of them.
  const columns = ["score", "scaled", "weight"].slice(second - scored > 200 ? 0 : 2);
  const wide = (second - 8 - scored) / columns.length, middle = (at) => scored + wide * (at + 0.5);
  const cells = (vector, x, y) => vector.map((value, n) => svg("rect", { x: x + n * cell, y, width: cell - 1, height: 18, fill: diverging(value / most) }, svg("title", {}, number(value, 2))));
  const head = (text, x, anchor = "start") => label(text, x, 14, { size: 12, weight: 600, anchor });
  const name = (text, y, more) => label(text, NAME - 10, y + 14, { size: width < 400 ? 12 : 13, anchor: "end", fill: "var(--ink)", ...more });

  function row(key, n) {
    const y = 60 + n * ROW, score = dot(query, key);
    const numbers = { score: number(score, 2), scaled: number(score / scale, 2), weight: percent(weights[n]) };
    const tell = () => (facts.textContent = message("row", {
      query: part.queries[state.query], key: data.keys[n], scale: number(scale, 2), ...numbers,
      products: query.map((value, at) => `${number(value, 2)}·${number(key[at], 2)}`).join(" + ").replaceAll("+ −", "− "),
    }));
    return svg("g", { tabindex: 0, role: "img", "aria-label": `${data.keys[n]}: ${percent(weights[n])}`, onpointerenter: tell, onfocus: tell, onclick: tell },
      svg("rect", { x: 0, y: y - 5, width, height: ROW - 2, rx: 4, fill: "transparent" }),
      svg("rect", { x: scored + wide * (columns.length - 1), y: y - 3, width: Math.max(1, weights[n] * wide), height: 24, rx: 3, fill: "var(--accent)", opacity: 0.25 }),
      name(data.keys[n], y), cells(key, NAME, y),
      columns.map((key, at) => label(numbers[key], middle(at), y + 14, { size: 13, anchor: "middle", fill: "var(--ink)", weight: key === "weight" ? 600 : 400 })),
      svg("g", { opacity: 0.25 + 0.75 * weights[n] }, cells(values[n], second, y)));
  }
  const foot = 60 + keys.length * ROW;
  drawing.append(
    head(message("key"), NAME), ...columns.map((key, at) => head(message(key), middle(at), "middle")), head(message("value"), width, "end"),
    name(message("query"), 24, { weight: 600, fill: "var(--accent-2)" }), svg("g", {}, cells(query, NAME, 24)),
    ...keys.map(row),
    svg("path", { d: `M${second} ${foot}H${width}`, stroke: "var(--soft)" }),
    label(message("sum"), second - 10, foot + 21, { size: 13, anchor: "end", fill: "var(--ink)" }), svg("g", {}, cells(output, second, foot + 7)));

  const { dropdown, either } = controlsOf(state, redraw);
  root.append(
    controls(either("kind", message("kind"), ["cross", "self"].map((kind) => [kind, message(kind)])),
      dropdown("head", message("head"), part.query.map((_, n) => [n, String(n)]))),
    controls(either("query", message("query"), part.queries.map((token, n) => [n, token]))),
    resize(drawing, width, foot + 30), facts);
}
