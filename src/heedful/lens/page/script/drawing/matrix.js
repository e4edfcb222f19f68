// Numbers in rows and columns, whatever array they stand in.
import { divergingBytes, shadeBytes } from "../color.js";
import { ARROWS, cellUnder, onKeys, set, svg } from "../dom.js";
import { columnNames, fitted, label, widthOf } from "./text.js";

export const grid = (rows, columns, at) => ({ rows, columns, at });

// The last two axes of an array, at given places of the axes before them.
export function plane(array, ...lead) {
  const [rows, columns] = array.shape.slice(-2);
  return grid(rows, columns, (row, column) => array.at(...lead, row, column));
}

export const row = (source, index) => Array.from({ length: source.columns }, (_, column) => source.at(index, column));

// All numbers, row by row.
export function flat({ rows, columns, at }) {
  return Float64Array.from({ length: rows * columns }, (_, n) => at(Math.floor(n / columns), n % columns));
}

// The size that all but one number in a hundred stay within: a giant does not make all others pale.
export function robustMax(source) {
  const real = flat(source).map(Math.abs).filter(Number.isFinite).sort();
  return real[Math.ceil(0.99 * (real.length - 1))] || real.at(-1) || 1;
}

// One pixel a number, as an address an <image> can show; `bytes` gives [red, green, blue], or null for a clear pixel.
export function pixels(source, bytes) {
  const canvas = Object.assign(document.createElement("canvas"), { width: source.columns, height: source.rows });
  const pen = canvas.getContext("2d"), picture = pen.createImageData(source.columns, source.rows);
  for (let r = 0, place = 0; r < source.rows; r += 1) {
    for (let c = 0; c < source.columns; c += 1, place += 4) {
      const paint = bytes(source.at(r, c));
      if (paint !== null) picture.data.set([...paint, 255], place);
    }
  }
  pen.putImageData(picture, 0, 0);
  return canvas.toDataURL();
}

// A picture of pixels, as sharp as they are and as large as its attributes say.
export function picture(href, attributes) {
  return svg("image", { href, preserveAspectRatio: "none", "image-rendering": "pixelated", ...attributes });
}

// A map of cells under the pointer and the arrow keys: which cell is looked at, which is chosen.
// `look(row, column, box)` is told the cell, `leave()` that there is none, `choose(row, column)` of a click or
// Enter; the keys begin at `start`.
export function cells({ rows, columns, width, height, name, look, leave, choose, key, start = [0, 0] }) {
  const [high, wide] = [height / rows, width / columns];
  const cursor = svg("rect", {
    width: wide, height: high, fill: "none", stroke: "var(--accent-2)", "stroke-width": 2,
    style: { "pointer-events": "none", display: "none" },
  });
  const ground = svg("rect", { width, height, fill: "transparent" });
  let at = start;

  function show(row, column) {
    at = [row, column];
    set(cursor, { x: column * wide, y: row * high, style: { display: "" } });
    look?.(row, column, cursor.getBoundingClientRect());
  }
  function hide() {
    cursor.style.display = "none";
    leave?.();
  }
  const under = (event) => cellUnder(event, ground, rows, columns);
  const node = svg("g", {
    tabindex: 0, role: choose ? "button" : "img", "aria-label": name, "data-keep": key, style: choose && { cursor: "pointer" },
    onpointermove: (event) => show(...under(event)), onpointerleave: hide, onclick: (event) => choose?.(...under(event)),
    onfocus: () => node.matches(":focus-visible") && show(...at), onblur: hide,
  }, ground, cursor);
  onKeys(node, (key) => {
    const move = ARROWS[key];
    if (move) show((at[0] + move[0] + rows) % rows, (at[1] + move[1] + columns) % columns);
    else if (choose && (key === "Enter" || key === " ")) choose(...at);
    else return false;
  });
  return node;
}

// A matrix as a heat map, and equations of such maps.

const SIGN = 30, TITLE = 20;
const NAME = 11; // size of a token's name
const LEAST = 4; // a smaller cell has none

// Colors for numbers of both signs, and for shares.
export function signed(source) {
  const most = robustMax(source);
  return (value) => (Number.isFinite(value) ? divergingBytes(value / most) : null);
}
export function shares(source) {
  const most = robustMax(source);
  return (value) => shadeBytes(value / most);
}

function hatch(width, height) {
  let d = "";
  for (let start = 5 - height; start < width; start += 5) {
    const [from, to] = [Math.max(0, start), Math.min(width, start + height)];
    d += `M${from} ${from - start}L${to} ${to - start}`;
  }
  return svg("path", { d, stroke: "var(--line)", "stroke-width": 1, fill: "none" });
}

