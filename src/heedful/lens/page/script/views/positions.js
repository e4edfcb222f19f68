// How the model knows where its tokens stand: the scheme it uses, as map, waves and similarity, or as bias.
import { divergingBytes, hue } from "../color.js";
import { el, svg } from "../dom.js";
import { extent, lineChart, ticks } from "../drawing/chart.js";
import { matrix, plane, row, signed, robustMax } from "../drawing/matrix.js";
import { redrawn, stepFigure, stepText } from "../drawing/stage.js";
import { label, number } from "../drawing/text.js";

export const name = "positions";

const OPENING = [0, 10 / 127, 50 / 127, 100 / 127]; // of the way from the quickest dimension to the slowest
const MOST = 6; // hues that are told apart

export const fits = (doc) => Boolean(doc.positions?.table ?? doc.positions?.bias);

// The dimensions seen as waves after a click on one, which adds it or takes it away.
function toggled(chosen, dimension) {
  const without = chosen.filter((other) => other !== dimension);
  if (without.length === chosen.length) return [...chosen.slice(chosen.length < MOST ? 0 : 1), dimension].sort((a, b) => a - b);
  return without.length ? without : chosen;
}

export async function mount(root, { doc, arrays, state, t }) {
  const { scheme, ...ids } = doc.positions;
  const read = async (id) => (id ? arrays.get(id) : null);
  const [values, alike, bias] = await Promise.all([read(ids.table), read(ids.similarity), read(ids.bias)]);
  let chosen = values && [...new Set(OPENING.map((part) => Math.round(part * (values.shape[1] - 1))))];
  const choose = (_, dimension) => ((chosen = toggled(chosen, dimension)), again());
  const stepWords = stepText({ t, state }, { table: "PE" });
  const course = { learned: "courses", rotary: "turns" }[scheme] ?? "waves";

  const again = redrawn(root, state, ["head"], (width, note) => {
    const shared = { t, note, column: t(scheme === "rotary" ? "pair" : "dimension") };
    const head = state.get("head");
    const turning = scheme === "rotary";
    const step = (part, draw, ...more) => ({ ...stepWords(part, ...more), draw });
    const steps = [
      values && step(scheme, (room) => table(plane(values), chosen, choose, room, shared)),
      values && step(course, (room) => waves(plane(values), chosen, room, shared)),
      turning && step("dials", (room) => dials(plane(values), chosen, room, shared)),
      alike && step(turning ? "turned" : "alike", (room) => likeness(plane(alike), room, shared), ...(doc.image ? ["alike.image"] : [])),
      bias && step(scheme, (room) => biases(bias, head, room, shared)),
      bias && step("fading", (room) => fading(bias, head, room, shared)),
    ];
    const [all, shape] = [doc.positions.size, values?.shape];
    const cut = all && (all[0] > shape[0] || all[1] > shape[1]);
    const corner = cut && t("corner", { n: shape[0], all_n: all[0], d: shape[1], all_d: all[1] });
    return [cut ? el("p", { class: "figure-note" }, corner) : "", stepFigure(width, steps.filter(Boolean), t("title"))];
  });
}

// Positions as vectors: the table, some dimensions as waves, turns as dials, and how alike places are.

const SIDE = 40;

function framed(block, source, unit) {
  const node = svg("g", { transform: `translate(${SIDE} ${block.top})` }, block.node);
  const rows = ticks([0, source.rows - 1], 4);
  node.append(svg("g", {}, rows.map((row) => label(row, -7, (row + 0.5) * unit[1] + 4, { size: 11, anchor: "end" }))));
  return node;
}

function table(source, chosen, choose, room, { t, note, column: word }) {
  const unit = [(room - SIDE) / source.columns, Math.max(2, 220 / source.rows)];
  const block = matrix({
    name: `${t("position")} × ${word}`, source, unit, color: signed(source),
    watch: {
      key: "table", choose,
      ...note.over((row, column) => `${t("position")} ${row} · ${word} ${column}: ${number(source.at(row, column))}`),
    },
  });
  const node = framed(block, source, unit);
  chosen.forEach((dimension, n) => {
    const x = (dimension + 0.5) * unit[0];
    const height = block.height + 5;
    node.append(svg("path", { d: `M${x - 5} ${height + 8}l5 -8l5 8z`, fill: hue(n) }));
    node.append(label(dimension, x, height + 21, { size: 11, anchor: "middle", weight: 600, fill: hue(n) }));
  });
  return { node, height: block.top + block.height + 30 };
}

