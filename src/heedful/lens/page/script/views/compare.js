// Two heads side by side, and what the first does more or less than the second.
import { difference, jensenShannon, largest, mean, rowOf } from "../attention/measure.js";
import { chosen, comparedWith, crossVariant, headName, hiddenIn, picker, tokensAt, weightsOf } from "../attention/selection.js";
import { hue } from "../color.js";
import { el } from "../dom.js";
import { createLegend, createMap, SCALES } from "../drawing/map.js";
import { latest } from "../drawing/stage.js";

export const name = "compare";
export const fits = ({ attentions }) => attentions.length > 1 || attentions.some(({ heads }) => heads.length > 1);
export const variant = crossVariant;

export function mount(root, context) {
  const { doc, state, t } = context;
  const readout = el("p", { class: "said", "aria-live": "polite" });
  const legend = createLegend(SCALES.difference);
  const between = el("span", {});
  const choose = (attention, head) => state.set({ compare: { attention: attention.id, head } });
  let current = null;
  const update = (cell) => {
    if (current) readout.textContent = cell ? cellSentence(context, current, cell) : summary(context, current);
  };
  const map = createMap(root, { onCell: update, onPick: (cell) => state.set({ pair: cell }) });
  root.classList.add("attention");
  const lists = picker(context, () => comparedWith(context), choose);
  root.append(el("div", { class: "picks" }, between, lists), map.node, readout, legend.node);

  const draw = latest(([a, b]) => {
    const first = chosen(context), second = comparedWith(context);
    const { rows, columns } = tokensAt(doc, first.attention);
    const minus = difference(a, b), most = Math.max(largest(a.data), largest(b.data)), gap = largest(minus.data);
    const distances = rows.map((_, row) => jensenShannon(rowOf(a, row), rowOf(b, row)));
    const names = [first, second].map((each) => headName(context, each));
    const identical = first.attention === second.attention && first.head === second.head;
    const hidden = hiddenIn(first.attention);
    current = { a, b, rows, columns, distances, hidden, identical };
    between.textContent = t("with");
    map.draw({
      rows, columns, hidden, digits: false, hint: t("hint"), label: t("label", { a: names[0], b: names[1] }),
      bars: state.get("level") === "deep" && { values: distances, title: t("bars"), color: hue(3) },
      panels: [
        { title: `${t("first")} · ${names[0]}`, map: a, scale: SCALES.weights, most },
        { title: `${t("second")} · ${names[1]}`, map: b, scale: SCALES.weights, most },
        { title: t("minus"), map: minus, scale: SCALES.difference, most: gap },
      ],
    });
    legend.draw(`B +${gap.toFixed(2)}`, `A +${gap.toFixed(2)}`);
  });
  const load = () => draw(Promise.all([chosen(context), comparedWith(context)].map((each) => weightsOf(context, each))));
  state.on(["attention", "head", "compare", "level", "language", "theme"], load);
  return load();
}

function summary({ state, t }, { rows, distances, identical }) {
  if (identical) return t("self");
  const most = Math.max(...distances), typical = mean(distances);
  const token = rows[distances.indexOf(most)].text;
  if (state.get("level") === "deep") return t("total", { mean: typical.toFixed(4), most: most.toFixed(4), token });
  return t(typical < 0.2 ? "same" : typical < 0.45 ? "partly" : "apart", { token });
}

function cellSentence({ t }, { a, b, rows, columns, hidden }, { query, key }) {
  const values = { query: rows[query].text, key: columns[key].text };
  if (hidden(query, key)) return t("hiddenPair", values);
  const place = query * columns.length + key, first = a.data[place], second = b.data[place];
  const signed = (first - second >= 0 ? "+" : "−") + Math.abs(first - second).toFixed(4);
  return t("cell", { ...values, a: first.toFixed(4), b: second.toFixed(4), d: signed });
}
