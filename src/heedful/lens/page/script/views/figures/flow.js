// Steps one below the other: what happens in words, and beside it (on a phone: below it) what it looks like.
import { svg } from "../../dom.js";
import { label, paragraph } from "./text.js";

const WORDS = 236;
const GUTTER = 34;
const APART = 28; // between words and drawing
const GAP = 34;

function numbered(index, y) {
  const ring = { cx: 11, cy: y - 5, r: 10.5, fill: "var(--paper)", stroke: "var(--line)", "stroke-width": 1.2 };
  return [svg("circle", ring), label(index + 1, 11, y - 0.8, { anchor: "middle", weight: 600, fill: "var(--ink)" })];
}

// `steps`: { title, text, draw(width) → { node, height } }.
export function flow(width, steps, name) {
  const beside = width >= 760;
  const words = beside ? WORDS : width - GUTTER;
  const room = beside ? width - GUTTER - WORDS - APART : width;
  const node = svg("svg", { width, role: "group", "aria-label": name });
  const rail = svg("path", { stroke: "var(--line)", "stroke-width": 1.2, fill: "none" });
  node.append(rail);
  let y = 0;
  let last = 0;
  steps.forEach((step, index) => {
    const foot = y + 17;
    node.append(...numbered(index, foot));
    last = foot;
    const title = paragraph(step.title, GUTTER, foot, words, { size: 14, weight: 600, fill: "var(--ink)" });
    const text = paragraph(step.text, GUTTER, foot + title.height + 1, words);
    const said = 17 + title.height + text.height - 8;
    const drawing = step.draw(room);
    const [x, top] = beside ? [GUTTER + WORDS + APART, y + 4] : [0, y + said + 8];
    node.append(title.node, text.node, svg("g", { transform: `translate(${x} ${top})` }, drawing.node));
    y += (beside ? Math.max(said, drawing.height + 4) : said + 8 + drawing.height) + GAP;
  });
  if (beside) rail.setAttribute("d", `M11 12V${last - 5}`);
  const height = Math.ceil(y - GAP + 8);
  node.setAttribute("height", height);
  node.setAttribute("viewBox", `0 0 ${width} ${height}`);
  return node;
}
