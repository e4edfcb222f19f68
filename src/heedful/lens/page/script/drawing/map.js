// One or more maps of the same tokens, with one shared cell under the pointer or the keyboard.
import { shrunk } from "../attention/measure.js";
import { diverging, divergingBytes, ink, shade, shadeBytes } from "../color.js";
import { ARROWS, clear, el, onKeys, onWidth, set, svg } from "../dom.js";
import { grid, picture as image, pixels } from "./matrix.js";
import { columnNames, label, resize, rowName, short, widthOf } from "./text.js";

/** A place for maps as wide as `root`: `draw(spec)` shows them, `onCell` and `onPick` hear of the reader's cell. */
export function createMap(root, { onCell, onPick }) {
  const drawing = svg("svg", { role: "img", class: "map" });
  const node = el("div", { class: "scroll map-frame", tabindex: "0", role: "group" }, drawing);
  let spec = null, sizes = null, cell = null, marks = [], width = 0;

  const show = (next) => {
    if (next?.query === cell?.query && next?.key === cell?.key) return;
    cell = next;
    for (const mark of marks) mark(cell);
    onCell(cell);
  };
  const under = (event) => {
    const box = drawing.getBoundingClientRect();
    return sizes && cellAt(sizes, event.clientX - box.left, event.clientY - box.top);
  };
  drawing.addEventListener("pointermove", (event) => show(under(event)));
  drawing.addEventListener("pointerleave", () => show(node.matches(":focus-visible") ? cell : null));
  drawing.addEventListener("click", (event) => {
    show(under(event));
    if (cell) onPick(cell);
  });
  node.addEventListener("blur", () => show(null));
  onKeys(node, (key) => {
    if (spec && ARROWS[key]) show(moved(cell, ARROWS[key], spec));
    else if (spec && key === "Escape") show(null);
    else if ((key === "Enter" || key === " ") && cell) onPick(cell);
    else return false;
  });
  const redraw = () => {
    if (!spec || !width) return;
    sizes = frame(spec, width);
    marks = paint(drawing, spec, sizes);
    for (const mark of marks) mark(cell);
  };
  onWidth(root, (wide) => ((width = wide), redraw()));
  return {
    node,
    draw(next) {
      spec = next;
      if (cell && (cell.query >= spec.rows.length || cell.key >= spec.columns.length)) cell = null;
      node.setAttribute("aria-label", spec.hint);
      drawing.setAttribute("aria-label", spec.label);
      redraw();
      onCell(cell);
    },
  };
}

function moved(cell, [down, right], { rows, columns }) {
  if (!cell) return { query: 0, key: 0 };
  const within = (value, count) => Math.min(count - 1, Math.max(0, value));
  return { query: within(cell.query + down, rows.length), key: within(cell.key + right, columns.length) };
}

// Where everything of a map stands: cells, names, panels side by side or, on a phone, one below the other.

const LARGEST = { alone: 64, abreast: 46 }, SMALLEST = { alone: 12, abreast: 4, picture: 0.3 };
const GAP = 30, BARS = 96, NARROW = 620, ALONE = 640;
const LOW = 280, ROW = 14; // a long row of few queries is no mere stripe

