// Tokens as a reader wants to see them.
import { svg } from "../../dom.js";
import { widthOf } from "../figures/text.js";

// Start and end as signs that every font has and no phone draws as an emoji; blanks as signs that can be seen.
const SIGNS = { "▶": "▸", "⏹": "■", "\n": "⏎", "\t": "⇥" };
const BROKEN = /(?:\ufffd|<0x[0-9A-F]{2}>)+/gi;
export const PART = "◌"; // of a letter: a token may hold only some of its bytes

function legible(text) {
  return text.replace(BROKEN, PART).replace(/[▶⏹\n\t]/g, (sign) => SIGNS[sign]);
}

// A token on its own, without the spaces around it.
export function visible(text) {
  if (text === "") return "∅";
  const marked = legible(text);
  return marked.trim() === "" ? "␣".repeat(marked.length) : marked.trim();
}

// The same with the space it begins with: beside others in a list, that matters.
export function spelled(text) {
  return visible(text.replace(/^[ ▁Ġ]+/, (spaces) => "␣".repeat(spaces.length)));
}

// For an SVG, with that space less strong than the letters.
export function marked(text) {
  const [, spaces, letters] = text.match(/^(␣*)(.*)$/s);
  return letters ? [svg("tspan", { "fill-opacity": 0.45 }, spaces), letters] : text;
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
