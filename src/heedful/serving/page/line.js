// A line and how it goes on.

import { el, onWidth, svg } from "./look/dom.js";

const HEIGHT = 260;
const EDGE = { left: 8, right: 12, top: 16, bottom: 26 };

// About four round numbers between the ends.
function ticks(low, high) {
  const rough = (high - low) / 4 || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((one) => one * power >= rough);
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, place) => (first + place) * step);
}

const path = (points) => points.reduce((text, point) =>
  point ? `${text}${text && !text.endsWith(" ") ? "L" : "M"}${point[0].toFixed(1)} ${point[1].toFixed(1)}` : `${text} `, "");

// Only the newest steps that the model reads are drawn, beside those it foresees.
export function lineChart({ speech }, root, read, foreseen) {
  const known = read.filter((value) => value !== null);
  const all = [...known, ...foreseen];
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  const steps = read.length + foreseen.length;
  const number = (value) => speech.number(value, { maximumSignificantDigits: 6 });

  function draw(width) {
    const marks = ticks(low - room, high + room);
    const left = EDGE.left + 8 * Math.max(...marks.map((mark) => number(mark).length));
    const x = (step) => left + (step / Math.max(1, steps - 1)) * (width - left - EDGE.right);
    const y = (value) => EDGE.top + ((high + room - value) / (high - low + 2 * room)) * (HEIGHT - EDGE.top - EDGE.bottom);
    const past = read.map((value, step) => (value === null ? null : [x(step), y(value)]));
    const next = foreseen.map((value, step) => [x(read.length + step), y(value)]);
    const joint = past.at(-1) ? [past.at(-1), ...next] : next;
    const border = x(read.length - 0.5);
    root.replaceChildren(svg("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": speech.t("chart") },
      svg("rect", { class: "future", x: border, y: EDGE.top, width: width - EDGE.right - border + 6, height: HEIGHT - EDGE.top - EDGE.bottom, rx: 4 }),
      marks.map((mark) => [
        svg("line", { class: "rule", x1: left, x2: width - EDGE.right, y1: y(mark), y2: y(mark) }),
        svg("text", { x: left - 8, y: y(mark) + 4, "text-anchor": "end" }, number(mark))]),
      svg("path", { class: "past", d: path(past) }),
      svg("path", { class: "next", d: path(joint) }),
      next.map(([cx, cy], step) => svg("circle", { class: "next", cx, cy, r: foreseen.length > 24 ? 1.5 : 3 },
        svg("title", {}, `+${step + 1}: ${number(foreseen[step])}`))),
      svg("text", { x: left, y: HEIGHT - 6 }, speech.t("stepsRead", { n: read.length })),
      svg("text", { class: "later", x: width - EDGE.right, y: HEIGHT - 6, "text-anchor": "end" }, speech.t("stepsForeseen", { n: foreseen.length }))));
  }

  const frame = el("div", { class: "chart" });
  root.replaceChildren(frame);
  root = frame;
  onWidth(frame, draw);
}
