// Axes and lines: from numbers to places on paper.
import { svg } from "../dom.js";
import { label } from "./text.js";

export function scale([low, high], [from, to]) {
  const span = high - low || 1;
  return (value) => from + ((value - low) / span) * (to - from);
}

// From the least to the most of the numbers, and a little more on both sides.
export function extent(values, margin = 0.06) {
  const real = values.filter(Number.isFinite);
  const [low, high] = [Math.min(...real), Math.max(...real)];
  const more = (high - low || Math.abs(high) || 1) * margin;
  return [low - more, high + more];
}

// About `count` round numbers between the two ends.
export function ticks([low, high], count = 4) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const unit = power * [1, 2, 5, 10].find((factor) => factor * power >= 0.7 * rough);
  const first = Math.ceil(low / unit);
  return Array.from({ length: Math.floor(high / unit) - first + 1 }, (_, n) => Number(((first + n) * unit).toPrecision(12)));
}

// A line through [x, y]; where there is no y (null) it is broken.
export function line(points, look) {
  let open = false;
  const way = points.map(([x, y]) => {
    const there = y !== null && Number.isFinite(y);
    const part = there ? `${open ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}` : "";
    open = there;
    return part;
  });
  const round = { "stroke-linejoin": "round", "stroke-linecap": "round" };
  return svg("path", { d: way.join(""), fill: "none", "stroke-width": 1.8, ...round, ...look });
}

const written = (value) => String(value).replace("-", "−");

// Hairlines with their numbers on the left, from x to x + width.
export function rules(values, y, x, width, text = written) {
  return svg("g", {}, values.map((value) => [
    svg("path", { d: `M${x} ${y(value).toFixed(1)}h${width}`, stroke: "var(--line)", "stroke-width": 1 }),
    label(text(value), x - 6, y(value) + 4, { size: 11, anchor: "end" }),
  ]));
}

// Numbers along the foot.
export function feet(values, x, y, text = written) {
  return svg("g", {}, values.map((value) => label(text(value), x(value), y, { size: 11, anchor: "middle" })));
}

export const DASHES = [null, "7 3", "2 3", "9 3 2 3", "1 4", "12 4"]; // for eyes and printers without color