/** Sizes and places of the panels within `room` pixels; `bars` stand to the right of the last. */
export function frame({ rows, columns, panels, bars }, room) {
  const alone = panels.length === 1, abreast = room < NARROW ? 1 : panels.length;
  const width = alone ? Math.min(room, ALONE) : room; // one map leaves room for its words beside it
  const names = rows.map(short);
  const fitted = (size, overhang) => {
    const left = Math.min(150, Math.max(...names.map((name) => widthOf(name, size)))) + 10;
    const free = width - left - (abreast - 1) * GAP - (bars ? BARS : overhang) - 4;
    const smallest = columns.length > 60 ? SMALLEST.picture : abreast > 1 ? SMALLEST.abreast : SMALLEST.alone;
    return { left, cell: Math.min(alone ? LARGEST.alone : LARGEST.abreast, Math.max(smallest, free / abreast / columns.length)) };
  };
  const size = fitted(12, 0).cell < 17 ? 10 : 12;
  const overhang = columnNames(columns, fitted(size, 0).cell, size).overhang;
  const { left, cell } = fitted(size, overhang), above = columnNames(columns, cell, size);
  const top = (panels[0].title ? 22 : 0) + above.height;
  const high = columns.length > 60 ? Math.max(cell, Math.min(ROW, LOW / rows.length)) : cell;
  const across = columns.length * cell, down = rows.length * high;
  const places = panels.map((_, place) => ({
    x: left + (place % abreast) * (across + GAP),
    y: top + Math.floor(place / abreast) * (top + down + GAP / 2),
    named: place % abreast === 0,
  }));
  const last = places.at(-1);
  return {
    cell, high, size, top, across, down, places, above, names, everyRow: Math.ceil((size + 1) / high), barWidth: BARS - 44,
    width: last.x + across + (bars ? BARS : Math.max(2, above.overhang)), height: last.y + down + 4,
  };
}

/** The cell under a point of the drawing, or null. */
function cellAt({ places, cell, high, across, down }, x, y) {
  const place = places.find((item) => x >= item.x && y >= item.y && x < item.x + across && y < item.y + down);
  return place ? { query: Math.floor((y - place.y) / high), key: Math.floor((x - place.x) / cell) } : null;
}

// Draws the panels of a map: names, cells, bars, and the frames around the reader's cell.

const VECTOR = 60; // up to 60 × 60 every cell is its own shape, beyond it the map is a picture

/** Whether a map has too many tokens to draw it cell by cell. */
export const isLarge = ({ rows, columns }) => Math.max(rows.length, columns.length) > VECTOR;

/** Draws all panels anew; gives for each the function that moves its frames to a cell. */
export function paint(drawing, spec, sizes) {
  resize(clear(drawing), sizes.width, sizes.height);
  return spec.panels.map((panel, number) => {
    const place = sizes.places[number], head = place.y - sizes.top + 13;
    if (panel.title) drawing.append(label(panel.title, place.x, head, { size: 13, weight: 600, fill: "var(--ink)" }));
    drawing.append(names(spec, sizes, place), (isLarge(spec) ? picture : cells)(spec, sizes, place, panel));
    if (spec.bars && panel === spec.panels.at(-1)) drawing.append(bars(spec.bars, sizes, place, head));
    return crosshair(drawing, sizes, place);
  });
}

function names({ rows, columns }, { cell, high, size, above, everyRow, names: rowNames }, { x, y, named }) {
  const group = svg("g", {});
  for (let column = 0; column < columns.length; column += above.every) {
    group.append(above.write(column, x + (column + 0.5) * cell, y));
  }
  for (let row = 0; named && row < rows.length; row += everyRow) {
    group.append(rowName(rowNames[row], x - 8, y + (row + 0.5) * high, size));
  }
  return group;
}

function picture({ hidden }, { cell, across, down }, { x, y }, { map, scale, most }) {
  const seen = cell < 1 ? shrunk(map, Math.floor(across)) : map; // else the screen would drop cells by chance
  return image(raster(seen, scale, most, hidden), { x, y, width: across, height: down });
}

function cells({ rows, columns, hidden, digits }, { cell }, { x, y }, { map, scale, most }) {
  const group = svg("g"), side = cell - (cell >= 10 ? 1 : 0), rx = cell >= 20 ? 3 : 0;
  for (let row = 0; row < rows.length; row++) {
    for (let column = 0; column < columns.length; column++) {
      if (hidden(row, column)) continue;
      const value = map.data[row * columns.length + column], fill = scale.color(most ? value / most : 0);
      const left = x + column * cell, top = y + row * cell;
      group.append(svg("rect", { x: left, y: top, width: side, height: side, rx, fill }));
      if (digits && cell >= 34 && value >= 0.005) {
        group.append(label(value.toFixed(2), left + side / 2, top + side / 2 + 4, { size: 11, anchor: "middle", fill: ink(fill) }));
      }
    }
  }
  return group;
}

