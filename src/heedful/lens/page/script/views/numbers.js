// The way through attention, in numbers: a whole sentence as matrices, then one pair of tokens.
import { total } from "../attention/measure.js";
import { chosen, kindName, tokensAt } from "../attention/selection.js";
import { kindOf } from "../choice.js";
import { diverging, divergingBytes, ink, shade } from "../color.js";
import { dropdown, el, svg } from "../dom.js";
import { cells, equation, flat, grid, matrix, picture, pixels, plane, robustMax, row, shares, signed } from "../drawing/matrix.js";
import { redrawn, stepFigure, stepText, table } from "../drawing/stage.js";
import { fitted, label, number, percent, small, visible } from "../drawing/text.js";

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

// Which token asks and which is looked at, as chips or, of a long text, as a list: the latter stand on the color of
// their share.
function chooser({ state, t }, { pair, tokens, path }) {
  const most = robustMax(path.weights);
  const paint = (n) => {
    const background = shade(path.weights.at(pair.query, n) / most);
    return { background, color: ink(background) };
  };
  const choice = (place, texts, style) => {
    const name = `pair-${place}`;
    const choose = (n) => state.set({ pair: { ...pair, [place]: n } });
    if (texts.length > MANY) return dropdown(t(place), texts.map((text, n) => [n, `${n} · ${text}`]), pair[place], choose, name);
    const chips = texts.map((text, n) => el("label", { style: style?.(n) },
      el("input", { type: "radio", name, checked: n === pair[place], "data-keep": `${name}-${n}`, onchange: () => choose(n) }), text));
    return el("fieldset", { class: "figure-chips" }, el("legend", {}, t(place)), chips);
  };
  return el("div", { class: "figure-choice" }, choice("query", tokens.queries), choice("key", tokens.keys, paint));
}

