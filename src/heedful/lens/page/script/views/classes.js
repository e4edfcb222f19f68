// What the model takes the input for: the probability of each class.
import { hue } from "../color.js";
import { svg } from "../dom.js";
import { redrawn } from "../drawing/stage.js";
import { fitted, label, number, percent, widthOf } from "../drawing/text.js";

export const name = "classes";

const SHOWN = 20;
const ROW = 30;

export function fits(doc) {
  return doc.classes !== null && doc.classes.length > 0;
}

// The most probable, and all that is left as one row.
function rowsOf(classes, t) {
  const sorted = [...classes].sort((a, b) => b.probability - a.probability);
  if (sorted.length <= SHOWN) return sorted;
  const rest = sorted.slice(SHOWN);
  const probability = rest.reduce((sum, one) => sum + one.probability, 0);
  return [...sorted.slice(0, SHOWN), { label: t("rest", { n: rest.length }), probability, rest: true }];
}

const seen = (length) => (length > 0 ? Math.max(2, length) : 0);

export function mount(root, { doc, state, t }) {
  redrawn(root, state, [], (width) => {
    const deep = state.get("level") === "deep";
    const rows = rowsOf(doc.classes, t);
    const most = Math.min(220, width * 0.42);
    const side = Math.min(most, Math.max(...rows.map((one) => widthOf(one.label, 14, 600)))) + 14;
    const long = Math.min(560, width - side - 64);
    const height = rows.length * ROW;
    const name = t("all", { n: doc.classes.length, label: rows[0].label, share: percent(rows[0].probability) });
    const node = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": name });
    rows.forEach(({ label: text, probability, rest }, n) => {
      const first = n === 0;
      const look = { size: 14, weight: first ? 650 : 400, fill: rest ? "var(--soft)" : "var(--ink)" };
      const bar = { x: side, y: n * ROW + 7, height: 16, rx: 3 };
      node.append(
        label(fitted(text, side - 14, 14), side - 12, n * ROW + 20, { ...look, anchor: "end" }),
        svg("rect", { ...bar, width: long, fill: "var(--line)", opacity: 0.4 }),
        svg("rect", { ...bar, width: seen(probability * long), fill: hue(0), opacity: first ? 1 : 0.55 }, svg("title", {}, text)),
        label(deep ? number(probability, 4) : percent(probability), side + long + 10, n * ROW + 20, { ...look, size: 13 }),
      );
    });
    return [node];
  });
}
