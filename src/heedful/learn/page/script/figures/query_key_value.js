// One query in the numbers of a trained head, on one color scale; and the shapes from four tokens to a map and back.
import { diverging } from "../../lens/color.js";
import { svg } from "../../lens/dom.js";
import { equation, matrix, shares, signed } from "../../lens/drawing/matrix.js";
import { stepFigure } from "../../lens/drawing/stage.js";
import { label, number, percent, resize } from "../../lens/drawing/text.js";
import { controls, dot, figure, gridOf, indexed } from "../controls.js";

const ROW = 30, NAME = 84;

// One query against all keys: scores, ÷√d_k, softmax, weighted sum.
export const oneQuery = figure(700, { kind: "cross", head: 1, query: 3 }, ({ data, message, state, width, facts, tell, named, dropdown, either }) => {
  const part = data[state.kind];
  state.query = Math.min(state.query, part.queries.length - 1);
  const [query, keys, values] = [part.query[state.head][state.query], part.key[state.head], part.value[state.head]];
  const [weights, output] = [part.weights[state.head][state.query], part.output[state.head][state.query]];
  const most = Math.max(...[query, output, ...keys, ...values].flat().map(Math.abs)), scale = Math.sqrt(query.length);
  const cell = Math.min(22, (width - NAME - 86) / (2 * query.length));
  const strip = cell * query.length, [scored, second] = [NAME + strip + 8, width - strip];

  // The numbers between the keys and the values; a phone has room for the last of them.
  const columns = ["score", "scaled", "weight"].slice(second - scored > 200 ? 0 : 2);
  const wide = (second - 8 - scored) / columns.length, middle = (at) => scored + wide * (at + 0.5);
  const cells = (vector, x, y) => svg("g", {}, vector.map((value, n) => svg("rect", { x: x + n * cell, y, width: cell - 1, height: 18, fill: diverging(value / most) }, svg("title", {}, number(value, 2)))));
  const head = (text, x, anchor = "start") => label(text, x, 14, { size: 12, weight: 600, anchor });
  const name = (text, y, more) => label(text, NAME - 10, y + 14, { size: width < 400 ? 12 : 13, anchor: "end", fill: "var(--ink)", ...more });

  function row(key, n) {
    const y = 60 + n * ROW, score = dot(query, key);
    const numbers = { score: number(score, 2), scaled: number(score / scale, 2), weight: percent(weights[n]) };
    const told = () => tell("row", {
      query: part.queries[state.query], key: data.keys[n], scale: number(scale, 2), ...numbers,
      products: query.map((value, at) => `${number(value, 2)}·${number(key[at], 2)}`).join(" + ").replaceAll("+ −", "− "),
    });
    return svg("g", { tabindex: 0, role: "img", "aria-label": `${data.keys[n]}: ${percent(weights[n])}`, onpointerenter: told, onfocus: told, onclick: told },
      svg("rect", { x: 0, y: y - 5, width, height: ROW - 2, rx: 4, fill: "transparent" }),
      svg("rect", { x: scored + wide * (columns.length - 1), y: y - 3, width: Math.max(1, weights[n] * wide), height: 24, rx: 3, fill: "var(--accent)", opacity: 0.25 }),
      name(data.keys[n], y), cells(key, NAME, y),
      columns.map((key, at) => label(numbers[key], middle(at), y + 14, { size: 13, anchor: "middle", fill: "var(--ink)", weight: key === "weight" ? 600 : 400 })),
      svg("g", { opacity: 0.25 + 0.75 * weights[n] }, cells(values[n], second, y)));
  }
  const foot = 60 + keys.length * ROW;
  const drawing = svg("svg", { role: "group", "aria-label": message("name") },
    head(message("key"), NAME), columns.map((key, at) => head(message(key), middle(at), "middle")), head(message("value"), width, "end"),
    name(message("query"), 24, { weight: 600, fill: "var(--accent-2)" }), cells(query, NAME, 24), keys.map(row),
    svg("path", { d: `M${second} ${foot}H${width}`, stroke: "var(--soft)" }),
    label(message("sum"), second - 10, foot + 21, { size: 13, anchor: "end", fill: "var(--ink)" }), cells(output, second, foot + 7));
  tell("hint");
  return [
    controls(either("kind", message("kind"), named(["cross", "self"])), dropdown("head", message("head"), indexed(part.query.map((_, n) => String(n))))),
    controls(either("query", message("query"), indexed(part.queries))),
    resize(drawing, width, foot + 30), facts];
});

const NAMES = { x: "X", query: "Q", key: "K", value: "V", scores: "Q Kᵀ", weights: "softmax", output: "A V" };
const SQUARE = new Set(["scores", "weights"]); // of tokens and tokens

// From four tokens of 512 numbers to queries, keys and values, to a 4 × 4 map, and back to four vectors.
export const attentionShapes = figure(800, {}, ({ data, message, width, facts, tell }) => {
  function map(part, wide) {
    const source = gridOf(data.matrices[part]), square = SQUARE.has(part);
    const look = (row, column) => tell(square ? "pair" : "cell", { name: NAMES[part], row: data.tokens[row], column: square ? data.tokens[column] : column, value: number(source.at(row, column), 2) });
    return matrix({
      name: NAMES[part], source, unit: square ? [30, 30] : [wide / source.columns, 18], color: part === "weights" ? shares(source) : signed(source),
      watch: { look }, rows: data.tokens, columns: square ? data.tokens : undefined,
    });
  }
  const step = (key, parts) => ({
    title: message(`${key}.title`), text: message(`${key}.text`),
    draw(room) {
      const wide = Math.min(parts.includes("x") ? 420 : parts.length > 2 && room > 480 ? 92 : 128, room - 82);
      return equation(parts.map((part, n) => [n && SQUARE.has(part) && room > 400 ? "→" : null, map(part, wide)]), room);
    },
  });
  tell("hint");
  return [stepFigure(width, [
    step("input", ["x"]), step("project", ["query", "key", "value"]), step("compare", ["scores", "weights"]), step("mix", ["output"]),
  ], message("name")), facts];
});
