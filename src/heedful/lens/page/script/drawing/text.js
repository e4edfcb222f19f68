// Text in an SVG: how wide it is, where its lines end, how its numbers are written.
import { set, svg } from "../dom.js";

const MEASURED = 20, widths = new Map();
let pen = null;

// Width of a text in the page's font, in pixels; each text is measured once for a weight.
export function widthOf(text, size, weight = 400) {
  if (!widths.has(weight)) widths.set(weight, new Map());
  const cache = widths.get(weight);
  if (!cache.has(text)) {
    pen ??= document.createElement("canvas").getContext("2d");
    pen.font = `${weight} ${MEASURED}px ${getComputedStyle(document.body).fontFamily}`;
    cache.set(text, pen.measureText(text).width / MEASURED);
  }
  return cache.get(text) * size;
}

// The text, or as much of its beginning as fits and an ellipsis.
export function fitted(text, width, size) {
  if (widthOf(text, size) <= width) return text;
  const letters = [...text];
  while (letters.length > 1 && widthOf(`${letters.join("")}…`, size) > width) letters.pop();
  return `${letters.join("")}…`;
}

function linesOf(text, width, size, weight) {
  const lines = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line ? `${line} ${word}` : word;
    if (line && widthOf(longer, size, weight) > width) {
      lines.push(line);
      line = word;
    } else {
      line = longer;
    }
  }
  return [...lines, line];
}

export function label(text, x, y, { size = 12, fill = "var(--soft)", weight = 400, anchor = "start", ...more } = {}) {
  const style = { "font-size": size, "font-weight": weight, "text-anchor": anchor, fill };
  return svg("text", { x, y, ...style, ...more }, text);
}

// A paragraph whose first line's foot stands at y; its height says where the next may begin.
export function paragraph(text, x, y, width, { size = 13, leading = 1.5, ...look } = {}) {
  const lines = linesOf(text, width, size, look.weight);
  const node = svg("g", {}, ...lines.map((line, n) => label(line, x, y + n * size * leading, { size, ...look })));
  return { node, height: lines.length * size * leading };
}

// Three digits after the point; a true minus; what is masked is minus infinity.
export function number(value, digits = 3) {
  if (value === -Infinity) return "−∞";
  return value.toFixed(digits).replace(/^-(?=0\.?0*$)/, "").replace("-", "−");
}

// Three digits that count, whatever the size.
export const brief = (value) => String(Number(value.toPrecision(3))).replace("-", "−");
// A probability as a number: what is not nothing does not look like it.
export const small = (share) => share > 0 && share < 0.0005 ? "<0.001" : number(share);

export function percent(share) {
  if (share < 0.001) return share > 0 ? "<0.1%" : "0%";
  return `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}%`;
}

// Token names beside and above a map: short, readable, Hangul always upright.

const LIMIT = 14, SLANT = (50 * Math.PI) / 180;
const UPRIGHT = /[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u4e00-\u9fff\uac00-\ud7a3]/;
/** Gives a drawing its size; `left` is where its first column of pixels stands. */
export function resize(drawing, width, height, left = 0) {
  return set(drawing, { width, height, viewBox: `${left} 0 ${width} ${height}` });
}

/** A token's name as it fits on an axis; a space or a line break is shown by a sign. */
export function short(token) {
  const letters = [...(token.text.trim() ? token.text.trim() : token.text.replace(/\n/g, "↵").replace(/\s/g, "␣"))];
  return letters.length > LIMIT ? letters.slice(0, LIMIT - 1).join("") + "…" : letters.join("");
}

