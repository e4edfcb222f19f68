// Mean and deviation of every token before and after a norm: scattered rings, and dots that have come together.
import { hue } from "../../colour.js";
import { svg } from "../../dom.js";
import { extent, feet, rules, scale, ticks } from "./chart.js";
import { label, number } from "./text.js";

const HIGH = 170;
const FOOT = 50;

const columnOf = (array, column) => Array.from({ length: array.shape[0] }, (_, row) => array.at(row, column));
const meanOf = (values) => values.reduce((a, b) => a + b, 0) / values.length;

// Many tokens are drawn smaller and fainter, so that the cloud stays a cloud.
function sizes(count) {
  return count > 60 ? { ring: 2, dot: 1.8, way: 0.08 } : { ring: 3.5, dot: 3, way: 0.35 };
}

function plot({ name, before, after }, x0, wide, ranges, { t, note, tokens, look, deep }) {
  const x = scale(ranges.mean, [x0, x0 + wide]);
  const y = scale(ranges.deviation, [24 + HIGH, 24]);
  const node = svg("g", {}, label(name, x0, 12, { size: 12.5, weight: 600, fill: "var(--ink)" }));
  node.append(rules(ticks(ranges.deviation, 4), y, x0, wide));
  node.append(feet(ticks(ranges.mean, wide > 180 ? 4 : 3), x, 24 + HIGH + 16));
  const goal = { stroke: "var(--accent-2)", "stroke-width": 1, "stroke-dasharray": "3 3", fill: "none" };
  node.append(svg("path", { ...goal, d: `M${x(0)} 24v${HIGH}M${x0} ${y(1)}h${wide}` }));
  const { ring, dot, way } = sizes(tokens.length);
  tokens.forEach((text, n) => {
    const [from, to] = [before, after].map((array) => [x(array.at(n, 0)), y(array.at(n, 1))]);
    const group = svg("g", { "data-token": n, class: "figure-dot" },
      svg("path", { d: `M${from}L${to}`, stroke: "var(--soft)", "stroke-width": 0.7, opacity: way }),
      svg("circle", { cx: from[0], cy: from[1], r: ring, fill: "var(--paper)", stroke: hue(0), "stroke-width": 1.4 }),
      svg("circle", { cx: to[0], cy: to[1], r: dot, fill: hue(0), opacity: 0.85 }));
    group.addEventListener("pointerenter", () => {
      const told = (array) => `(${number(array.at(n, 0), 2)}, ${number(array.at(n, 1), 2)})`;
      note.show(group.getBoundingClientRect(), `${text}: ${told(before)} → ${told(after)}`);
      look(n);
    });
    group.addEventListener("pointerleave", () => {
      note.hide();
      look(null);
    });
    node.append(group);
  });
  if (deep) {
    const told = (column) => [before, after].map((array) => number(meanOf(columnOf(array, column)), 2)).join(" → ");
    const look = { size: 11.5, fill: "var(--ink)" };
    node.append(label(`μ ${told(0)}`, x0, 24 + HIGH + 36, look), label(`σ ${told(1)}`, x0, 24 + HIGH + 52, look));
  } else {
    const text = `${t("mean")} →   ${t("deviation")} ↑`;
    node.append(label(text, x0 + wide / 2, 24 + HIGH + 34, { size: 11, anchor: "middle" }));
  }
  return node;
}

export function norms(pairs, room, shared) {
  const side = 34;
  const fitting = Math.max(1, Math.min(pairs.length, Math.floor(room / 190)));
  const wide = Math.min(260, room / fitting - side - 14);
  const both = (column) => pairs.flatMap((pair) => [...columnOf(pair.before, column), ...columnOf(pair.after, column)]);
  const all = (column, goal) => extent([...both(column), goal]);
  const ranges = { mean: all(0, 0), deviation: all(1, 1) };
  const most = Math.max(...ranges.mean.map(Math.abs));
  ranges.mean = [-most, most];
  const high = 24 + HIGH + FOOT + 8;
  const node = svg("g", { role: "img", "aria-label": `${shared.t("mean")}, ${shared.t("deviation")}` });
  pairs.forEach((pair, n) => {
    const [row, column] = [Math.floor(n / fitting), n % fitting];
    const place = `translate(${column * (room / fitting)} ${row * (high + 16)})`;
    node.append(svg("g", { transform: place }, plot(pair, side, wide, ranges, shared)));
  });
  return { node, height: Math.ceil(pairs.length / fitting) * (high + 16) - 16 };
}
