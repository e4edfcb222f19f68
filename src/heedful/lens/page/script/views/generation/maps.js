// The weights between words as a map: source words across, target words down, a ring on each link.
import { shade } from "../../colour.js";
import { svg } from "../../dom.js";
import { columnNames, rowName, short, textWidth } from "../attention/labels.js";
import { largest } from "../attention/measure.js";
import { plane, pixels } from "../figures/grid.js";
import { label } from "../figures/text.js";

const [SMALLEST, LARGEST] = [15, 34]; // of a cell with names and a ring
const MOST = 60; // words: more have no names
const HIGH = 460;

// How large a cell is in this room, and what its names take: if need be wider than the room, to be read.
export function cellSize({ source, target, width }) {
  const words = [source, target].map((texts) => texts.map((text) => ({ text })));
  const side = Math.max(...words[1].map((word) => textWidth(short(word), 12))) + 14;
  const within = (overhang) => (width - side - overhang - 4) / source.length;
  const free = within(columnNames(words[0], Math.max(SMALLEST, within(0)), 12).overhang);
  return { words, side, cell: Math.max(SMALLEST, Math.min(LARGEST, free, Math.max(18, HIGH / target.length))) };
}

export function mapOf({ source, target, links, weights, width, watch, t }) {
  const named = Math.max(source.length, target.length) <= MOST;
  const sizes = cellSize({ source, target, width });
  const cell = named ? sizes.cell : Math.min((width - 18) / source.length, 1100 / target.length);
  const above = named && columnNames(sizes.words[0], cell, 12);
  const [side, slant] = named ? [sizes.side, above.height] : [18, 22];
  const [wide, high] = [cell * source.length, cell * target.length];
  const node = svg("g");
  const inner = svg("g", { transform: `translate(${side} ${slant})` });
  const area = { width: wide, height: high };
  const most = largest(weights.data);
  const image = { href: pixels(plane(weights), (share) => shade(share / most)), preserveAspectRatio: "none", "image-rendering": "pixelated" };
  inner.append(svg("image", { ...image, ...area }), svg("rect", { ...area, fill: "none", stroke: "var(--line)" }));
  if (named) {
    const names = svg("g", { fill: "var(--ink)" });
    sizes.words[1].forEach((word, row) => names.append(rowName(short(word), -8, (row + 0.5) * cell, 12)));
    source.forEach((_, column) => column % above.every || names.append(above.write(column, (column + 0.5) * cell, 0)));
    inner.append(names);
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
  return { node, light, width: side + wide + (above ? above.overhang : 0), height: slant + high + 4 };
}
