// Words laid out in lines, as on paper: an SVG does not wrap text by itself.
import { widthOf } from "../figures/text.js";

// Boxes { x, width, line } for the texts within a width; `centred` moves each line to the middle, and a single line
// takes up to `airy` between its words.
export function flow(texts, width, { size, padding = 6, gap = 4, airy = gap, centred = false }) {
  const boxes = [];
  let x = 0;
  let line = 0;
  for (const text of texts) {
    const wide = Math.min(width, Math.max(widthOf(text, size) + 2 * padding, 18));
    if (x > 0 && x + wide > width) {
      line += 1;
      x = 0;
    }
    boxes.push({ x, width: wide, line });
    x += wide + gap;
  }
  if (line === 0) loosen(boxes, Math.min(airy - gap, (width - x + gap) / Math.max(1, texts.length - 1)));
  if (centred) centre(boxes, width);
  return { boxes, lines: texts.length ? line + 1 : 0 };
}

function loosen(boxes, more) {
  boxes.forEach((box, place) => (box.x += place * more));
}

function centre(boxes, width) {
  const ends = new Map();
  for (const box of boxes) ends.set(box.line, box.x + box.width);
  for (const box of boxes) box.x += (width - ends.get(box.line)) / 2;
}

// Gives a drawing its size.
export function sized(picture, width, height) {
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  picture.setAttribute("width", width);
  picture.setAttribute("height", height);
}

// Calls draw with the width of a node, now and whenever it changes.
export function onWidth(node, draw) {
  let known = 0;
  const look = () => {
    const width = Math.floor(node.clientWidth);
    if (width > 0 && width !== known) draw((known = width));
  };
  new ResizeObserver(look).observe(node);
  look();
}