function partings(count, unit, along) {
  if (unit < 6) return [];
  const way = Array.from({ length: count - 1 }, (_, n) => along((n + 1) * unit)).join("");
  return [svg("path", { d: way, stroke: "var(--paper)", "stroke-width": 1, fill: "none", "pointer-events": "none" })];
}

const longest = (texts) => Math.max(...texts.map((text) => widthOf(text, NAME)));

// Names stand at every row or column, or at as many as are read apart.
function rowNames(rows, unit) {
  const every = Math.ceil((NAME - 1) / unit);
  const size = Math.min(NAME, every * unit - 1);
  const foot = (text) => (text === "␣" ? 1 : 4); // a space hangs below its line
  return rows.map((text, n) => n % every === 0
    && label(fitted(text, 64, NAME), -7, (n + 0.5) * unit + foot(text), { size, anchor: "end" }));
}

// { name, source, unit: [x, y], color, rows, columns: labels, span: [from, to] columns framed, mark: [row, column] };
// `watch`: what `cells` may be told. The node's origin is the map's corner; `left` and `top` is what stands before it.
export function matrix({ name, source, unit, color, rows, columns, span, mark, watch }) {
  const [width, height] = [source.columns * unit[0], source.rows * unit[1]];
  const side = rows && unit[1] >= LEAST ? Math.min(72, longest(rows) + 8) : 0;
  const over = columns && unit[0] >= LEAST ? columnNames(columns.map((text) => ({ text })), unit[0], NAME) : null;
  const above = over ? over.height : 0;
  const node = svg("g", {}, hatch(width, height));
  node.append(picture(pixels(source, color), { width, height }));
  node.append(...partings(source.rows, unit[1], (y) => `M0 ${y}H${width}`));
  if (columns) node.append(...partings(source.columns, unit[0], (x) => `M${x} 0V${height}`));
  if (side) node.append(svg("g", {}, rowNames(rows, unit[1])));
  if (over) node.append(svg("g", { fill: "var(--soft)" },
    columns.map((_, n) => n % over.every === 0 && over.write(n, (n + 0.5) * unit[0], 0))));
  const frame = (box) => svg("rect", { fill: "none", stroke: "var(--accent-2)", "stroke-width": 1.5, "pointer-events": "none", ...box });
  if (span) node.append(frame({ x: span[0] * unit[0], y: -2, width: (span[1] - span[0]) * unit[0], height: height + 4 }));
  if (mark) node.append(frame({ x: mark[1] * unit[0], y: mark[0] * unit[1], width: unit[0], height: unit[1] }));
  const shape = `${source.rows}×${source.columns}`;
  const head = svg("text", { x: 0, y: -8 - above, "font-size": 13, fill: "var(--ink)" },
    svg("tspan", { "font-weight": 650 }, name), svg("tspan", { fill: "var(--soft)", dx: 6, "font-size": 12 }, shape));
  const size = { rows: source.rows, columns: source.columns, width, height };
  node.append(head, cells({ ...size, name: `${name} ${shape}`, key: name, start: mark, ...watch }));
  const titled = widthOf(name, 13, 650) + 6 + widthOf(shape, 12);
  return { node, left: side, top: TITLE + above, width: Math.max(width + (over?.overhang ?? 0), titled), height };
}

// Blocks in a row with signs between them ([sign, block], …; the first sign may be null), wrapped where there is no
// room; all maps of a line share their middle.
export function equation(parts, room) {
  const lines = [[]];
  let x = 0;
  for (const [sign, block] of parts) {
    const need = (sign ? Math.max(SIGN, widthOf(sign, 15) + 16) : 0) + block.left + block.width;
    if (x + need > room && x > 0) {
      lines.push([]);
      x = 0;
    }
    lines.at(-1).push([sign, block, x + need - block.width]);
    x += need + 10;
  }
  const node = svg("g");
  let y = 0;
  for (const line of lines) {
    const above = Math.max(...line.map(([, block]) => block.top + block.height / 2));
    const below = Math.max(...line.map(([, block]) => block.height / 2));
    for (const [sign, block, at] of line) {
      if (sign) node.append(label(sign, at - block.left - 10, y + above + 5, { size: 15, anchor: "end" }));
      node.append(svg("g", { transform: `translate(${at} ${y + above - block.height / 2})` }, block.node));
    }
    y += above + below + 18;
  }
  return { node, height: y - 18 };
}