function bars({ values, title, color }, { high, across, barWidth, everyRow }, { x, y }, head) {
  const start = x + across + 12, height = high > 4 ? high - 2 : high, group = svg("g", {});
  group.append(label(title, start, head, { size: 11, fill: "var(--ink)" }));
  values.forEach((value, row) => {
    const width = Math.max(1, value * barWidth), middle = y + (row + 0.5) * high;
    group.append(svg("rect", { x: start, y: middle - high / 2, width, height, fill: color }));
    if (everyRow === 1) group.append(label(value.toFixed(2), start + width + 4, middle + 3, { size: 10, fill: "var(--ink)" }));
  });
  return group;
}

function crosshair(drawing, { cell, high, across, down }, { x, y }) {
  const frames = ["row", "column", "one"].map((part) => svg("rect", { class: `cross ${part}`, fill: "none", rx: Math.min(3, cell / 4) }));
  const group = svg("g", { display: "none" }, frames);
  drawing.append(group);
  return (at) => {
    group.setAttribute("display", at ? "inline" : "none");
    if (!at) return;
    const left = x + at.key * cell - 0.5, top = y + at.query * high - 0.5;
    set(frames[0], { x: x - 0.5, y: top, width: across, height: high });
    set(frames[1], { x: left, y: y - 0.5, width: cell, height: down });
    set(frames[2], { x: left, y: top, width: cell, height: high });
  };
}

/** A map as a picture of one pixel a cell; hidden cells stay clear. */
export function raster(map, { bytes }, most, hidden) {
  const [rows, columns] = map.shape;
  const share = (row, column) => (most ? map.data[row * columns + column] / most : 0);
  const source = grid(rows, columns, (row, column) => (hidden(row, column) ? null : share(row, column)));
  return pixels(source, (value) => (value === null ? null : bytes(value)));
}

// The two color scales of the maps, and the strip that explains one.

export const SCALES = {
  weights: { color: shade, bytes: shadeBytes, low: 0 },
  difference: { color: diverging, bytes: divergingBytes, low: -1 },
};

/** A strip of a scale's colors; `draw(from, to)` puts a number at each end. */
export function createLegend({ color, low }) {
  const node = el("p", { class: "legend" });
  return {
    node,
    draw(from, to) {
      const stops = Array.from({ length: 17 }, (_, step) => color(low + (step / 16) * (1 - low)));
      const strip = el("span", { class: "strip", style: { background: `linear-gradient(90deg,${stops.join(",")})` } });
      clear(node).append(el("span", {}, from), strip, el("span", {}, to));
    },
  };
}

// Small maps in rows that wrap: one drawing, every map a button, one stop for the Tab key.

const THUMB = { phone: 54, desk: 72, largest: 116 }, NARROW_GALLERY = 560;
const SIDE_TITLE = 64, LINE = 14, TEXT = 10.5, CAPTION = 16;

