// The sections of a report that are drawn: bars, curves, class confusion, images, forecasts, attention.
import { el, svg } from "../dom.js";
import { bars, legend, lineChart, lineLook } from "../drawing/chart.js";
import { forecastChart } from "../drawing/forecast.js";
import { createGallery } from "../drawing/gallery.js";
import { createLegend, createMap, raster, SCALES } from "../drawing/map.js";
import { resize } from "../drawing/text.js";
import { largest } from "../attention/measure.js";
import { overlay, picture } from "../views/image.js";
import { section } from "./tables.js";

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
  resize(drawing, width, keys.height + chart.height);
  return figure(title, more, drawing);
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

// A map of shares with a sentence for the cell under the pointer; `spec` is the map's, `told(row, column, share)` the sentence.
function shareMap(spec, describe, rest) {
  const root = el("div", { class: "attention" }), readout = el("p", { class: "said soft", "aria-live": "polite" });
  const update = (cell) => (readout.textContent = cell ? describe(cell.query, cell.key) : rest);
  const map = createMap(root, { onCell: update, onPick: () => {} });
  root.append(map.node, readout);
  map.draw({ hidden: () => false, digits: true, ...spec });
  return { root, draw: (changes) => map.draw({ hidden: () => false, digits: true, ...spec, ...changes }) };
}

const tokens = (texts) => texts.map((text) => ({ text }));

function confusionMap({ labels, shares, mistakes }, { t }) {
  const nodes = [];
  if (shares) {
    const map = { shape: [labels.length, labels.length], data: Float32Array.from(shares.flat()) };
    const describe = (row, column) => t("cell", { truth: labels[row], answer: labels[column], share: shares[row][column].toFixed(2) });
    const panels = [{ map, scale: SCALES.weights, most: 1 }];
    const spec = { rows: tokens(labels), columns: tokens(labels), panels, hint: t("hint"), label: t("map") };
    nodes.push(figure(t("map"), "", shareMap(spec, describe, t("hint")).root));
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
  const strongest = (map) => entry.target.map((target, row) => {
    const weights = map.data.subarray(row * entry.source.length, (row + 1) * entry.source.length);
    return `${target} ← ${entry.source[weights.indexOf(Math.max(...weights))]}`;
  }).join(", ");
  let chosen = 0;
  const spec = () => ({
    rows: tokens(entry.target), columns: tokens(entry.source), hint: t("hint"), label: `${entry.title}: ${strongest(maps[chosen])}`,
    panels: [{ map: maps[chosen], scale: SCALES.weights, most: largest(maps[chosen].data) }],
  });
  const describe = (row, column) => t("cell", { target: entry.target[row], source: entry.source[column], weight: maps[chosen].at(row, column).toFixed(2) });
  const map = shareMap(spec(), describe, t("hint"));
  const strip = createLegend(SCALES.weights), which = el("span", {}, captions[0]);
  const ends = () => strip.draw(`${t("weight")} 0`, largest(maps[chosen].data).toFixed(2));
  ends();
  const figureNode = el("figure", { class: "attention" },
    el("figcaption", {}, el("b", { dir: "auto" }, entry.title), which), map.root, strip.node);
  if (!entry.heads.length) return figureNode;
  const gallery = createGallery({
    onChoose(cell) {
      chosen = cell.place === chosen ? 0 : cell.place; // once more: back to the mean
      which.textContent = captions[chosen];
      map.draw(spec());
      ends();
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
  const seen = heads.map((rows) => ({ rows: rows.length, columns: rows[0].length, weights: rows.flat() }));
  const image = { png, size: 64 };
  const drawn = (side, name, more) => {
    const node = svg("svg", { role: "img", "aria-label": name }, picture(image, [side, side]), more);
    resize(node, side, side);
    return node;
  };
  const right = answers.length > 0 && answers[0][0] === truth;
  const rows = answers.map(([name, share]) => ({ name, share, text: `${(100 * share).toFixed(1)}%` }));
  return el("div", { class: "sample" },
    el("div", { class: "report-charts" },
      figure(title, t(right ? "right" : "wrong", { truth }), drawn(LARGE, title)),
      seen.map((head, n) => el("figure", {}, el("figcaption", {}, t("headName", { name: n })),
        drawn(SMALL, t("headName", { name: n }), overlay(head, head.weights, [SMALL, SMALL], "tint"))))),
    rows.length ? bars(rows, Math.min(width, 480), t("probability")) : "");
}

function forecastFigure(entry, { t, nameOf, note }, room) {
  const lines = Object.fromEntries(Object.entries(entry.lines).map(([name, values]) => [nameOf(name), values]));
  const series = { name: entry.title, context: entry.context, forecast: entry.forecast, truth: entry.truth, patches: entry.patches, lines };
  const patchName = (n) => t("patch", { from: entry.patches[n][0], to: entry.patches[n][1] - 1 });
  const looking = entry.patches.length ? { from: null, shares: entry.weights, title: "" } : null;
  return figure(entry.title, "", forecastChart({ series, width: room, looking, nameOf: patchName, note, t }));
}

export const constructions = section("constructions", constructionBars);
export const byLength = section("by_length", lengthChart);
export const training = section("training", trainingCharts);
export const confusion = section("confusion", confusionMap);
export const images = section("images", (content, tools) => content.map((entry) => imageFigure(entry, tools)));
export const attention = section("attention", attentionFigures);
export const forecasts = section("forecasts", (content, tools) => [
  columns(content, tools.width, (entry, room) => forecastFigure(entry, tools, room))]);