export function mount(root, context) {
  const { doc, arrays, state, t } = context;
  redrawn(root, state, ["attention", "head", "pair"], async (width, note) => {
    const { attention, head: chosenHead } = chosen(context);
    if (!attention.numbers) return elsewhere(context);
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
  const values = flat(source);
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
  way.masking = attention.causal ? "causal" : flat(pairs(way.hidden)).some(Boolean) ? "hidden" : "none";
  way.groups = key.shape[0];
  way.mixed = plane(mixed, head);
  way.joined = grid(T, H * K, (r, c) => mixed.at(Math.floor(c / K), r, c % K));
  return way;
}

// The whole sentence through one head: every matrix, in its true proportions.

// Divided by √d_k, as in the paper, or multiplied by whatever this model takes.
function scaling(numbers, width) {
  const rooted = Math.abs(numbers.scale * Math.sqrt(width) - 1) < 1e-3;
  const written = (value) => String(Number(value.toFixed(3)));
  const root = written(Math.sqrt(width));
  const scale = written(numbers.scale);
  const particles = { ro: /[036]$/.test(root) ? "으로" : "로", eul: /[2459]$/.test(scale) ? "를" : "을" };
  const name = rooted ? "root" : numbers.scale === 1 ? "one" : "scale";
  return { name, sign: rooted ? `÷ ${root}` : `× ${scale}`, root, scale, ...particles };
}

const lowered = (value) => String(value).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);

function headMatrices({ context, width, attention, head, path, pair, note, tokens }) {
  const { t, state } = context;
  const [T, D, K, S] = [path.x.rows, path.x.columns, path.query.columns, path.key.rows];
  const [H, J] = [attention.heads.length, path.joined.columns];
  const scaled = scaling(attention.numbers, K);
  const facts = { T, D, K, S, H, J, last: lowered(H - 1), G: path.groups, S2: path.bias ? "S″" : "S′", ...scaled };
  const asking = tokens.queries;
  const offering = tokens.keys;
  const masked = path.masking !== "none";

  // A token is as high and as wide everywhere, and so is a number: the maps compare by eye. Where there is room, two
  // maps of scores and one of queries stand side by side, with their signs and names (180).
  const units = (room) => {
    const number = Math.min(3, (room - 76) / Math.max(D, J));
    const most = Math.max(T, S);
    const token = Math.min(30, (room < 480 ? 200 : (room - 180 - K * number) / 2) / most);
    return { number, token, high: Math.max(token, Math.min(13, 240 / most)) }; // 13: room for a name
  };
  const watched = (source, rowName, columnName, more = {}) => ({
    ...note.over((r, c) => `${rowName(r)} · ${columnName(c)}: ${number(source.at(r, c))}`), ...more,
  });
  const wide = (name, source, names, unit, more = {}) => matrix({
    name, source, color: signed(source), unit: [unit.number, unit.high],
    watch: watched(source, (r) => names[r], (c) => c), ...more,
  });
  const choose = (query, key) => state.set({ pair: { query, key } });
  const square = (name, source, unit, color, more = {}) => matrix({
    name, source, color, unit: [unit.token, unit.high], rows: asking, columns: offering, mark: [pair.query, pair.key],
    watch: watched(source, (r) => asking[r], (c) => offering[c], { choose }),
    ...more,
  });
  const transposed = (name, source, unit) => {
    const turned = grid(source.columns, source.rows, (r, c) => source.at(c, r));
    const watch = watched(turned, (r) => r, (c) => offering[c]);
    return matrix({ name, source: turned, color: signed(source), unit: [unit.token, unit.number], watch });
  };
  const say = stepText(context, facts);
  const step = (key, parts, more = []) => ({ ...say(key, ...more), draw: (room) => equation(parts(units(room)), room) });
  // All maps of scores have one color scale, so that the effect of each step is seen.
  const scoreColor = signed(path.scores);
  const becomes = (sign, [before, from], [after, to, color = scoreColor]) => (unit) => [
    [null, square(before, from, unit, scoreColor)],
    [sign, square(after, to, unit, color, { rows: undefined })],
  ];
  const share = shares(path.weights);
  const open = (value) => (value === 0 && masked ? null : share(value));
  const notes = [attention.kind === "cross" && "qkv.cross", path.groups < H && "qkv.shared"].filter(Boolean);
  const span = [head * K, (head + 1) * K];
  const steps = [
    step("x", (unit) => [[null, wide("X", path.x, asking, unit, { rows: asking })]], attention.kind === "cross" ? ["x.cross"] : []),
    step("qkv", (unit) => [
      [null, wide("Q", path.query, asking, unit, { rows: asking })],
      [null, wide("K", path.key, offering, unit, { rows: attention.kind === "cross" ? offering : undefined })],
      [null, wide("V", path.value, offering, unit)],
    ], notes),
    step("scores", (unit) => [
      [null, wide("Q ", path.query, asking, unit, { rows: asking })],
      ["·", transposed("Kᵀ", path.key, unit)],
      ["=", square("S", path.scores, unit, scoreColor, { rows: undefined })],
    ]),
    step(scaled.name, becomes(`${scaled.sign} =`, ["S ", path.scores], ["S′", path.scaled])),
    path.bias && step("bias", becomes("+ B =", ["S′ ", path.scaled], ["S″", path.biased])),
    masked && step(path.masking, becomes("→", [`${facts.S2}  `, path.biased], [`${facts.S2} (${t("masked")})`, path.masked])),
    step("softmax", becomes("softmax →", [`${facts.S2}   `, path.masked], ["A", path.weights, open])),
    step("mix", (unit) => [
      [null, square("A ", path.weights, unit, open, { columns: undefined })],
      ["·", wide("V ", path.value, offering, unit)],
      ["=", wide("Z", path.mixed, asking, unit)],
    ]),
    step("joined", (unit) => [[null, wide(t("joined"), path.joined, asking, unit, { rows: asking, span })]]),
  ];
  return stepFigure(width, steps.filter(Boolean), t("title"));
}

// One pair of tokens through one head: products, score, the row's softmax, and what is taken along.

const SHOWN = 12;

// Everything the pair's figures say, computed once.
function ledger(path, { query, key }) {
  const [q, k] = [row(path.query, query), row(path.key, key)];
  const scores = row(path.masked, query);
  const most = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - most));
  const shares = row(path.weights, query);
  const seen = shares.map((_, place) => place).filter((place) => scores[place] > -Infinity || place === key);
  const strongest = [...seen].sort((a, b) => shares[b] - shares[a] || a - b).slice(0, SHOWN);
  if (!strongest.includes(key)) strongest[strongest.length - 1] = key;
  strongest.sort((a, b) => a - b);
  const products = q.map((value, n) => value * k[n]);
  const others = seen.length - strongest.length; // what is hidden from the token is not counted
  return { q, k, products, scores, powers, shares, strongest, others, sum: total(powers) };
}