/** A gallery of cells `{caption, lines, joint, label}`; `isChosen(cell)` gives a class, `onChoose(cell)` hears of a click. */
export function createGallery({ onChoose, isChosen }) {
  const drawing = svg("svg", { role: "group", class: "gallery" });
  const node = el("div", { class: "scroll" }, drawing);
  let rows = [], drawnCells = new Map(), across = 1;
  const pictures = new Map();

  const cellOf = (target) => [...drawnCells.keys()].find((cell) => drawnCells.get(cell).node.contains(target));
  drawing.addEventListener("click", (event) => cellOf(event.target) && onChoose(cellOf(event.target)));
  onKeys(drawing, (key, { target }) => {
    const cell = cellOf(target), order = [...drawnCells.keys()];
    const [down, right] = ARROWS[key] ?? [];
    if (cell && ARROWS[key]) drawnCells.get(order[order.indexOf(cell) + down * across + right])?.node.focus();
    else if (cell && (key === "Enter" || key === " ")) onChoose(cell);
    else return false;
  });

  const build = () => {
    const seenWidth = node.clientWidth;
    if (!seenWidth || !rows.length) return;
    const narrow = seenWidth < NARROW_GALLERY, left = narrow || !rows[0].title ? 0 : SIDE_TITLE;
    const most = Math.max(...rows.map((row) => row.cells.length));
    const above = left === 0 && rows[0].title ? 20 : 0;
    const words = Math.max(...rows.flatMap((row) => row.cells.flatMap((cell) => cell.lines.map((line) => widthOf(line, TEXT)))));
    const smallest = Math.max(words + 8, narrow ? THUMB.phone : THUMB.desk);
    across = Math.max(1, Math.min(most, Math.floor((seenWidth - left) / smallest)));
    if (most > across) across = Math.ceil(most / Math.ceil(most / across));
    const wide = Math.min(THUMB.largest, (seenWidth - left) / across), side = wide - 12;
    const linesOf = ({ lines: parts, joint }) => (widthOf(parts.join(joint), TEXT) <= side + 6 ? [parts.join(joint)] : parts);
    const lines = Math.max(...rows.flatMap((row) => row.cells.map((cell) => linesOf(cell).length)));
    const repeated = across < most || !rows[0].title; // a column of one head needs its name only once
    const under = lines * LINE + 14;
    let top = 2;
    drawnCells = new Map();
    clear(drawing);
    for (const row of rows) {
      const caption = repeated || row === rows[0] ? CAPTION : 0, high = caption + side + under;
      const titleAt = top + (left ? caption + side / 2 + 6 : 13);
      if (row.title) drawing.append(label(row.title, 0, titleAt, { size: 13, weight: 600, fill: "var(--ink)" }));
      row.cells.forEach((cell, place) => {
        const x = left + (place % across) * wide, y = top + above + Math.floor(place / across) * high + caption;
        const worded = { ...cell, caption: caption && cell.caption, lines: linesOf(cell), href: pictures.get(cell.weights) };
        drawnCells.set(cell, drawn(worded, x, y, side));
        drawing.append(drawnCells.get(cell).node);
      });
      top += above + Math.ceil(row.cells.length / across) * high;
    }
    resize(drawing, left + across * wide, top);
    mark();
  };
  const mark = () => {
    let stop = null;
    for (const [cell, { node: button, frame }] of drawnCells) {
      const chosen = isChosen(cell);
      frame.setAttribute("class", `frame ${chosen}`);
      button.setAttribute("aria-pressed", String(chosen === "chosen"));
      button.setAttribute("tabindex", "-1");
      if (chosen && !stop) stop = button;
    }
    (stop ?? drawnCells.values().next().value?.node)?.setAttribute("tabindex", "0");
  };
  onWidth(node, build);
  return {
    node, mark,
    draw(next, name) {
      rows = next;
      drawing.setAttribute("aria-label", name);
      build();
    },
    picture(cell, href) {
      pictures.set(cell.weights, href);
      for (const [item, { image }] of drawnCells) if (item.weights === cell.weights) image.setAttribute("href", href);
    },
  };
}

function drawn(cell, x, y, side) {
  const frame = svg("rect", { x: x + 1, y: y + 1, width: side + 4, height: side + 4, rx: 5, class: "frame" });
  const thumb = image(cell.href, { x: x + 3, y: y + 3, width: side, height: side });
  const texts = cell.lines.map((line, place) => label(line, x + 3, y + 4 + side + LINE * (place + 1), { size: TEXT }));
  const caption = cell.caption ? label(cell.caption, x + 3, y - 5, { size: TEXT }) : null;
  return { frame, image: thumb, node: svg("g", { role: "button", class: "thumb", "aria-label": cell.label }, frame, thumb, caption, texts) };
}
