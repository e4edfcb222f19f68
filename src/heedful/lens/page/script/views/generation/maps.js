// The weights between words as a map: source words across, target words down, a ring on each link.
import { shade } from "../../colour.js";
import { svg } from "../../dom.js";
import { plane, pixels } from "../figures/grid.js";
import { fitted, label, widthOf } from "../figures/text.js";

const LARGEST = 36;
const NAMED = 11; // a smaller cell has no room for names and rings

export function mapOf({ source, target, links, weights, width, watch, t }) {
  const named = width / (source.length + 4) >= NAMED && target.length <= 60;
  const side = named ? Math.min(110, width * 0.26, Math.max(...target.map((text) => widthOf(text, 12)))) + 8 : 18;
  const slant = named ? Math.min(80, 0.72 * Math.max(...source.map((text) => widthOf(text, 12))) + 16) : 22;
  const cell = Math.min(LARGEST, (width - side - (named ? 34 : 0)) / source.length, named ? LARGEST : 1100 / target.length);
  const [wide, high] = [cell * source.length, cell * target.length];
  const node = svg("g");
  const inner = svg("g", { transform: `translate(${side} ${slant})` });
  const area = { width: wide, height: high };
  const image = { href: pixels(plane(weights), shade), preserveAspectRatio: "none", style: "image-rendering:pixelated" };
  inner.append(svg("image", { ...image, ...area }), svg("rect", { ...area, fill: "none", stroke: "var(--line)" }));
  if (named) {
    target.forEach((text, row) => {
      inner.append(label(fitted(text, side - 8, 12), -7, (row + 0.5) * cell + 4, { anchor: "end", fill: "var(--ink)" }));
    });
    source.forEach((text, column) => {
      const x = (column + 0.5) * cell;
      inner.append(label(fitted(text, 94, 12), x, -6, { fill: "var(--ink)", transform: `rotate(-42 ${x} -6)` }));
    });
    for (const [from, to] of links) {
      const ring = { cx: (from + 0.5) * cell, cy: (to + 0.5) * cell, r: cell * 0.2, fill: "none", "stroke-width": 2 };
      inner.append(svg("circle", { ...ring, stroke: "var(--paper)", "stroke-width": 4 }));
      inner.append(svg("circle", { ...ring, stroke: "var(--accent-2)" }));
    }
  } else {
    inner.append(label(`${t("source")} →`, 0, -7));
    inner.append(label(`← ${t("target")}`, -6, 0, { anchor: "end", transform: "rotate(-90 -6 0)" }));
  }
  const edge = { fill: "none", stroke: "var(--accent-2)", "stroke-width": 2, visibility: "hidden" };
  const cursor = svg("rect", { width: Math.max(3, cell), height: Math.max(3, cell), ...edge });
  const ground = svg("rect", { ...area, fill: "transparent" });
  inner.append(cursor, ground);
  node.append(inner);

  const under = (event) => {
    const frame = ground.getBoundingClientRect();
    const place = (way, count) => Math.min(count - 1, Math.max(0, Math.floor(way * count)));
    const [across, down] = [(event.clientX - frame.left) / frame.width, (event.clientY - frame.top) / frame.height];
    return [place(across, source.length), place(down, target.length)];
  };
  ground.addEventListener("pointermove", (event) => watch(under(event)));
  ground.addEventListener("pointerleave", () => watch(null));

  function light(pair) {
    cursor.setAttribute("visibility", pair ? "visible" : "hidden");
    if (!pair) return;
    cursor.setAttribute("x", pair[0] * cell);
    cursor.setAttribute("y", pair[1] * cell);
  }
  return { node, light, height: slant + high + 4 };
}
