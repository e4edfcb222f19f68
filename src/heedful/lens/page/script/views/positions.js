// How the model knows where its tokens stand: the scheme it uses, as map, waves and similarity, or as bias.
import { diverging, hue } from "../color.js";
import { svg } from "../dom.js";
import { DASHES, extent, feet, line, rules, scale, ticks } from "../drawing/chart.js";
import { matrix, plane, row, signed, usual } from "../drawing/matrix.js";
import { redrawn, stepFigure } from "../drawing/stage.js";
import { label, number } from "../drawing/text.js";

export const name = "positions";

const OPENING = [0, 10 / 127, 50 / 127, 100 / 127]; // of the way from the quickest dimension to the slowest
const MOST = 6; // hues that are told apart

export function fits(doc) {
  return doc.positions !== null && Boolean(doc.positions.table ?? doc.positions.bias);
}

// The dimensions the reader has chosen to see as waves: a click adds one or takes it away.
function choice(columns, changed) {
  let chosen = [...new Set(OPENING.map((part) => Math.round(part * (columns - 1))))];
  return {
    get: () => chosen,
    toggle(dimension) {
      const without = chosen.filter((other) => other !== dimension);
      const added = without.length < chosen.length ? without : [...chosen.slice(chosen.length < MOST ? 0 : 1), dimension];
      if (added.length) chosen = added.sort((a, b) => a - b);
      changed();
    },
  };
}

