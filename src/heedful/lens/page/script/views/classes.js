// What the model takes the input for: the probability of each class.
import { hue } from "../colour.js";
import { svg } from "../dom.js";
import { drawn } from "./figures/drawn.js";
import { fitted, label, number, percent, widthOf } from "./figures/text.js";

export const name = "classes";

export const words = {
  en: {
    title: "The answer, class by class",
    simple: "How sure the model is of each answer. All bars together make 100%.",
    deep: "softmax over the logits of the classes; most probable first.",
    rest: "{n} more classes", all: "Probabilities of {n} classes; most probable: {label}, {share}",
  },
  ko: {
    title: "클래스별 확률",
    simple: "모델이 각 답을 얼마나 확신하는지 보여 줍니다. 막대를 모두 합하면 100%입니다.",
    deep: "클래스 로짓에 소프트맥스를 취한 값입니다. 확률이 높은 것부터 늘어놓았습니다.",
    rest: "나머지 클래스 {n}개", all: "클래스 {n}개의 확률. 가장 높은 것은 {label}, {share}",
  },
};

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
  drawn(root, state, [], (width) => {
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
