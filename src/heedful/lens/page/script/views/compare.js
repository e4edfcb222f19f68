// Two heads side by side, and what the first does more or less than the second.
import { hue } from "../colour.js";
import { el } from "../dom.js";
import { chosen, comparedWith, latest, weightsOf } from "./attention/chosen.js";
import { createMap } from "./attention/map.js";
import { difference, jensenShannon, largest, rowOf } from "./attention/measure.js";
import { picker } from "./attention/picker.js";
import { createLegend, SCALES } from "./attention/scales.js";
import { crossVariant, tokensAt } from "./attention/sides.js";
import { headName, shared } from "./attention/words.js";

export const name = "compare";

export const words = {
  en: {
    ...shared.en,
    title: "Two heads compared",
    simple: "Heads of the same model often look at different things. Blue is where the first looks more, orange where the second does.",
    deep: "A, B and A − B on the same tokens, with the Jensen–Shannon distance of each row (0: the same, 1: nothing in common).",
    "deep.cross": "A, B and A − B on the same tokens, with the Jensen–Shannon distance of each row (0: the same, 1: nothing in common). A row goes by the token it predicts; it has read the one before.",
    first: "A", second: "B", minus: "A − B", bars: "JS distance", with: "Compare with",
    label: "{a} beside {b}, and their difference",
    hint: "Two attention maps and their difference. Arrow keys move the cell.",
    same: "These two look at nearly the same tokens.",
    partly: "These two agree in part; they differ most at “{token}”.",
    apart: "These two look at different tokens; they differ most at “{token}”.",
    total: "Mean Jensen–Shannon distance {mean}, largest {most} at “{token}”.",
    self: "Both sides show the same head; choose another to compare.",
    cell: "“{query}” → “{key}”: A {a}, B {b}, difference {d}",
  },
  ko: {
    ...shared.ko,
    title: "두 헤드 견주기",
    simple: "같은 모델의 헤드라도 서로 다른 곳을 볼 때가 많습니다. 파란색은 첫째 헤드가, 주황색은 둘째 헤드가 더 많이 보는 곳입니다.",
    deep: "같은 토큰에 대한 A, B, A − B와 행마다의 옌센–섀넌 거리(Jensen–Shannon distance)입니다. 0이면 같고 1이면 겹치는 것이 없습니다.",
    "deep.cross": "같은 토큰에 대한 A, B, A − B와 행마다의 옌센–섀넌 거리(Jensen–Shannon distance)입니다. 0이면 같고 1이면 겹치는 것이 없습니다. 행의 이름은 그 행이 예측하는 토큰이며, 그 행은 그 앞의 토큰까지 읽었습니다.",
    first: "A", second: "B", minus: "A − B", bars: "JS 거리", with: "견줄 헤드",
    label: "{a}, {b}, 그리고 둘의 차이",
    hint: "두 어텐션 지도와 그 차이. 화살표 키로 칸을 옮깁니다.",
    same: "두 헤드는 거의 같은 토큰을 봅니다.",
    partly: "두 헤드는 어느 정도 비슷하지만 ‘{token}’에서 가장 크게 다릅니다.",
    apart: "두 헤드는 서로 다른 토큰을 봅니다. 차이는 ‘{token}’에서 가장 큽니다.",
    total: "옌센–섀넌 거리 평균 {mean}, 최대 {most}(‘{token}’).",
    self: "양쪽이 같은 헤드입니다. 다른 헤드를 골라 견주어 보세요.",
    cell: "‘{query}’ → ‘{key}’: A {a}, B {b}, 차이 {d}",
  },
};

export function fits(doc) {
  return doc.attentions.some((attention) => attention.heads.length > 1) || doc.attentions.length > 1;
}

export const variant = crossVariant;

export function mount(root, context) {
  const { doc, state, t } = context;
  const readout = el("p", { class: "said", "aria-live": "polite" });
  const legend = createLegend(SCALES.difference);
  const between = el("span", {});
  const other = {
    get: () => comparedWith(context),
    set: (attention, head) => state.set({ compare: { attention: attention.id, head } }),
  };
  let shown = null;
  const tell = (cell) => {
    if (shown) readout.textContent = cell ? cellSentence(context, shown, cell) : summary(context, shown);
  };
  const map = createMap(root, { onCell: tell, onPick: (cell) => state.set({ pair: cell }) });
  root.classList.add("attention");
  root.append(el("div", { class: "picks" }, between, picker(context, other)), map.node, readout, legend.node);

  const draw = latest(([a, b]) => {
    const one = chosen(context), two = comparedWith(context);
    const { rows, columns } = tokensAt(doc, one.attention);
    const minus = difference(a, b), most = Math.max(largest(a.data), largest(b.data)), gap = largest(minus.data);
    const distances = rows.map((_, row) => jensenShannon(rowOf(a, row), rowOf(b, row)));
    const names = [one, two].map((each) => headName(context, each));
    const identical = one.attention === two.attention && one.head === two.head;
    shown = { a, b, rows, columns, distances, causal: one.attention.causal, identical };
    between.textContent = t("with");
    map.draw({
      rows, columns, digits: false, hint: t("hint"), label: t("label", { a: names[0], b: names[1] }),
      hidden: (row, column) => one.attention.causal && column > row,
      bars: state.get("level") === "deep" && { values: distances, title: t("bars"), colour: hue(3) },
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
  const most = Math.max(...distances), mean = distances.reduce((sum, one) => sum + one, 0) / distances.length;
  const token = rows[distances.indexOf(most)].text;
  if (state.get("level") === "deep") return t("total", { mean: mean.toFixed(4), most: most.toFixed(4), token });
  return t(mean < 0.2 ? "same" : mean < 0.45 ? "partly" : "apart", { token });
}

function cellSentence({ t }, { a, b, rows, columns, causal }, { query, key }) {
  const values = { query: rows[query].text, key: columns[key].text };
  if (causal && key > query) return t("hiddenPair", values);
  const place = query * columns.length + key, one = a.data[place], two = b.data[place];
  const signed = (one - two >= 0 ? "+" : "−") + Math.abs(one - two).toFixed(4);
  return t("cell", { ...values, a: one.toFixed(4), b: two.toFixed(4), d: signed });
}
