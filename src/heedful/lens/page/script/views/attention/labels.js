// Token names beside and above a map: short, readable, Hangul always upright.
import { svg } from "../../dom.js";

const LIMIT = 14, SLANT = (50 * Math.PI) / 180;
const UPRIGHT = /[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u4e00-\u9fff\uac00-\ud7a3]/;
const MEASURED = 20, widths = new Map();
let pen = null;

/** Gives a drawing its size; `left` is where its first column of pixels stands. */
export function resize(drawing, width, height, left = 0) {
  drawing.setAttribute("width", width);
  drawing.setAttribute("height", height);
  drawing.setAttribute("viewBox", `${left} 0 ${width} ${height}`);
}

/** Width of a text in the page's font, in pixels; each text is measured once. */
export function textWidth(text, size) {
  if (!pen) {
    pen = document.createElement("canvas").getContext("2d");
    pen.font = `${MEASURED}px ${getComputedStyle(document.body).fontFamily}`;
  }
  if (!widths.has(text)) widths.set(text, pen.measureText(text).width / MEASURED);
  return widths.get(text) * size;
}

/** A token's name as it fits on an axis; a space or a line break is shown by a sign. */
export function short(token) {
  const letters = [...(token.text.trim() ? token.text.trim() : token.text.replace(/\n/g, "↵").replace(/\s/g, "␣"))];
  return letters.length > LIMIT ? letters.slice(0, LIMIT - 1).join("") + "…" : letters.join("");
}

/** How column names lie above cells of this width: flat if all fit, else stacked (Hangul) or slanted. */
export function columnNames(tokens, cell, size) {
  const names = tokens.map(short), widths = names.map((name) => textWidth(name, size));
  const every = Math.ceil((size * 1.25) / cell); // slanted lines of text stand this far apart
  if (every === 1 && widths.every((width) => width <= cell - 4)) {
    return { names, every, height: size + 8, overhang: 0, write: (place, x, y) => text(names[place], x, y - 6, size) };
  }
  const upright = (name) => UPRIGHT.test(name) || [...name].length === 1;
  const heights = names.map((name, place) =>
    upright(name) ? [...name].length * (size + 1) : widths[place] * Math.sin(SLANT) + size,
  );
  const reach = names.map((name, place) =>
    upright(name) ? 0 : widths[place] * Math.cos(SLANT) - (names.length - place - 1) * cell,
  );
  return {
    names, every, height: Math.max(...heights) + 8, overhang: Math.max(0, ...reach),
    write: (place, x, y) => (upright(names[place]) ? stacked : slanted)(names[place], x, y - 6, size),
  };
}

function text(name, x, y, size, more = {}) {
  return svg("text", { x, y, "font-size": size, "text-anchor": "middle", ...more }, name);
}

function slanted(name, x, y, size) {
  const turn = `rotate(-50 ${x + size / 3} ${y})`;
  return text(name, x + size / 3, y, size, { "text-anchor": "start", transform: turn });
}

function stacked(name, x, y, size) {
  const letters = [...name];
  const lineAt = (place) => y - (letters.length - 1 - place) * (size + 1);
  const lines = letters.map((letter, place) => svg("tspan", { x, y: lineAt(place) }, letter));
  return svg("text", { "font-size": size, "text-anchor": "middle" }, ...lines);
}

export function rowName(name, x, y, size) {
  return text(name, x, y + size * 0.36, size, { "text-anchor": "end" });
}
