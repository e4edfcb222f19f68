// Text in an SVG: how wide it is, where its lines end, how its numbers are written.
import { svg } from "../../dom.js";

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Noto Sans KR", "Noto Sans CJK KR", sans-serif';
const pen = document.createElement("canvas").getContext("2d");

export function widthOf(text, size, weight = 400) {
  pen.font = `${weight} ${size}px ${FONT}`;
  return pen.measureText(text).width;
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
export function brief(value) {
  return String(Number(value.toPrecision(3))).replace("-", "−");
}

// A probability as a number: what is not nothing does not look like it.
export function small(share) {
  return share > 0 && share < 0.0005 ? "<0.001" : number(share);
}

export function percent(share) {
  if (share < 0.001) return share > 0 ? "<0.1%" : "0%";
  return `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}%`;
}
