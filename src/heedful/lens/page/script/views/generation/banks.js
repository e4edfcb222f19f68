// Two banks of words with a river between them: source lines above, target lines below.
import { flow } from "./flow.js";

export const SIZES = {
  large: { font: 16, foot: 10, box: 31, line: 54, padding: 11, gap: 8, airy: 30, river: 130, first: 18 },
  small: { font: 11, foot: 6, box: 19, line: 24, padding: 5, gap: 3, airy: 3, river: 80, first: 4 },
};
const AROUND = 2; // target lines shown before and after the current one, where there are more than twice as many

const laid = new WeakMap(); // texts → their last layout: steps change often, widths seldom

function lines(texts, width, size) {
  const known = laid.get(texts);
  if (known?.width === width && known.size === size) return known.layout;
  const layout = flow(texts, width, { size: size.font, padding: size.padding, gap: size.gap, airy: size.airy, centred: true });
  laid.set(texts, { width, size, layout });
  return layout;
}

// Places { x, left, width, top, bottom } by word; a target word whose line is not shown has none.
export function banks({ source, target, now, width, size }) {
  const above = lines(source, width, size);
  const below = lines(target, width, size);
  const middle = below.boxes[now].line;
  const far = below.lines > 2 * AROUND + 1;
  const from = far ? Math.max(0, Math.min(middle - AROUND, below.lines - 2 * AROUND - 1)) : 0;
  const shown = far ? 2 * AROUND + 1 : below.lines;
  const shore = size.first + above.lines * size.line - (size.line - size.box) + size.river;
  const pitch = size.box + size.gap;
  const place = (box, top) => ({ x: box.x + box.width / 2, left: box.x, width: box.width, top, bottom: top + size.box });
  return {
    source: above.boxes.map((box) => place(box, size.first + box.line * size.line)),
    target: below.boxes.map((box) => {
      const line = box.line - from;
      return line < 0 || line >= shown ? null : place(box, shore + line * pitch);
    }),
    height: shore + shown * pitch + 2,
  };
}
