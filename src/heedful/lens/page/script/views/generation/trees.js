// Draws a beam's tree: steps from left to right, in each step the candidates by their score.
import { clear, svg } from "../../dom.js";
import { fitted, label, number, widthOf } from "../figures/text.js";
import { FATES, line, mark } from "./marks.js";
import { marked, spelled } from "./words.js";

const COLUMN = { simple: 122, deep: 156 }; // the narrowest; a short tree takes the width there is
const WIDEST = 190;
const LANE = 28;
const TOP = 40;
const LETTERS = 74; // room for a token's text
const ALL_AT_ONCE = 1500; // a larger tree is drawn only where it is seen

export function treePicture(tree, { choose, watch }) {
  const last = tree.columns.length - 1;
  const height = TOP + Math.max(...tree.columns.slice(1).map((column) => column.length)) * LANE + 4;
  const picture = svg("svg", { role: "img", height });
  const whole = tree.byId.size <= ALL_AT_ONCE;
  const root = tree.columns[0][0];
  let column = COLUMN.simple;
  let places = null;
  let measured = null; // the level the places were made for

  const columnAt = (step) => 58 + (step - 1) * column;

  // `from`, `to`: what is seen, in pixels; `now`: the step; `shown`: the node looked at; `lit`: the ids on the way to it.
  function draw({ from, to, now, shown, lit, deep, name }) {
    const narrowest = deep ? COLUMN.deep : COLUMN.simple;
    const wide = Math.max(narrowest, Math.min(WIDEST, Math.floor((to - from - 40) / last)));
    if (places === null || wide !== column || deep !== measured) {
      [column, measured] = [wide, deep];
      places = placed(tree, columnAt, deep);
    }
    const width = columnAt(last) + column - 24;
    const first = whole ? 1 : Math.max(1, Math.floor(from / column) - 1);
    const end = whole ? last : Math.min(last, Math.ceil(to / column) + 1);
    clear(picture);
    picture.setAttribute("aria-label", name);
    picture.setAttribute("width", width);
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const band = { fill: "var(--accent)", opacity: 0.09, rx: 8 };
    picture.append(svg("rect", { x: columnAt(now) - 14, y: 4, width: column - 12, height: height - 8, ...band }));
    const lines = Object.fromEntries(FATES.toReversed().map((fate) => [fate, svg("g")]));
    const marks = svg("g");
    const start = places.get(root.id);
    if (first === 1) marks.append(svg("circle", { cx: start.right, cy: start.y, r: 4.5, fill: "var(--ink)" }));
    for (let step = first; step <= end; step += 1) {
      const look = step === now ? { fill: "var(--accent)", weight: 650 } : {};
      marks.append(label(step, columnAt(step), 22, { anchor: "middle", ...look }));
      for (const node of tree.columns[step]) {
        lines[node.fate].append(edge(node, lit));
        marks.append(sign(node, shown, deep));
      }
    }
    picture.append(...Object.values(lines), marks);
  }

  function edge(node, lit) {
    const [a, b] = [places.get(node.parent), places.get(node.id)];
    const bend = Math.max(14, (b.left - a.right) * 0.5);
    const d = `M${a.right} ${a.y}C${a.right + bend} ${a.y} ${b.left - bend} ${b.y} ${b.left} ${b.y}`;
    const stands = lit.has(node.id) && node.fate !== "chosen";
    return line(node.fate, d, stands ? { stroke: "var(--ink)", "stroke-width": 2.2, opacity: 1 } : {});
  }

  function sign(node, shown, deep) {
    const { x, y, right } = places.get(node.id);
    const chosen = node.fate === "chosen";
    const group = svg("g", { transform: `translate(${x} ${y})`, style: { cursor: "pointer" } });
    const frame = { x: -11, y: -12, width: right - x + 11, height: 24, rx: 7, "stroke-width": 1.4 };
    const look = node.id === shown ? { fill: "var(--paper)", stroke: "var(--ink)" } : { fill: "transparent" };
    group.append(svg("rect", { ...frame, ...look }));
    group.append(mark(node.fate, chosen && tree.children.get(node.id).length === 0));
    group.append(label(marked(shortText(node)), 12, 4.5, { size: 13, ...(chosen ? { fill: "var(--ink)", weight: 650 } : {}) }));
    if (deep) group.append(label(number(node.score, 2), right - x - 5, 4, { size: 10, anchor: "end" }));
    group.addEventListener("pointerenter", () => watch(node));
    group.addEventListener("click", () => choose(node));
    return group;
  }

  picture.addEventListener("pointerleave", () => watch(null));
  return { picture, draw, whole, columnAt, height };
}

const shortText = (node) => fitted(spelled(node.text), LETTERS, 13);

// { x: the sign's middle, left and right: where lines end and begin, y } of every node.
function placed(tree, columnAt, deep) {
  const places = new Map();
  const middle = TOP + (tree.columns[1].filter((node) => node.fate !== "pruned").length * LANE) / 2;
  places.set(tree.columns[0][0].id, { right: 20, y: middle });
  tree.columns.forEach((column, step) => {
    if (step === 0) return;
    const x = columnAt(step);
    column.forEach((node, lane) => {
      const wide = widthOf(shortText(node), 13, node.fate === "chosen" ? 650 : 400) + (deep ? 36 : 0);
      places.set(node.id, { x, left: x - 9, right: x + 18 + wide, y: TOP + (lane + 0.5) * LANE });
    });
  });
  return places;
}
