// Every token before and after a norm, by what the norm brings to one measure: rings, and dots that have come together.
import { hue } from "../../colour.js";
import { svg } from "../../dom.js";
import { extent, feet, rules, scale, ticks } from "./chart.js";
import { label, number } from "./text.js";

const HIGH = 170;
const TOP = 24;
const SIDE = 34;

// Where each kind of norm takes a token before its weights are applied: [mean, spread]; batch norm sees no token alone.
const GOALS = { layer: [0, 1], rms: [null, 1], batch: [null, null], other: [null, null] };

const meanOf = (values) => values.reduce((a, b) => a + b, 0) / values.length;

// A token's mean, and its deviation or root mean square.
function pointsOf(array, kind) {
  return Array.from({ length: array.shape[0] }, (_, n) => {
    const [mean, deviation] = [array.at(n, 0), array.at(n, 1)];
    return [mean, kind === "rms" ? Math.hypot(mean, deviation) : deviation];
  });
}

// Many tokens are drawn smaller and fainter, so that the cloud stays a cloud.
function sizes(count) {
  return count > 60 ? { ring: 2, dot: 1.8, way: 0.08 } : { ring: 3.5, dot: 3, way: 0.35 };
}

function goalOf([mean, spread], x, y, wide) {
  const d = (mean === null ? "" : `M${x(mean)} ${TOP}v${HIGH}`) + (spread === null ? "" : `M${SIDE} ${y(spread)}h${wide}`);
  return svg("path", { d, stroke: "var(--accent-2)", "stroke-width": 1, "stroke-dasharray": "3 3", fill: "none" });
}

function plot({ name, before, after }, kind, wide, ranges, { note, tokens, look, deep }) {
  const x = scale(ranges[0], [SIDE, SIDE + wide]);
  const y = scale(ranges[1], [TOP + HIGH, TOP]);
  const node = svg("g", {}, label(name, SIDE, 12, { size: 12.5, weight: 600, fill: "var(--ink)" }));
  node.append(rules(ticks(ranges[1], 4), y, SIDE, wide));
  node.append(feet(ticks(ranges[0], wide > 180 ? 4 : 3), x, TOP + HIGH + 16), goalOf(GOALS[kind], x, y, wide));
  const { ring, dot, way } = sizes(tokens.length);
  tokens.forEach((text, n) => {
    const [from, to] = [before, after].map((points) => [x(points[n][0]), y(points[n][1])]);
    const group = svg("g", { "data-token": n, class: "figure-dot" },
      svg("path", { d: `M${from}L${to}`, stroke: "var(--soft)", "stroke-width": 0.7, opacity: way }),
      svg("circle", { cx: from[0], cy: from[1], r: ring, fill: "var(--paper)", stroke: hue(0), "stroke-width": 1.4 }),
      svg("circle", { cx: to[0], cy: to[1], r: dot, fill: hue(0), opacity: 0.85 }));
    group.addEventListener("pointerenter", () => {
      const told = (points) => `(${points[n].map((value) => number(value, 2)).join(", ")})`;
      note.show(group.getBoundingClientRect(), `${text}: ${told(before)} → ${told(after)}`);
      look(n);
    });
    group.addEventListener("pointerleave", () => {
      note.hide();
      look(null);
    });
    node.append(group);
  });
  if (deep) ["μ", kind === "rms" ? "rms" : "σ"].forEach((sign, axis) => {
    const told = [before, after].map((points) => number(meanOf(points.map((point) => point[axis])), 2)).join(" → ");
    node.append(label(`${sign} ${told}`, SIDE, TOP + HIGH + 36 + 16 * axis, { size: 11.5, fill: "var(--ink)" }));
  });
  return node;
}

export function norms(pairs, kind, room, shared) {
  const fitting = Math.max(1, Math.min(pairs.length, Math.floor(room / 160)));
  const wide = Math.min(260, room / fitting - SIDE - 14);
  const plots = pairs.map(({ name, before, after }) => ({ name, before: pointsOf(before, kind), after: pointsOf(after, kind) }));
  const all = (axis) => plots.flatMap(({ before, after }) => [...before, ...after].map((point) => point[axis]));
  const most = Math.max(...extent([...all(0), 0]).map(Math.abs));
  const ranges = [[-most, most], extent([...all(1), ...(GOALS[kind][1] === null ? [] : [1])])];
  const high = TOP + HIGH + (shared.deep ? 70 : 34);
  const axes = shared.t(kind === "rms" ? "axes.rms" : "axes.layer");
  const node = svg("g", { role: "img", "aria-label": axes });
  plots.forEach((one, n) => {
    const place = `translate(${(n % fitting) * (room / fitting)} ${Math.floor(n / fitting) * high})`;
    node.append(svg("g", { transform: place }, plot(one, kind, wide, ranges, shared)));
  });
  const height = Math.ceil(plots.length / fitting) * high;
  node.append(label(axes, SIDE, height + 4, { size: 11.5 }));
  return { node, height: height + 10 };
}