function rowFigure(book, { key, names, deep, t }, room) {
  const columns = deep ? [[t("score"), 134, book.scores.map((score) => number(score))], ["exp", 196, book.powers.map(small)]] : [];
  const format = deep ? small : percent;
  const start = deep ? 214 : 92;
  const width = room - start - 56;
  const node = svg("g", {}, columns.map(([title, x]) => label(title, x, 10, { size: 11, anchor: "end" })));
  node.append(label(t("share"), start, 10, { size: 11 }));
  book.strongest.forEach((place, n) => {
    const y = 20 + n * 20;
    const look = place === key ? { fill: "var(--accent-2)", weight: 650 } : { fill: "var(--ink)" };
    const share = book.shares[place];
    const bar = { x: start, y: y + 1, height: 12, rx: 1.5 };
    node.append(
      label(fitted(names[place], 74, 12), 0, y + 11, look),
      ...columns.map(([, x, texts]) => label(texts[place], x, y + 11, { anchor: "end", fill: "var(--ink)" })),
      svg("rect", { ...bar, width, fill: "var(--line)", opacity: 0.45 }),
      svg("rect", { ...bar, width: Math.max(share > 0 ? 1 : 0, share * width), fill: shade(0.35 + share * 0.5) }),
      label(format(share), start + width + 8, y + 11, look),
    );
  });
  const foot = 20 + book.strongest.length * 20 + 12;
  if (!book.others) return { node, height: foot - 16 };
  const left = 1 - total(book.strongest.map((place) => book.shares[place]));
  node.append(label(`${t("others", { n: book.others })}: ${format(Math.max(0, left))}`, 0, foot));
  return { node, height: foot };
}

function everyNumber(t, book, path, pair, names) {
  const mixed = row(path.mixed, pair.query);
  const value = row(path.value, pair.key);
  const dimensions = book.q.map((q, n) => [String(n), q, book.k[n], book.products[n], value[n], mixed[n]]);
  const figures = (heads, rows) => table(heads, rows.map((cells) => cells.map((cell) => (typeof cell === "number" ? number(cell) : cell))), {
    class: "figure-table", tabindex: 0, role: "region", "aria-label": heads.join(", "),
  });
  const tokens = names.map((name, n) => [name, book.scores[n], small(book.powers[n]), small(book.shares[n])]);
  return el("details", { class: "figure-all" }, el("summary", { "data-keep": "all" }, t("all")),
    el("p", {}, t("rounded")),
    el("div", { class: "figure-tables" },
      figures(["", "q", "k", "q × k", "v", "z"], dimensions), figures([t("token"), t("score"), "exp", t("share")], tokens)));
}

// The figure, and at the deep level every number in tables.
function pairOf({ context, width, attention, path, pair, note, tokens }) {
  const { t, state } = context;
  const deep = state.get("level") === "deep";
  const book = ledger(path, pair);
  const [a, b] = [tokens.queries[pair.query], tokens.keys[pair.key]];
  const K = book.q.length;
  const scaled = scaling(attention.numbers, K);
  const at = (source) => number(source.at(pair.query, pair.key));
  const facts = {
    a, b, K, i: pair.query, j: pair.key, score: at(path.scores), result: at(path.scaled),
    bias: path.bias ? at(path.bias) : "", biased: at(path.biased), share: (deep ? small : percent)(book.shares[pair.key]),
    sum: number(book.sum), ...scaled,
  };
  facts.by = t(`by.${scaled.name}`, scaled);
  const say = stepText(context, facts);
  const added = [path.bias && "sum.bias", path.hidden(pair.query, pair.key) && "sum.masked"].filter(Boolean);
  const mixed = row(path.mixed, pair.query);
  const taken = book.strongest.map((place) => ({
    name: tokens.keys[place], values: row(path.value, place), share: book.shares[place],
  }));
  const most = Math.max(...[...taken, { values: mixed, share: 1 }].flatMap(({ values, share }) =>
    values.map((value) => Math.abs(value * share))));
  const take = say("take");
  if (book.others > 0) take.text += ` (+ ${t("others", { n: book.others })})`;
  const steps = [
    { ...say("products"), draw: (room) => bars([
      { name: `q · ${a}`, values: book.q }, { name: `k · ${b}`, values: book.k },
      { name: t("products"), values: book.products },
    ], room, note) },
    { ...say("sum", ...added), draw: (room) => tally(stations(path, pair, facts, t), room) },
    { ...say("row"), draw: (room) => rowFigure(book, { key: pair.key, names: tokens.keys, deep, t }, room) },
    { ...take, draw: (room) => bands([...taken, { name: "z", values: mixed, share: 1, apart: true }], room, note, most) },
  ];
  const figure = stepFigure(width, steps, t("pair"));
  return deep ? [figure, everyNumber(t, book, path, pair, tokens.keys)] : [figure];
}

