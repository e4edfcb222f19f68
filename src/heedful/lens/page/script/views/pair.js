// One pair of tokens through one head: products, score, the row's softmax, and what is taken along.
import { diverging, divergingBytes, shade } from "../color.js";
import { el, svg } from "../dom.js";
import { cells, grid, picture, pixels, row } from "../drawing/matrix.js";
import { stepFigure, stepText, table } from "../drawing/stage.js";
import { fitted, label, number, percent, small } from "../drawing/text.js";
import { scaling } from "./matrices.js";

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
  return { q, k, products, scores, powers, shares, strongest, others, total: powers.reduce((a, b) => a + b, 0) };
}

function rowFigure(book, { key, names, deep, t }, room) {
  const columns = deep ? [["score", 134], ["exp", 196]] : [];
  const start = deep ? 214 : 92;
  const width = room - start - 56;
  const node = svg("g");
  columns.forEach(([word, x]) => node.append(label(word === "exp" ? "exp" : t(word), x, 10, { size: 11, anchor: "end" })));
  node.append(label(t("share"), start, 10, { size: 11 }));
  const line = (place, n) => {
    const y = 20 + n * 20;
    const chosen = place === key;
    const look = { fill: chosen ? "var(--accent-2)" : "var(--ink)", weight: chosen ? 650 : 400 };
    const share = book.shares[place];
    node.append(label(fitted(names[place], 74, 12), 0, y + 11, look));
    if (deep) node.append(
      label(number(book.scores[place]), 134, y + 11, { anchor: "end", fill: "var(--ink)" }),
      label(small(book.powers[place]), 196, y + 11, { anchor: "end", fill: "var(--ink)" }),
    );
    const bar = { y: y + 1, height: 12, rx: 1.5 };
    node.append(
      svg("rect", { ...bar, x: start, width, fill: "var(--line)", opacity: 0.45 }),
      svg("rect", { ...bar, x: start, width: Math.max(share > 0 ? 1 : 0, share * width), fill: shade(0.35 + share * 0.5) }),
      label(deep ? small(share) : percent(share), start + width + 8, y + 11, look),
    );
  };
  book.strongest.forEach(line);
  const foot = 20 + book.strongest.length * 20 + 12;
  if (book.others > 0) {
    const left = 1 - book.strongest.reduce((sum, place) => sum + book.shares[place], 0);
    const format = deep ? small : percent;
    node.append(label(`${t("others", { n: book.others })}: ${format(Math.max(0, left))}`, 0, foot));
  }
  return { node, height: foot - (book.others > 0 ? 0 : 16) };
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
export function pairOf({ context, width, attention, path, pair, note, tokens }) {
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
    sum: number(book.total), ...scaled,
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

const SIDE = 84;

function watched(name, values, note, width, height) {
  return cells({
    rows: 1, columns: values.length, width, height, name: `${name}: ${values.length}`,
    ...note.over((_, place) => `${name} · ${place}: ${number(values[place])}`),
  });
}

// { name, values } one below the other; bars go up and down from a line in the middle.
export function bars(strips, room, note) {
  const [width, height] = [room - SIDE, 46];
  const node = svg("g");
  strips.forEach(({ name, values }, n) => {
    const middle = n * (height + 10) + height / 2;
    const unit = width / values.length;
    const most = Math.max(...values.map(Math.abs)) || 1;
    const lane = svg("g", { transform: `translate(${SIDE} ${middle})` });
    lane.append(svg("path", { d: `M0 0H${width}`, stroke: "var(--line)" }));
    values.forEach((value, place) => {
      const size = (Math.abs(value) / most) * (height / 2);
      const tint = diverging(Math.sign(value) * 0.72);
      const gap = unit > 4 ? 1 : 0;
      const top = value > 0 ? -size : 0;
      lane.append(svg("rect", { x: place * unit, y: top, width: unit - gap, height: size, fill: tint }));
    });
    lane.append(svg("g", { transform: `translate(0 ${-height / 2})` }, watched(name, values, note, width, height)));
    node.append(label(fitted(name, SIDE - 10, 12), 0, middle + 4, { fill: "var(--ink)" }), lane);
  });
  return { node, height: strips.length * (height + 10) - 10 };
}

// { name, values, share } one below the other: the color is the number, its strength the share.
function bands(strips, room, note, most) {
  const [width, height] = [room - SIDE, 13];
  const node = svg("g");
  strips.forEach(({ name, values, share, apart }, n) => {
    const y = n * (height + 4) + (apart ? 8 : 0);
    const source = grid(1, values.length, (_, place) => values[place] * share);
    const href = pixels(source, (value) => divergingBytes(value / most));
    const lane = svg("g", { transform: `translate(${SIDE} ${y})` }, picture(href, { width, height }));
    const edge = { width, height, fill: "none", stroke: "var(--line)", "stroke-width": apart ? 1.5 : 0.5 };
    lane.append(svg("rect", edge), watched(name, values, note, width, height));
    const weight = apart ? 650 : 400;
    node.append(label(fitted(name, SIDE - 10, 12), 0, y + height - 2.5, { fill: "var(--ink)", weight }), lane);
  });
  return { node, height: strips.length * (height + 4) + 8 };
}
