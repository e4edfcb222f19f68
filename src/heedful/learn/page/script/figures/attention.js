// Attention: one query in the numbers of a trained head, the shapes from tokens to a map, and scores scaled by d_k.
import { diverging, hue } from "../../lens/color.js";
import { el, svg } from "../../lens/dom.js";
import { equation, matrix, shares, signed } from "../../lens/drawing/matrix.js";
import { stepFigure } from "../../lens/drawing/stage.js";
import { brief, label, number, percent, resize } from "../../lens/drawing/text.js";
import { controls, dot, figure, gridOf, indexed, live, namedChart, readout } from "../controls.js";

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

const WAYS = ["none", "root", "full"], MEASURES = ["largest", "variance", "entropy", "gradient"];
const HIGH = 92, HEAD = 24;

// Weights of one query and means over many, as d_k grows: scores undivided, divided by √d_k, and by d_k.
export const scaledScores = figure(760, { at: (data) => data.widths.indexOf(64), measure: "largest" }, ({ data, message, state, width, named }) => {
  // Of each way, the eight weights of one query as bars that together fill the height once.
  function weights() {
    const gap = width < 480 ? 14 : 36, wide = (width - 2 * gap) / WAYS.length, bar = wide / data.keys;
    const rows = svg("svg", { role: "img", "aria-label": message("weights", { d: data.widths[state.at] }) }, WAYS.map((way, n) => {
      const shares = data.measures[way][state.at].weights;
      return svg("g", { transform: `translate(${n * (wide + gap)} 0)` },
        label(message(way), 0, 13, { size: 13, weight: 600, fill: "var(--ink)" }),
        svg("rect", { y: HEAD, width: wide, height: HIGH, fill: "var(--tint)", rx: 4 }),
        shares.map((share, k) => svg("rect", { x: k * bar + 1.5, y: HEAD + (1 - share) * HIGH, width: bar - 3, height: Math.max(1, share * HIGH), fill: hue(n), rx: 1.5 },
          svg("title", {}, message("weight", { n: k + 1, weight: number(share) })))),
        label(message("most", { weight: number(Math.max(...shares), 2) }), 0, HEAD + HIGH + 16, { size: 12 }));
    }));
    return resize(rows, width, HEAD + HIGH + 32);
  }

  function curves() {
    const log = state.measure === "variance"; // from 1/1,024 to 1,024: by powers of ten
    const values = (way) => data.measures[way].map((measured) => (log ? Math.log10(measured.variance) : measured[state.measure]));
    return namedChart({
      series: WAYS.map((way) => ({ name: message(way), points: values(way).map((value, x) => [x, value]) })),
      width, high: 150, xNames: data.widths.map(String), xLabel: "d_k", name: message(`${state.measure}.name`),
      range: { largest: [0, 1], variance: [-3.2, 3.2], entropy: [0, Math.log2(data.keys)] }[state.measure],
      more: ({ x, y }) => [
        svg("path", { d: `M${x(state.at)} 6V156`, stroke: "var(--soft)", "stroke-width": 1, "stroke-dasharray": "2 3" }),
        WAYS.map((way, n) => svg("circle", { cx: x(state.at), cy: y(values(way)[state.at]), r: 4.5, fill: hue(n), stroke: "var(--card)", "stroke-width": 1.5 }))],
    });
  }

  return live(state, ({ slider, either }) => [
    slider("at", "d_k", [0, data.widths.length - 1], (at) => String(data.widths[at])),
    either("measure", message("measure"), named(MEASURES)),
  ], () => {
    const value = (way) => brief(data.measures[way][state.at][state.measure]);
    return [weights(), curves(), readout(el("b", {}, message(`${state.measure}.name`)), " ", message(`${state.measure}.text`, data),
      " ", message("values", { d: data.widths[state.at], none: value("none"), root: value("root"), full: value("full") }))];
  });
});