// The score on its way from the sum to the share: [what is done, what comes out].
function stations(path, pair, { score, sign, result, biased, share }, t) {
  const hidden = path.hidden(pair.query, pair.key);
  return [
    ["Σ q × k", score], [sign, result], path.bias && ["+ B", biased],
    path.masking !== "none" && [t("mask"), hidden ? "−∞" : biased], ["softmax", share],
  ].filter(Boolean);
}

// In large figures, as many in a line as there is room for.
function tally(ways, room) {
  const node = svg("g");
  const fitting = Math.min(ways.length, Math.floor(room / 104));
  const unit = Math.min(150, room / fitting);
  ways.forEach(([sign, value], n) => {
    const [x, y] = [(n % fitting) * unit, Math.floor(n / fitting) * 54];
    node.append(label(n ? `→ ${sign}` : sign, x, y + 14));
    node.append(label(value, x, y + 38, { size: 20, weight: 600, fill: "var(--ink)" }));
  });
  return { node, height: Math.ceil(ways.length / fitting) * 54 - 6 };
}

// Rows of numbers as bars or bands, each with its name before it.

const SIDE = 84; // room for a name

// { name, values, apart } one below the other; `draw(strip, width)` gives what stands behind the name.
function strips(rows, room, note, { height, gap, draw }) {
  const width = room - SIDE;
  const node = svg("g", {}, rows.map((strip, n) => {
    const { name, values, apart } = strip;
    const y = n * (height + gap) + (apart ? 8 : 0);
    const watched = cells({
      rows: 1, columns: values.length, width, height, name: `${name}: ${values.length}`,
      ...note.over((_, place) => `${name} · ${place}: ${number(values[place])}`),
    });
    const look = { fill: "var(--ink)", weight: apart ? 650 : 400 };
    return [
      label(fitted(name, SIDE - 10, 12), 0, y + height / 2 + 4, look),
      svg("g", { transform: `translate(${SIDE} ${y})` }, draw(strip, width), watched),
    ];
  }));
  return { node, height: rows.length * (height + gap) + (rows.at(-1).apart ? 8 : -gap) };
}

// Bars that go up and down from a line in the middle.
function bars(rows, room, note) {
  const middle = 23;
  const draw = ({ values }, width) => {
    const unit = width / values.length;
    const most = Math.max(...values.map(Math.abs)) || 1;
    return [svg("path", { d: `M0 ${middle}H${width}`, stroke: "var(--line)" }), values.map((value, place) => {
      const height = (Math.abs(value) / most) * middle;
      const box = { x: place * unit, y: middle - (value > 0 ? height : 0), width: unit - (unit > 4 ? 1 : 0), height };
      return svg("rect", { ...box, fill: diverging(Math.sign(value) * 0.72) });
    })];
  };
  return strips(rows, room, note, { height: 2 * middle, gap: 10, draw });
}

// Bands: the color is the number, its strength the `share` of its row.
function bands(rows, room, note, most) {
  const height = 13;
  const draw = ({ values, share, apart }, width) => {
    const source = grid(1, values.length, (_, place) => values[place] * share);
    const edge = { width, height, fill: "none", stroke: "var(--line)", "stroke-width": apart ? 1.5 : 0.5 };
    return [picture(pixels(source, (value) => divergingBytes(value / most)), { width, height }), svg("rect", edge)];
  };
  return strips(rows, room, note, { height, gap: 4, draw });
}
