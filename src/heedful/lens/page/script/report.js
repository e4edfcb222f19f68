// The report page: the results of a run. Its header, and every section in the order of the page.
import { largest, peak, rowOf } from "./attention/measure.js";
import { el, svg } from "./dom.js";
import { bars, legend, lineChart, lineLook } from "./drawing/chart.js";
import { forecastChart } from "./drawing/forecast.js";
import { createGallery, createLegend, createMap, raster, SCALES } from "./drawing/map.js";
import { redrawn, table } from "./drawing/stage.js";
import { resize } from "./drawing/text.js";
import { phraseTranslator, section as catalogOf, translator } from "./i18n.js";
import { messages } from "./messages.js";
import { openPage } from "./page.js";
import { overlay, picture } from "./views/input.js";
import * as positions from "./views/positions.js";

const MOST_ACROSS = 5; // scores side by side; more stand one below the other
const TEXTS = new Set(["warnings", "notes"]); // sentences, each a paragraph
const OWN = new Set(["labels", "classes", "columns", "name", "file", "path", "run"]); // hold the reader's own words
const LONGEST_LOUD_WORD = 24; // letters; a hash or a path is set small

// A section of the report as a view: `draw(content, tools)` gives its nodes, anew for another width, language or theme.
function section(name, draw) {
  return {
    name,
    fits: (doc) => Boolean(doc[name]),
    mount(root, context) {
      const { doc, messages, state, t } = context;
      const names = translator([catalogOf(messages, "names")], state);
      const labelOf = (key) => {
        const id = key.toLowerCase().replaceAll(" ", "_");
        return names.has(id) ? names(id) : null;
      };
      const phrase = phraseTranslator(catalogOf(messages, "phrases"), state, labelOf);
      // "validation BLEU" is the name of a set and the name of a metric.
      const known = (key) => labelOf(key) ?? phrase(key);
      const jointLabel = (key) => {
        const words = key.split(" ");
        const pairs = words.map((_, n) => [words.slice(0, n).join(" "), words.slice(n).join(" ")]);
        const pair = pairs.find((parts) => parts.every(known));
        return pair ? pair.map(known).join(" ") : null;
      };
      // The label of a name that comes with the data, and a sentence of the data in the reader's language. One that the
      // catalogs do not have stays as it is.
      const nameOf = (key) => known(key) ?? jointLabel(key) ?? key.replaceAll("_", " ");
      const sentence = (text) => phrase(text) ?? text;
      const cell = (value) => (typeof value === "boolean" ? t(value ? "yes" : "no") : sentence(value));
      redrawn(root, state, [], (width, note) => draw(doc[name], { ...context, nameOf, sentence, width, note, cell }));
    },
  };
}

// Names and values, side by side; a value may be a list.
function factList(facts, { nameOf, cell }) {
  const isLong = (text) => text.split(/\s/).some((word) => word.length > LONGEST_LOUD_WORD);
  const texts = facts.map(([name, value]) => [name, [value].flat().map((each) => (OWN.has(name) ? each : cell(each))).join(", ")]);
  return el("dl", { class: "report-facts" }, texts.map(([name, text]) => el("div", {},
    el("dt", {}, nameOf(name)), el("dd", { dir: "auto", class: isLong(text) ? "mono" : null }, text))));
}

// A table of the document under the names of its keys; the rows' own names are translated where `named` says so.
function dataTable({ keys, rows, total }, { t, nameOf, cell }, named) {
  const body = rows.map((values) => values.map((value, n) => (
    named && n === 0 ? nameOf(value) : OWN.has(keys[n]) ? value : cell(value))));
  const note = total > rows.length && el("p", { class: "figure-note" }, t("out_of", { shown: rows.length, total }));
  return [table(keys.map(nameOf), body), note || ""];
}

function scoreTable(rows, { t, nameOf, sentence }) {
  const unique = (key) => [...new Set(rows.map((row) => row[key]))];
  const [sets, metrics] = [unique("set"), unique("metric")];
  const text = (set, metric) => rows.findLast((row) => row.set === set && row.metric === metric)?.text ?? "–";
  const across = metrics.length <= MOST_ACROSS;
  const heads = across ? [t("set"), ...metrics.map(nameOf)] : [t("score"), ...sets.map(nameOf)];
  const body = across ? sets.map((set) => [nameOf(set), ...metrics.map((metric) => text(set, metric))])
    : metrics.map((metric) => [nameOf(metric), ...sets.map((set) => text(set, metric))]);
  const signed = new Map(rows.filter((row) => row.signature).map((row) => [`${row.metric} ${row.signature}`, row]));
  const signatures = [...signed.values()].map((row) => el("div", {},
    el("dt", {}, nameOf(row.metric)), el("dd", { class: "mono" }, sentence(row.signature))));
  return [table(heads, body), ...(signatures.length ? [el("h3", {}, t("signature")), el("dl", { class: "signatures" }, signatures)] : [])];
}

