// Tokens as chips in lines that wrap like text.
import { svg } from "../../dom.js";
import { short, textWidth } from "./labels.js";

const WITHIN_WORD = 3;

/** Sizes of a chip whose letters are this large. */
export function chipSizes(font) {
  return { font, height: Math.round(font * 2.1), inside: font * 0.65, between: Math.round(font * 0.65) };
}

/** A box for every token from `top` on: pieces of one word stand closer together. */
export function placed(tokens, sizes, { left, width, top, pitch }) {
  const boxes = [];
  let x = left, line = 0;
  tokens.forEach((token, index) => {
    const name = short(token), wide = Math.max(sizes.height * 0.85, textWidth(name, sizes.font) + 2 * sizes.inside);
    const together = index > 0 && token.word !== null && token.word === tokens[index - 1].word;
    const gap = index === 0 ? 0 : together ? WITHIN_WORD : sizes.between;
    if (x > left && x + gap + wide > width) {
      x = left;
      line++;
    } else x += gap;
    boxes.push({ name, x, y: top + line * pitch, width: wide, height: sizes.height, middle: x + wide / 2 });
    x += wide;
  });
  return { boxes, lines: line + 1, bottom: top + line * pitch + sizes.height };
}

/** Sets attributes of a shape; what stays as it is costs nothing. */
function sparing(shape) {
  const before = {};
  return (name, value) => {
    if (before[name] !== value) shape.setAttribute(name, (before[name] = value));
  };
}

/** A chip that can show how much it is looked at: its ground for one direction, a bar for the other. */
export function chip(token, box, { sequence, index, font }) {
  const { x, y, width, height } = box, shape = { x, y, width, height, rx: height / 4 };
  const ground = svg("rect", { ...shape, class: "ground" });
  const tint = svg("rect", { ...shape, "fill-opacity": 0 });
  const bar = svg("rect", { x: x + 5, y: y + height - 6, width: 0, height: 3, rx: 1.5 });
  const text = svg("text", { x: box.middle, y: y + height / 2 + font * 0.3, "font-size": font, "text-anchor": "middle" }, box.name);
  const node = svg("g", {
    role: "button", tabindex: "-1", "aria-label": token.text,
    "data-sequence": sequence, "data-index": index,
  }, token.part && svg("title", {}, token.piece), ground, tint, bar, text);
  const [putTint, putBar, putNode] = [tint, bar, node].map(sparing);
  return {
    node, box,
    /** Shares from 0 to 1; text stays readable on the strongest tint. */
    show({ out, into, colours, active, pinned }) {
      putTint("fill", colours[0]);
      putTint("fill-opacity", (0.55 * out).toFixed(2));
      putBar("fill", colours[1]);
      putBar("width", String(Math.round((width - 10) * into)));
      putNode("class", `chip${token.special ? " special" : ""}${token.part ? " part" : ""}${active ? " active" : ""}`);
      putNode("aria-pressed", String(pinned));
    },
  };
}
