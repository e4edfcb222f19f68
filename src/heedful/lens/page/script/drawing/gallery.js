// Small maps in rows that wrap: one drawing, every map a button, one stop for the Tab key.
import { ARROWS, clear, el, onKeys, onWidth, svg } from "../dom.js";
import { picture } from "./matrix.js";
import { label, resize, widthOf } from "./text.js";

const SMALLEST = { phone: 54, desk: 72 }, LARGEST = 116, NARROW = 560, SIDE_TITLE = 64, LINE = 14, TEXT = 10.5, CAPTION = 16;

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
    const narrow = seenWidth < NARROW, left = narrow || !rows[0].title ? 0 : SIDE_TITLE;
    const most = Math.max(...rows.map((row) => row.cells.length));
    const above = left === 0 && rows[0].title ? 20 : 0;
    const words = Math.max(...rows.flatMap((row) => row.cells.flatMap((cell) => cell.lines.map((line) => widthOf(line, TEXT)))));
    const smallest = Math.max(words + 8, narrow ? SMALLEST.phone : SMALLEST.desk);
    across = Math.max(1, Math.min(most, Math.floor((seenWidth - left) / smallest)));
    if (most > across) across = Math.ceil(most / Math.ceil(most / across));
    const wide = Math.min(LARGEST, (seenWidth - left) / across), side = wide - 12;
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
  const image = picture(cell.href, { x: x + 3, y: y + 3, width: side, height: side });
  const texts = cell.lines.map((line, place) => label(line, x + 3, y + 4 + side + LINE * (place + 1), { size: TEXT }));
  const caption = cell.caption ? label(cell.caption, x + 3, y - 5, { size: TEXT }) : null;
  return { frame, image, node: svg("g", { role: "button", class: "thumb", "aria-label": cell.label }, frame, image, caption, texts) };
}
