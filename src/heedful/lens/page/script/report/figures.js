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
    text: total ? `${((100 * correct) / total).toFixed(1)} % (${correct.toLocaleString("en-US")}/${total.toLocaleString("en-US")})` : "– (0)",
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
function shareMap(spec, told, rest) {
  const root = el("div", { class: "attention" }), readout = el("p", { class: "said soft", "aria-live": "polite" });
  const tell = (cell) => (readout.textContent = cell ? told(cell.query, cell.key) : rest);
  const map = createMap(root, { onCell: tell, onPick: () => {} });
  root.append(map.node, readout);
  map.draw({ hidden: () => false, digits: true, ...spec });
  return { root, draw: (changes) => map.draw({ hidden: () => false, digits: true, ...spec, ...changes }) };
}

const tokens = (texts) => texts.map((text) => ({ text }));

function confusionMap({ labels, shares, mistakes }, { t }) {
  const nodes = [];
  if (shares) {
    const map = { shape: [labels.length, labels.length], data: Float32Array.from(shares.flat()) };
    const told = (row, column) => t("cell", { truth: labels[row], answer: labels[column], share: shares[row][column].toFixed(2) });
    const panels = [{ map, scale: SCALES.weights, most: 1 }];
    const spec = { rows: tokens(labels), columns: tokens(labels), panels, hint: t("hint"), label: t("map") };
    nodes.push(figure(t("map"), "", shareMap(spec, told, t("hint")).root));
  }
  if (!mistakes.length) return nodes;
  const listed = mistakes.map(([truth, answer, n]) => el("li", { dir: "auto" }, t("taken_for", { truth, answer, n })));
  return [...nodes, el("h3", {}, t("mistakes")), el("ul", {}, listed)];
}

// The mean of the heads large, and every head small: one that is chosen is shown large.
async function attentionFigure(one, { arrays, state, t }) {
  const maps = await Promise.all([one.mean, ...one.heads].map((name) => arrays.get(name)));
  const nameOf = (head) => one.names?.[head] ?? t("headName", { name: head });
  const captions = [one.n_heads > 1 ? t("mean_of_heads", { n: one.n_heads }) : "", ...one.heads.map((_, head) => nameOf(head))];
  const strongest = (map) => one.target.map((target, row) => {
    const weights = map.data.subarray(row * one.source.length, (row + 1) * one.source.length);
    return `${target} ← ${one.source[weights.indexOf(Math.max(...weights))]}`;
  }).join(", ");
  let chosen = 0;
  const spec = () => ({
    rows: tokens(one.target), columns: tokens(one.source), hint: t("hint"), label: `${one.title}: ${strongest(maps[chosen])}`,
    panels: [{ map: maps[chosen], scale: SCALES.weights, most: largest(maps[chosen].data) }],
  });
  const told = (row, column) => t("cell", { target: one.target[row], source: one.source[column], weight: maps[chosen].at(row, column).toFixed(2) });
  const map = shareMap(spec(), told, t("hint"));
  const strip = createLegend(SCALES.weights), which = el("span", {}, captions[0]);
  const ends = () => strip.draw(`${t("weight")} 0`, largest(maps[chosen].data).toFixed(2));
  ends();
  const shown = el("figure", { class: "attention" },
    el("figcaption", {}, el("b", { dir: "auto" }, one.title), which), map.root, strip.node);
  if (!one.heads.length) return shown;
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
  const cells = one.heads.map((weights, head) => ({
    place: head + 1, weights, caption: nameOf(head), lines: [], joint: "", label: `${nameOf(head)}: ${strongest(maps[head + 1])}`,
  }));
  shown.append(gallery.node);
  cells.forEach((cell) => gallery.picture(cell, raster(maps[cell.place], SCALES.weights, top, () => false)));
  gallery.draw([{ title: "", cells }], t("each_head"));
  return shown;
}

async function attentionFigures({ maps, left_out: missing }, tools) {
  const figures = await Promise.all(maps.map((one) => attentionFigure(one, tools)));
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
  const rows = answers.map(([name, share]) => ({ name, share, text: `${(100 * share).toFixed(1)} %` }));
  return el("div", { class: "sample" },
    el("div", { class: "report-charts" },
      figure(title, t(right ? "right" : "wrong", { truth }), drawn(LARGE, title)),
      seen.map((head, n) => el("figure", {}, el("figcaption", {}, t("headName", { name: n })),
        drawn(SMALL, t("headName", { name: n }), overlay(head, head.weights, [SMALL, SMALL], "tint"))))),
    rows.length ? bars(rows, Math.min(width, 480), t("probability")) : "");
}

function forecastFigure(one, { t, nameOf, note }, room) {
  const lines = Object.fromEntries(Object.entries(one.lines).map(([name, values]) => [nameOf(name), values]));
  const series = { name: one.title, context: one.context, forecast: one.forecast, truth: one.truth, patches: one.patches, lines };
  const patchName = (n) => t("patch", { from: one.patches[n][0], to: one.patches[n][1] - 1 });
  const looking = one.patches.length ? { from: null, shares: one.weights, title: "" } : null;
  return figure(one.title, "", forecastChart({ series, width: room, looking, nameOf: patchName, note, t }));
}

export const constructions = section("constructions", constructionBars);
export const byLength = section("by_length", lengthChart);
export const training = section("training", trainingCharts);
export const confusion = section("confusion", confusionMap);
export const images = section("images", (content, tools) => content.map((one) => imageFigure(one, tools)));
export const attention = section("attention", attentionFigures);
export const forecasts = section("forecasts", (content, tools) => [
  columns(content, tools.width, (one, room) => forecastFigure(one, tools, room))]);
