// Positions as vectors: the table, some dimensions as waves, turns as dials, and how alike places are.
import { diverging, hue } from "../../colour.js";
import { svg } from "../../dom.js";
import { DASHES, extent, feet, line, rules, scale, ticks } from "./chart.js";
import { matrix, signed } from "./matrix.js";
import { label, number } from "./text.js";

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
    name: `${t("position")} × ${word}`, source, unit, colour: signed(source),
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

export function waves(source, chosen, room, { t }) {
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

export function dials(source, chosen, room, { t }) {
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

export function likeness(source, room, { t, note }) {
  const size = Math.min(320, room - SIDE) / source.rows;
  const block = matrix({
    name: t("similarity"), source, unit: [size, size], colour: diverging,
    watch: {
      leave: () => note.hide(),
      look: (row, column, box) => note.show(box, `${row} · ${column}: ${number(source.at(row, column))}`),
    },
  });
  return { node: framed(block, source, [size, size]), height: block.top + block.height + 4 };
}