/** How column names lie above cells of this width: flat if all fit, else stacked (Hangul) or slanted. */
export function columnNames(tokens, cell, size) {
  const names = tokens.map(short), widths = names.map((name) => widthOf(name, size));
  const every = Math.ceil((size * 1.25) / cell); // slanted lines of text stand this far apart
  if (every === 1 && widths.every((width) => width <= cell - 4)) {
    return { names, every, height: size + 8, overhang: 0, write: (place, x, y) => text(names[place], x, y - 6, size) };
  }
  const upright = names.map((name) => UPRIGHT.test(name) || [...name].length === 1);
  const heights = names.map((name, place) => upright[place] ? [...name].length * (size + 1) : widths[place] * Math.sin(SLANT) + size);
  const reach = widths.map((width, place) => upright[place] ? 0 : width * Math.cos(SLANT) - (names.length - place - 1) * cell);
  return {
    names, every, height: Math.max(...heights) + 8, overhang: Math.max(0, ...reach),
    write: (place, x, y) => (upright[place] ? stacked : slanted)(names[place], x, y - 6, size),
  };
}

// In the color of its surroundings.
function text(name, x, y, size, more) {
  return svg("text", { x, y, "font-size": size, "text-anchor": "middle", ...more }, name);
}

function slanted(name, x, y, size) {
  const left = x + size / 3;
  return text(name, left, y, size, { "text-anchor": "start", transform: `rotate(-50 ${left} ${y})` });
}

function stacked(name, x, y, size) {
  const letters = [...name].reverse();
  return text(letters.map((letter, above) => svg("tspan", { x, y: y - above * (size + 1) }, letter)).reverse(), x, y, size);
}

export const rowName = (name, x, y, size) => text(name, x, y + size * 0.36, size, { "text-anchor": "end" });

// Tokens as a reader wants to see them.

// Start and end as signs that every font has and no phone draws as an emoji; blanks as signs that can be seen.
const SIGNS = { "▶": "▸", "⏹": "■", "\n": "⏎", "\t": "⇥" };
const BROKEN = /(?:\ufffd|<0x[0-9A-F]{2}>)+/gi;
export const PART = "◌"; // of a letter: a token may hold only some of its bytes

const legible = (text) => text.replace(BROKEN, PART).replace(/[▶⏹\n\t]/g, (sign) => SIGNS[sign]);

// A token on its own, without the spaces around it.
export function visible(text) {
  if (text === "") return "∅";
  const marked = legible(text);
  return marked.trim() === "" ? "␣".repeat(marked.length) : marked.trim();
}

// The same with the space it begins with: beside others in a list, that matters.
export const spelled = (text) => visible(text.replace(/^[ ▁Ġ]+/, (spaces) => "␣".repeat(spaces.length)));

// For an SVG, with that space less strong than the letters.
export function marked(text) {
  const [, spaces, letters] = text.match(/^(␣*)(.*)$/s);
  return spaces && letters ? [svg("tspan", { "fill-opacity": 0.45 }, spaces), letters] : text;
}

// The text that tokens spell one after the other, without its end mark; parts of a letter that has come since are gone.
export function joined(texts) {
  return legible(texts.join("").replace(/[▁Ġ]/g, " ").replace(/\ufffd+(?!$)/g, "").replace(/[■⏹]$/, "")).trim();
}

// The end of a long text: what was read last matters most.
export function tail(text, length = 60) {
  const letters = [...text];
  return letters.length > length ? "…" + letters.slice(1 - length).join("") : text;
}

// The text, or an ellipsis and as much of its end as fits.
export function fittedEnd(text, width, size) {
  const letters = [...text];
  let start = 0;
  while (start < letters.length - 1 && widthOf((start ? "…" : "") + letters.slice(start).join(""), size) > width) start += 1;
  return (start ? "…" : "") + letters.slice(start).join("");
}

// Words laid out in lines, as on paper: an SVG does not wrap text by itself.

// Boxes { text, x, width, line } for the texts within a width; between two words is a gap, or the one before the second.
export function wrapWords(texts, width, { size, padding, narrowest = 18, gap, gapBefore = () => gap }) {
  let right = 0, line = 0;
  const boxes = texts.map((text, index) => {
    const wide = Math.min(width, Math.max(widthOf(text, size) + 2 * padding, narrowest));
    let x = index ? right + gapBefore(index) : 0;
    if (index && x + wide > width) [x, line] = [0, line + 1];
    right = x + wide;
    return { text, x, width: wide, line };
  });
  return { boxes, lines: texts.length ? line + 1 : 0 };
}