// [name, what stands beside it] one below the other.
function entry(pairs) {
  return el("div", { class: "sample" }, el("dl", {}, pairs.map(([name, text, look]) => [
    el("dt", {}, name), el("dd", { dir: "auto", class: look }, text)])));
}

function sampleEntry({ source, reference, output, same, score, exact }, t) {
  const pieces = (parts, tag) => parts.map(([text, differs]) => (differs ? el(tag, {}, text) : text));
  const remark = [score, exact && t("exact"), same && t("same")].filter(Boolean).join(" · ");
  const answer = output.length ? pieces(output, "ins") : t("nothing");
  const texts = same ? [[t("output"), answer]] : [[t("reference"), pieces(reference, "del")], [t("output"), answer]];
  return entry([[t("source"), source], ...texts, [t("score"), remark, "soft"]]);
}

function sampleList({ groups, shown, total }, { t }) {
  const listed = Object.entries(groups).flatMap(([name, samples]) => [
    el("h3", {}, t(name)), ...samples.map((sample) => sampleEntry(sample, t))]);
  return [
    el("p", { class: "figure-note" }, el("del", {}, t("missing")), " · ", el("ins", {}, t("extra"))),
    ...listed, el("p", { class: "figure-note" }, t("out_of", { shown, total })),
  ];
}

function dataGroup(group, tools, isOwn) {
  const { t, width } = tools;
  const nameOf = isOwn ? (name) => (name.includes(" ") ? tools.sentence(name) : name) : tools.nameOf; // "with an answer" is ours
  if (!group.bars) return dataTable(group.table, tools, group.named);
  return [bars(group.bars.map(([name, share, text, places]) => ({
    name: nameOf(name), share, text, note: places && t("first_at", { places }),
  })), width, `${t("reason")}, ${t("count")}`)];
}

// The sections that are drawn: bars, curves, class confusion, images, forecasts, attention.

const COLUMN = 300; // the narrowest chart of several side by side
const GAP = 32;
const [LARGE, SMALL] = [168, 92]; // sides of an image, and of what a head saw of it

// As many figures side by side as there is room for; `draw(item, width)` gives each.
function columns(items, width, draw) {
  const fitting = Math.max(1, Math.min(items.length, Math.floor((width + GAP) / (COLUMN + GAP))));
  const room = Math.min(560, Math.floor((width - (fitting - 1) * GAP) / fitting));
  return el("div", { class: "report-charts" }, items.map((item) => draw(item, room)));
}

function figure(title, more, ...content) {
  return el("figure", {}, el("figcaption", {}, el("b", { dir: "auto" }, title), more && el("span", {}, more)), content);
}

// Lines with their names above them, as a drawing that stands alone.
function chartFigure({ title, more, series, width, ...axes }) {
  const keys = series.length > 1 ? legend(series.map(({ name }, n) => [name, lineLook(n)]), 0, width) : { node: "", height: 0 };
  const chart = lineChart({ series, width, dots: true, name: `${title}: ${series.map(({ name }) => name).join(", ")}`, ...axes });
  const drawing = svg("svg", {}, keys.node, svg("g", { transform: `translate(0 ${keys.height})` }, chart.node));
  return figure(title, more, resize(drawing, width, keys.height + chart.height));
}

function constructionBars(content, { t, nameOf, width }) {
  const rows = content.map(([name, correct, total]) => ({
    name: nameOf(name), share: total ? correct / total : 0,
    text: total ? `${((100 * correct) / total).toFixed(1)}% (${correct.toLocaleString("en-US")}/${total.toLocaleString("en-US")})` : "– (0)",
  }));
  return [bars(rows, width, t("title"))];
}

function lengthChart({ buckets, lines }, { t, width }) {
  const series = lines.map(([name, points]) => ({
    name, points: buckets.map((bucket, n) => [n, points[n]?.[0] ?? null, `${bucket} (${t("sentences", { n: points[n]?.[1] ?? 0 })})`]),
  }));
  return [chartFigure({ title: t("score"), series, width: Math.min(560, width), xNames: buckets, xLabel: t("length") })];
}

