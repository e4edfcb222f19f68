// The way through attention, in numbers: a whole sentence as matrices, then one pair of tokens.
import { attentionOf, headOf, kindName, tokensAt } from "../attention/selection.js";
import { kindOf } from "../choice.js";
import { ink, shade } from "../color.js";
import { dropdown, el } from "../dom.js";
import { grid, plane, robustMax } from "../drawing/matrix.js";
import { redrawn } from "../drawing/stage.js";
import { visible } from "../drawing/text.js";
import { headMatrices } from "./matrices.js";
import { pairOf } from "./pair.js";

export const name = "numbers";

const MANY = 48; // tokens, of which one is chosen from a list

// A recurrent model has neither layers nor these numbers; of any other they may have been left out, which is said.
export function fits(doc) {
  return doc.attentions.length > 0 && (doc.layers.length > 0 || doc.attentions.some((attention) => attention.numbers));
}

// Which layers have numbers, to be chosen with a click.
function elsewhere(context) {
  const { doc, state, t } = context;
  const there = doc.attentions.filter((attention) => attention.numbers);
  if (there.length === 0) return [el("p", { class: "figure-note" }, t("none"))];
  const offer = (attention) => el("button",
    { type: "button", onclick: () => state.set({ attention: attention.id }) },
    `${kindName(context, kindOf(attention))} · ${t("layerName", attention)}`);
  return [el("p", { class: "figure-note" }, t("missing")), el("div", { class: "figure-offers" }, there.map(offer))];
}

// One token of a row of chips; from a long text, out of a list.
function chips({ name, title, texts, chosen, choose, paint }) {
  const chip = (text, n) => el("label", { style: paint?.(n) },
    el("input", { type: "radio", name, checked: n === chosen, "data-keep": `${name}-${n}`, onchange: () => choose(n) }),
    text);
  return el("fieldset", { class: "figure-chips" }, el("legend", {}, title), texts.map(chip));
}

function list({ name, title, texts, chosen, choose }) {
  return dropdown(title, texts.map((text, n) => [n, `${n} · ${text}`]), chosen, choose, name);
}

// Which token asks and which is looked at: the latter stand on the color of their share.
function chooser({ state, t }, { pair, tokens, path }) {
  const paint = (n) => {
    const background = shade(path.weights.at(pair.query, n) / robustMax(path.weights));
    return { background, color: ink(background) };
  };
  const item = (place, texts, look) => ({
    name: `pair-${place}`, title: t(place), texts, chosen: pair[place],
    choose: (n) => state.set({ pair: { ...pair, [place]: n } }), ...look,
  });
  const both = [item("query", tokens.queries), item("key", tokens.keys, { paint })];
  return el("div", { class: "figure-choice" }, both.map((row) => (row.texts.length > MANY ? list : chips)(row)));
}

export function mount(root, context) {
  const { doc, arrays, state, t } = context;
  redrawn(root, state, ["attention", "head", "pair"], async (width, note) => {
    const attention = attentionOf(context);
    if (!attention.numbers) return elsewhere(context);
    const chosenHead = headOf(attention, state.get("head"));
    const head = chosenHead === "mean" ? 0 : chosenHead;
    const path = await headNumbers(arrays, attention, head, Boolean(doc.digits));
    const pair = state.get("pair");
    const { rows, columns } = tokensAt(doc, attention);
    const texts = (tokens) => tokens.map((token) => visible(token.text));
    const tokens = { queries: texts(rows), keys: texts(columns) };
    const all = { context, width, attention, head, path, pair, note, tokens };
    return [
      chosenHead === "mean" ? el("p", { class: "figure-note" }, t("oneHead", { head })) : "",
      headMatrices(all),
      el("h3", {}, t("pair")), el("p", { class: "figure-note" }, t("choose")), chooser(context, all), ...pairOf(all),
    ];
  });
}

// The numbers on the way through one head: from what goes in to what comes out.

function product(a, b) {
  return grid(a.rows, b.rows, (r, c) => {
    let sum = 0;
    for (let k = 0; k < a.columns; k += 1) sum += a.at(r, k) * b.at(c, k);
    return sum;
  });
}

function computed(source) {
  const values = Array.from({ length: source.rows * source.columns }, (_, n) =>
    source.at(Math.floor(n / source.columns), n % source.columns));
  return grid(source.rows, source.columns, (r, c) => values[r * source.columns + c]);
}

// Float32 can round a share to 0 only when its score lies this far below the row's best; other zeros were masked.
const ROUNDED = -85;

function masking(scores, weights, causal, rounded) {
  if (rounded) return (r, c) => causal && c > r;
  const best = Array.from({ length: scores.rows }, (_, r) => {
    let most = -Infinity;
    for (let c = 0; c < scores.columns; c += 1) if (weights.at(r, c) > 0) most = Math.max(most, scores.at(r, c));
    return most;
  });
  return (r, c) => weights.at(r, c) === 0 && ((causal && c > r) || scores.at(r, c) - best[r] > ROUNDED);
}

function maskingOf({ scores, hidden }, causal) {
  if (causal) return "causal";
  for (let r = 0; r < scores.rows; r += 1) for (let c = 0; c < scores.columns; c += 1) if (hidden(r, c)) return "hidden";
  return "none";
}

// Grids of one head: x, query, key, value (T × K), scores, scaled, biased, masked, weights (Tq × Tk), mixed, joined.
// `rounded`: the weights of a long input have few digits, and their zeros say nothing.
async function headNumbers(arrays, attention, head, rounded) {
  const { numbers, heads } = attention;
  const names = [numbers.x, numbers.query, numbers.key, numbers.value, numbers.mixed, heads[head].weights];
  const [x, query, key, value, mixed, weights] = await Promise.all(names.map((name) => arrays.get(name)));
  const bias = numbers.bias === null ? null : await arrays.get(numbers.bias);
  const group = Math.floor((head * key.shape[0]) / query.shape[0]);
  const [H, T, K] = mixed.shape;
  const way = { x: plane(x), query: plane(query, head), key: plane(key, group), value: plane(value, group) };
  way.weights = plane(weights);
  way.scores = computed(product(way.query, way.key));
  const pairs = (at) => grid(way.scores.rows, way.scores.columns, at);
  way.scaled = pairs((r, c) => way.scores.at(r, c) * numbers.scale);
  way.bias = bias && plane(bias, ...(bias.shape.length > 2 ? [head % bias.shape[0]] : []));
  way.biased = bias ? pairs((r, c) => way.scaled.at(r, c) + way.bias.at(r, c)) : way.scaled;
  way.hidden = masking(way.biased, way.weights, attention.causal, rounded);
  way.masked = computed(pairs((r, c) => (way.hidden(r, c) ? -Infinity : way.biased.at(r, c))));
  way.masking = maskingOf(way, attention.causal);
  way.groups = key.shape[0];
  way.mixed = plane(mixed, head);
  way.joined = grid(T, H * K, (r, c) => mixed.at(Math.floor(c / K), r, c % K));
  return way;
}