function waves(source, chosen, room, { t }) {
  const course = (column) => Array.from({ length: source.rows }, (_, row) => [row, source.at(row, column)]);
  const series = chosen.map((column) => ({ name: String(column), points: course(column) }));
  const range = extent([...series.flatMap(({ points }) => points.map(([, value]) => value)), 0], 0.04);
  const chart = lineChart({
    series, width: room, right: 34, domain: [0, source.rows - 1], range, xLabel: t("position"), name: t("waves.title"),
  });
  const ends = chosen.map((column, n) => ({ n, y: chart.y(source.at(source.rows - 1, column)) })).sort((a, b) => a.y - b.y);
  ends.forEach((end, n) => (end.y = n ? Math.max(end.y, ends[n - 1].y + 13) : end.y)); // names keep apart
  for (const end of ends) {
    chart.node.append(label(chosen[end.n], room - 26, end.y + 4, { size: 12, weight: 600, fill: hue(end.n) }));
  }
  return chart;
}

// How far one step turns a pair. Slow turns are read far out, where their cosine is no longer one in float32.
function turn(source, column) {
  const first = Math.acos(Math.min(1, source.at(1, column)));
  const last = source.rows - 1;
  return first * last < 3 ? Math.acos(Math.max(-1, Math.min(1, source.at(last, column)))) / last : first;
}

function dials(source, chosen, room, { t }) {
  const unit = Math.min(130, room / chosen.length);
  const radius = unit * 0.36;
  const node = svg("g", { role: "img", "aria-label": t("dials.title") });
  chosen.forEach((column, n) => {
    const [x, y] = [n * unit + unit / 2, radius + 4];
    const step = turn(source, column);
    node.append(svg("circle", { cx: x, cy: y, r: radius, fill: "none", stroke: "var(--line)" }));
    for (let place = 7; place >= 0; place -= 1) {
      const [dx, dy] = [radius * Math.cos(place * step), -radius * Math.sin(place * step)];
      const hand = { stroke: hue(n), "stroke-width": place ? 1.6 : 3, opacity: 1 - place * 0.1, "stroke-linecap": "round" };
      node.append(svg("path", { d: `M${x} ${y}l${dx.toFixed(2)} ${dy.toFixed(2)}`, ...hand }));
    }
    node.append(label(`${t("pair")} ${column}`, x, 2 * radius + 22, { anchor: "middle", weight: 600, fill: hue(n) }));
    const degrees = ((step * 180) / Math.PI).toPrecision(2);
    node.append(label(`${t("step")}: ${degrees}°`, x, 2 * radius + 38, { size: 11, anchor: "middle" }));
  });
  return { node, height: 2 * radius + 44 };
}

function likeness(source, room, { t, note }) {
  const size = Math.min(320, room - SIDE) / source.rows;
  const block = matrix({
    name: t("similarity"), source, unit: [size, size], color: divergingBytes,
    watch: note.over((row, column) => `${row} · ${column}: ${number(source.at(row, column))}`),
  });
  return { node: framed(block, source, [size, size]), height: block.top + block.height + 4 };
}

// What a position scheme adds to the scores, by head: as maps, and as lines over the distance.

function biases(bias, chosen, room, { t, note }) {
  const heads = Array.from({ length: bias.shape[0] }, (_, head) => plane(bias, head));
  const most = Math.max(...heads.map(robustMax));
  const lines = Math.ceil(heads.length / Math.max(2, Math.min(6, Math.floor(room / 96))));
  const fitting = Math.ceil(heads.length / lines);
  const side = Math.min(150, room / fitting - 12);
  const node = svg("g");
  heads.forEach((source, head) => {
    const unit = side / source.columns;
    const block = matrix({
      name: `${t("head")} ${head}`, source, unit: [unit, unit], color: (value) => divergingBytes(value / most),
      span: head === chosen ? [0, source.columns] : undefined,
      watch: note.over((row, column) => `${row} → ${column}: ${number(source.at(row, column))}`),
    });
    const [x, y] = [(head % fitting) * (side + 12), Math.floor(head / fitting) * (side + 34) + block.top];
    node.append(svg("g", { transform: `translate(${x} ${y})` }, block.node));
  });
  return { node, height: lines * (side + 34) - 8 };
}

function fading(bias, chosen, room, { t }) {
  const [heads, rows] = bias.shape;
  const middle = Math.floor(rows / 2);
  const bold = { stroke: "var(--accent-2)", "stroke-width": 3 };
  const series = Array.from({ length: heads }, (_, head) => ({
    name: `${t("head")} ${head}`, points: row(plane(bias, head), middle).map((value, column) => [column - middle, value]),
    look: head === chosen ? bold : { stroke: hue(0), "stroke-width": 1.2, opacity: 0.55 },
  }));
  const range = extent(series.flatMap(({ points }) => points.map(([, value]) => value)));
  return lineChart({ series, width: room, high: 190, range, xLabel: t("distance"), name: t("fading.title") });
}
