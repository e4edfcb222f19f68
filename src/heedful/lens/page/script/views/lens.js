// What the vocabulary would say after each layer: for each position the likeliest token, and five of them at a cell.
import { ink, shade } from "../color.js";
import { el, svg } from "../dom.js";
import { cells } from "../drawing/matrix.js";
import { redrawn } from "../drawing/stage.js";
import { fitted, label, number, percent, resize, visible, widthOf } from "../drawing/text.js";

export const name = "lens";
export const fits = (doc) => Boolean(doc.lens);

const CELL = { narrowest: 64, widest: 132, high: 36 };
const HEAD = 22, SIDE = 104;
const MOST = 4000; // cells that have a text; those of more are colors

export async function mount(root, context) {
  const { doc, arrays, state, t } = context;
  const [top, shares] = await Promise.all([arrays.get(doc.lens.top), arrays.get(doc.lens.shares)]);
  const [columns, rows, count] = top.shape;
  const names = (doc.written ?? doc.sequences.source.map(({ text }) => text)).map(visible);
  const guess = (column, row, place) => visible(doc.lens.tokens[top.at(column, row, place)]);
  const layer = (column) => (column ? t("layerName", { layer: column - 1 }) : t("entry"));

  redrawn(root, state, [], (width, note) => {
    const share = (value) => (state.get("level") === "deep" ? number(value) : percent(value));
    const left = Math.min(SIDE, 12 + Math.max(...names.map((text) => widthOf(text, 12))));
    const wide = Math.min(CELL.widest, Math.max(CELL.narrowest, Math.floor((width - left - 2) / columns)));
    const size = { width: columns * wide, height: rows * CELL.high };
    const list = (row, column) => [t("at", { layer: layer(column), token: names[row] }),
      ...Array.from({ length: count }, (_, place) => `${guess(column, row, place)} ${share(shares.at(column, row, place))}`)].join("\n");

    function cell(row, column) {
      const value = shares.at(column, row, 0), fill = shade(value), text = guess(column, row, 0);
      const look = { anchor: "middle", fill: ink(fill), "pointer-events": "none" };
      const middle = (column + 0.5) * wide - 0.5, y = row * CELL.high;
      return [
        svg("rect", { x: column * wide, y, width: wide - 1, height: CELL.high - 1, rx: 3, fill }),
        drawn && label(fitted(text, wide - 8, 12), middle, y + 16, { ...look, size: 12, weight: doc.written && text === names[row] ? 650 : 400 }),
        drawn && label(share(value), middle, y + 29, { ...look, size: 10 }),
      ];
    }
    const drawn = rows * columns <= MOST;
    const all = Array.from({ length: rows }, (_, row) => Array.from({ length: columns }, (_, column) => cell(row, column)));
    // The keyboard scrolls the box to its cell.
    function look(row, column, at) {
      const frame = box.getBoundingClientRect();
      const outside = at.left < frame.left || at.right > frame.right || at.top < frame.top || at.bottom > frame.bottom;
      if (outside && box.querySelector(":focus-visible")) box.scrollTo(column * wide, row * CELL.high);
      note.show(at, list(row, column));
    }
    const choose = doc.generation ? (row) => state.set({ step: row }) : undefined;
    const map = svg("g", { transform: `translate(${left} ${HEAD})` }, all,
      cells({ ...size, rows, columns, name: t("label", { rows, columns }), look, leave: note.hide, choose, key: "lens" }));
    const heads = Array.from({ length: columns }, (_, column) => label(layer(column), left + (column + 0.5) * wide, 13, { anchor: "middle" }));
    const sides = names.map((text, row) => label(fitted(text, left - 12, 12), left - 8, HEAD + (row + 0.5) * CELL.high + 4, { anchor: "end", fill: "var(--ink)" }));
    const drawing = resize(svg("svg", { role: "group", "aria-label": t("title") }, heads, sides, map), left + size.width + 1, HEAD + size.height + 1);
    const box = el("div", { class: "scroll lens" }, drawing);
    return [box, el("p", { class: "readout aside" }, t("hint"))];
  });
}