function curveCharts(charts, { width }) {
  const draw = ({ title, x, lines }, room) => chartFigure({
    title, series: lines.map(([name, points]) => ({ name, points })), width: room, xLabel: x,
  });
  return [columns(charts, width, draw)];
}

function trainingCharts({ charts, lowest, averaged, broken }, { t, nameOf, width }) {
  const notes = [
    lowest && t("lowest", { value: lowest[0], step: lowest[1] }), averaged && t("averaged", { n: averaged }),
    broken > 0 && t("broken", { n: broken }),
  ].filter(Boolean);
  const draw = ([key, curves], room) => chartFigure({
    title: key === "loss" ? t("loss") : nameOf(key), more: curves.length === 1 && key !== "loss" && t(curves[0][0]),
    series: curves.map(([kind, points]) => ({ name: t(kind), points })), width: room, xLabel: t("step"),
  });
  return [columns(charts, width, draw), ...notes.map((note) => el("p", { class: "figure-note" }, note))];
}

// A map of shares with a sentence for the cell under the pointer: `describe(row, column)`, else the `hint`.
function shareMap(describe, hint) {
  const root = el("div", { class: "attention" }), readout = el("p", { class: "said soft", "aria-live": "polite" });
  const update = (cell) => (readout.textContent = cell ? describe(cell.query, cell.key) : hint);
  const map = createMap(root, { onCell: update, onPick: () => {} });
  root.append(map.node, readout);
  return { root, draw: (spec) => map.draw({ hidden: () => false, digits: true, hint, ...spec }) };
}

const tokens = (texts) => texts.map((text) => ({ text }));

function confusionMap({ labels, shares, mistakes }, { t }) {
  const nodes = [];
  if (shares) {
    const map = { shape: [labels.length, labels.length], data: Float32Array.from(shares.flat()) };
    const describe = (row, column) => t("cell", { truth: labels[row], answer: labels[column], share: shares[row][column].toFixed(2) });
    const drawn = shareMap(describe, t("hint"));
    drawn.draw({ rows: tokens(labels), columns: tokens(labels), panels: [{ map, scale: SCALES.weights, most: 1 }], label: t("map") });
    nodes.push(figure(t("map"), "", drawn.root));
  }
  if (!mistakes.length) return nodes;
  const listed = mistakes.map(([truth, answer, n]) => el("li", { dir: "auto" }, t("taken_for", { truth, answer, n })));
  return [...nodes, el("h3", {}, t("mistakes")), el("ul", {}, listed)];
}

// The mean of the heads large, and every head small: one that is chosen is shown large.
async function attentionFigure(entry, { arrays, state, t }) {
  const maps = await Promise.all([entry.mean, ...entry.heads].map((name) => arrays.get(name)));
  const nameOf = (head) => entry.names?.[head] ?? t("headName", { name: head });
  const captions = [entry.n_heads > 1 ? t("mean_of_heads", { n: entry.n_heads }) : "", ...entry.heads.map((_, head) => nameOf(head))];
  const strongest = (map) => entry.target.map((target, row) => `${target} ← ${entry.source[peak(rowOf(map, row))]}`).join(", ");
  const describe = (row, column) => t("cell", { target: entry.target[row], source: entry.source[column], weight: maps[chosen].at(row, column).toFixed(2) });
  const map = shareMap(describe, t("hint")), strip = createLegend(SCALES.weights), which = el("span", {});
  let chosen = 0;
  const show = (place) => {
    const most = largest(maps[place].data);
    chosen = place;
    which.textContent = captions[place];
    map.draw({
      rows: tokens(entry.target), columns: tokens(entry.source), label: `${entry.title}: ${strongest(maps[place])}`,
      panels: [{ map: maps[place], scale: SCALES.weights, most }],
    });
    strip.draw(`${t("weight")} 0`, most.toFixed(2));
  };
  show(0);
  const figureNode = el("figure", { class: "attention" },
    el("figcaption", {}, el("b", { dir: "auto" }, entry.title), which), map.root, strip.node);
  if (!entry.heads.length) return figureNode;
  const gallery = createGallery({
    onChoose(cell) {
      show(cell.place === chosen ? 0 : cell.place); // once more: back to the mean
      gallery.mark();
    },
    isChosen: (cell) => (cell.place === chosen ? "chosen" : ""),
  });
  const top = Math.max(...maps.slice(1).map(({ data }) => largest(data))); // the small maps share one scale
  const cells = entry.heads.map((weights, head) => ({
    place: head + 1, weights, caption: nameOf(head), lines: [], joint: "", label: `${nameOf(head)}: ${strongest(maps[head + 1])}`,
  }));
  figureNode.append(gallery.node);
  cells.forEach((cell) => gallery.picture(cell, raster(maps[cell.place], SCALES.weights, top, () => false)));
  gallery.draw([{ title: "", cells }], t("each_head"));
  return figureNode;
}

