// What the model takes the input for: the probability of each class.
import { total } from "../attention/measure.js";
import { bars } from "../drawing/chart.js";
import { redrawn } from "../drawing/stage.js";
import { number, percent } from "../drawing/text.js";

export const name = "classes";

const SHOWN = 20;

export const fits = (doc) => doc.classes !== null && doc.classes.length > 0;

// The most probable, and all that is left as one row.
function rowsOf(classes, t) {
  const sorted = [...classes].sort((a, b) => b.probability - a.probability);
  if (sorted.length <= SHOWN) return sorted;
  const rest = sorted.slice(SHOWN), probability = total(rest.map((item) => item.probability));
  return [...sorted.slice(0, SHOWN), { label: t("rest", { n: rest.length }), probability, rest: true }];
}

export function mount(root, { doc, state, t }) {
  redrawn(root, state, [], (width) => {
    const deep = state.get("level") === "deep";
    const rows = rowsOf(doc.classes, t);
    const name = t("all", { n: doc.classes.length, label: rows[0].label, share: percent(rows[0].probability) });
    return [bars(rows.map(({ label, probability, rest }, n) => ({
      name: label, share: probability, text: deep ? number(probability, 4) : percent(probability),
      look: { weight: n ? 400 : 650, fill: rest ? "var(--soft)" : "var(--ink)" }, bar: { opacity: n ? 0.55 : 1 },
    })), width, name)];
  });
}
