// Tokens as a reader wants to see them.
import { widthOf } from "../figures/text.js";

// Start and end as signs that every font has and no phone draws as an emoji; blanks as signs that can be seen.
const SIGNS = { "▶": "▸", "\n": "⏎", "\t": "⇥" };

export function visible(text) {
  if (text === "") return "∅";
  const marked = text.replace(/[▶\n\t]/g, (sign) => SIGNS[sign]);
  return marked.trim() === "" ? "␣".repeat(marked.length) : marked.trim();
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