export async function mount(root, { doc, arrays, state, t }) {
  const { scheme, ...ids } = doc.positions;
  const read = async (id) => (id ? arrays.get(id) : null);
  const [values, alike, bias] = await Promise.all([read(ids.table), read(ids.similarity), read(ids.bias)]);
  const dimensions = values && choice(values.shape[1], () => again());
  const said = (part, ...more) => ({
    title: t(`${part}.title`), text: [`${part}.${state.get("level")}`, ...more].map((word) => t(word, { table: "PE" })).join(" "),
  });
  const course = { learned: "courses", rotary: "turns" }[scheme] ?? "waves";

  const again = redrawn(root, state, ["head"], (width, note) => {
    const shared = { t, note, column: t(scheme === "rotary" ? "pair" : "dimension") };
    const head = state.get("head");
    const turning = scheme === "rotary";
    const step = (part, draw, ...more) => ({ ...said(part, ...more), draw });
    const steps = [
      values && step(scheme, (room) => table(plane(values), dimensions, room, shared)),
      values && step(course, (room) => waves(plane(values), dimensions.get(), room, shared)),
      turning && step("dials", (room) => dials(plane(values), dimensions.get(), room, shared)),
      alike && step(turning ? "turned" : "alike", (room) => likeness(plane(alike), room, shared), ...(doc.image ? ["alike.image"] : [])),
      bias && step(scheme, (room) => biases(bias, head, room, shared)),
      bias && step("fading", (room) => fading(bias, head, room, shared)),
    ];
    return [stepFigure(width, steps.filter(Boolean), t("title"))];
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

export function table(source, dimensions, room, { t, note, column: word }) {
  const unit = [(room - SIDE) / source.columns, Math.max(2, 220 / source.rows)];
  const block = matrix({
    name: `${t("position")} × ${word}`, source, unit, color: signed(source),
    watch: {
      key: "table", leave: () => note.hide(), choose: (_, column) => dimensions.toggle(column),
      look: (row, column, box) =>
        note.show(box, `${t("position")} ${row} · ${word} ${column}: ${number(source.at(row, column))}`),
    },
  });
  const node = framed(block, source, unit);
  dimensions.get().forEach((dimension, n) => {
    const x = (dimension + 0.5) * unit[0];
    const height = block.height + 5;
    node.append(svg("path", { d: `M${x - 5} ${height + 8}l5 -8l5 8z`, fill: hue(n) }));
    node.append(label(dimension, x, height + 21, { size: 11, anchor: "middle", weight: 600, fill: hue(n) }));
  });
  return { node, height: block.top + block.height + 30 };
}

function waves(source, chosen, room, { t }) {
  const high = 170;
  const wide = room - SIDE - 34;
  const course = (column) => Array.from({ length: source.rows }, (_, row) => source.at(row, column));
  const range = extent([...chosen.flatMap(course), 0], 0.04);
  const x = scale([0, source.rows - 1], [SIDE, SIDE + wide]);
  const y = scale(range, [high + 6, 6]);
  const node = svg("g", { role: "img", "aria-label": t("waves.title") });
  node.append(rules(ticks(range, 4), y, SIDE, wide), feet(ticks([0, source.rows - 1], 5), x, high + 24));
  node.append(label(t("position"), SIDE + wide, high + 40, { size: 11, anchor: "end" }));
  const ends = chosen.map((column, n) => ({ n, y: y(source.at(source.rows - 1, column)) })).sort((a, b) => a.y - b.y);
  ends.forEach((end, n) => (end.y = n ? Math.max(end.y, ends[n - 1].y + 13) : end.y)); // names keep apart
  chosen.forEach((column, n) => {
    const points = course(column).map((value, row) => [x(row), y(value)]);
    node.append(line(points, { stroke: hue(n), "stroke-dasharray": DASHES[n] }));
    const place = ends.find((end) => end.n === n).y;
    node.append(label(column, SIDE + wide + 8, place + 4, { size: 12, weight: 600, fill: hue(n) }));
  });
  return { node, height: high + 44 };
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
    name: t("similarity"), source, unit: [size, size], color: diverging,
    watch: {
      leave: () => note.hide(),
      look: (row, column, box) => note.show(box, `${row} · ${column}: ${number(source.at(row, column))}`),
    },
  });
  return { node: framed(block, source, [size, size]), height: block.top + block.height + 4 };
}

// What a position scheme adds to the scores, by head: as maps, and as lines over the distance.

function biases(bias, chosen, room, { t, note }) {
  const heads = Array.from({ length: bias.shape[0] }, (_, head) => plane(bias, head));
  const most = Math.max(...heads.map(usual));
  const lines = Math.ceil(heads.length / Math.max(2, Math.min(6, Math.floor(room / 96))));
  const fitting = Math.ceil(heads.length / lines);
  const side = Math.min(150, room / fitting - 12);
  const node = svg("g");
  heads.forEach((source, head) => {
    const unit = side / source.columns;
    const block = matrix({
      name: `${t("head")} ${head}`, source, unit: [unit, unit], color: (value) => diverging(value / most),
      span: head === chosen ? [0, source.columns] : undefined,
      watch: {
        leave: () => note.hide(),
        look: (row, column, box) => note.show(box, `${row} → ${column}: ${number(source.at(row, column))}`),
      },
    });
    const [x, y] = [(head % fitting) * (side + 12), Math.floor(head / fitting) * (side + 34) + block.top];
    node.append(svg("g", { transform: `translate(${x} ${y})` }, block.node));
  });
  return { node, height: lines * (side + 34) - 8 };
}

function fading(bias, chosen, room, { t }) {
  const [heads, rows, columns] = bias.shape;
  const middle = Math.floor(rows / 2);
  const [side, high] = [44, 190];
  const wide = room - side - 10;
  const values = Array.from({ length: heads }, (_, head) => row(plane(bias, head), middle));
  const range = extent(values.flat());
  const x = scale([-middle, columns - 1 - middle], [side, side + wide]);
  const y = scale(range, [high + 6, 6]);
  const node = svg("g", { role: "img", "aria-label": t("fading.title") });
  node.append(rules(ticks(range, 4), y, side, wide), feet(ticks([-middle, columns - 1 - middle], 5), x, high + 24));
  node.append(label(t("distance"), side + wide, high + 40, { size: 11, anchor: "end" }));
  values.forEach((added, head) => {
    const bold = { stroke: "var(--accent-2)", "stroke-width": 3 };
    const look = head === chosen ? bold : { stroke: hue(0), "stroke-width": 1.2, opacity: 0.55 };
    node.append(line(added.map((value, column) => [x(column - middle), y(value)]), look));
  });
  return { node, height: high + 44 };
}