async function attentionFigures({ maps, left_out: missing }, tools) {
  const figures = await Promise.all(maps.map((entry) => attentionFigure(entry, tools)));
  const titles = missing.map(([title, heads]) => (heads ? `${title} (${tools.t("each_head")})` : title)).join(", ");
  return [...figures, missing.length ? el("p", { class: "figure-note" }, tools.t("left_out", { titles })) : ""];
}

// The image, then what each head saw of it, then the answers.
function imageFigure({ title, png, answers, truth, heads }, { t, width }) {
  const image = { png, size: 64 };
  const drawn = (side, name, more) =>
    resize(svg("svg", { role: "img", "aria-label": name }, picture(image, [side, side]), more), side, side);
  const right = answers.length > 0 && answers[0][0] === truth;
  const rows = answers.map(([name, share]) => ({ name, share, text: `${(100 * share).toFixed(1)}%` }));
  return el("div", { class: "sample" },
    el("div", { class: "report-charts" },
      figure(title, t(right ? "right" : "wrong", { truth }), drawn(LARGE, title)),
      heads.map((rows, n) => el("figure", {}, el("figcaption", {}, t("headName", { name: n })), drawn(SMALL, t("headName", { name: n }),
        overlay({ rows: rows.length, columns: rows[0].length }, rows.flat(), [SMALL, SMALL], "tint"))))),
    rows.length ? bars(rows, Math.min(width, 480), t("probability")) : "");
}

function forecastFigure(entry, { t, nameOf, note }, room) {
  const lines = Object.fromEntries(Object.entries(entry.lines).map(([name, values]) => [nameOf(name), values]));
  const series = { ...entry, name: entry.title, lines };
  const patchName = (n) => t("patch", { from: entry.patches[n][0], to: entry.patches[n][1] - 1 });
  const looking = entry.patches.length ? { from: null, shares: entry.weights, title: "" } : null;
  return figure(entry.title, "", forecastChart({ series, width: room, looking, nameOf: patchName, note, t }));
}

const views = [
  section("facts", (content, tools) => [factList(content, tools)]),
  section("scores", scoreTable),
  section("notes", (content, { sentence }) => content.map((text) => el("p", { dir: "auto" }, sentence(text)))),
  section("constructions", constructionBars),
  section("by_length", lengthChart),
  section("comparison", (content, tools) => dataTable(content, tools)),
  section("curves", curveCharts),
  section("confusion", confusionMap),
  section("samples", sampleList),
  section("continuations", (content, { t }) => content.map(([prompt, text]) => entry([[t("prompt"), prompt], [t("output"), text]]))),
  section("images", (content, tools) => content.map((each) => imageFigure(each, tools))),
  section("forecasts", (content, tools) => [columns(content, tools.width, (each, room) => forecastFigure(each, tools, room))]),
  section("attention", attentionFigures),
  section("training", trainingCharts),
  section("reading", ({ facts, ...content }, tools) => [
    factList(facts.filter(([name]) => !TEXTS.has(name)), tools),
    ...facts.filter(([name]) => TEXTS.has(name)).flatMap(([name, texts]) => [
      el("h3", {}, tools.nameOf(name)), ...[texts].flat().map((text) => el("p", { dir: "auto" }, tools.sentence(text)))]),
    ...content.groups.flatMap(([name, group]) => [el("h3", {}, tools.nameOf(name)), ...dataGroup(group, tools, OWN.has(name))]),
  ]),
  positions,
];
const KEYS = [[["k"], "keyLanguage"], [["d"], "keyTheme"], [["?"], "keyHelp"], [["Tab", "Enter"], "keyTab"]];

function header({ doc, state, t }) {
  const eyebrow = el("p", { class: "eyebrow" }), title = el("h1", { class: "question alone medium", dir: "auto" });
  const phrase = phraseTranslator(catalogOf(messages, "phrases"), state);
  function draw() {
    eyebrow.textContent = t("report");
    title.textContent = phrase(doc.title) ?? doc.title;
    document.title = `${title.textContent} · Heedful`;
  }
  draw();
  state.on("language", draw);
  return el("header", { class: "opening" }, eyebrow, title);
}

openPage({ messages, views, header, keys: KEYS, levels: ["simple"], choice: () => ({ head: 0 }), reconcile: () => () => ({}) });
