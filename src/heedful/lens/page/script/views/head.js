// One head large: who looks at whom, with the weight of every pair.
import { el } from "../dom.js";
import { chosen, kindOf, latest, weightsOf } from "./attention/chosen.js";
import { createCloseup } from "./attention/closeup.js";
import { createMap } from "./attention/map.js";
import { largest, rankIn, rowOf } from "./attention/measure.js";
import { isLarge } from "./attention/panels.js";
import { createLegend, SCALES } from "./attention/scales.js";
import { crossVariant, tokensAt, writes } from "./attention/sides.js";
import { headName, kindName, shared } from "./attention/words.js";

export const name = "head";

export const words = {
  en: {
    ...shared.en,
    title: "One head, large",
    simple: "Each row is a token that looks, each column a token it can look at. The stronger the colour, the more of that token is mixed in.",
    deep: "Weights, the softmax of the scores: rows are queries and sum to 1, columns are keys. The mean averages the layer's heads. It shows what was mixed, not why.",
    "simple.cross": "Each row is a token of the answer, each column a token the model has read. The stronger the colour, the more of that token is mixed in.",
    "deep.cross": "Weights, the softmax of the scores: rows are queries and sum to 1, columns are keys. A row goes by the token it predicts; it has read the one before. The mean averages the layer's heads. It shows what was mixed, not why.",
    label: "Map of attention weights, {name}, {rows} × {columns} tokens",
    hint: "Attention map. Arrow keys move the cell, Enter chooses the pair for the numbers.",
    rest: "Point at a cell, or press Tab and the arrow keys, to read its weight.",
    cellSimple: "“{query}” gives {percent} of its attention to “{key}”.",
    cellCross: "For “{query}”, {percent} of the attention goes to “{key}”.",
    cellDeep: "“{query}” → “{key}”: {weight} · score rank {rank} of {count}",
    cellMean: "“{query}” → “{key}”: {weight} · rank {rank} of {count} in the mean",
  },
  ko: {
    ...shared.ko,
    title: "헤드 하나 크게 보기",
    simple: "행은 바라보는 토큰, 열은 바라볼 수 있는 토큰입니다. 색이 진할수록 그 토큰이 더 많이 섞입니다.",
    deep: "점수에 소프트맥스를 취한 가중치입니다. 행은 쿼리(query)로 합이 1이고, 열은 키(key)입니다. 평균은 그 층의 모든 헤드를 평균한 값입니다. 무엇이 섞였는지를 보여 줄 뿐, 왜 그랬는지는 말해 주지 않습니다.",
    "simple.cross": "행은 답의 토큰, 열은 모델이 읽은 토큰입니다. 색이 진할수록 그 토큰이 더 많이 섞입니다.",
    "deep.cross": "점수에 소프트맥스를 취한 가중치입니다. 행은 쿼리(query)로 합이 1이고, 열은 키(key)입니다. 행의 이름은 그 행이 예측하는 토큰이며, 그 행은 그 앞의 토큰까지 읽었습니다. 평균은 그 층의 모든 헤드를 평균한 값입니다. 무엇이 섞였는지를 보여 줄 뿐, 왜 그랬는지는 말해 주지 않습니다.",
    label: "어텐션 가중치 지도, {name}, 토큰 {rows} × {columns}개",
    hint: "어텐션 지도. 화살표 키로 칸을 옮기고 Enter로 계산에 쓸 쌍을 고릅니다.",
    rest: "칸을 가리키거나 Tab을 누른 뒤 화살표 키로 옮기면 가중치를 볼 수 있습니다.",
    cellSimple: "‘{query}’ 토큰은 어텐션의 {percent}를 ‘{key}’에 줍니다.",
    cellCross: "‘{query}’ 차례에는 어텐션의 {percent}가 ‘{key}’에 갑니다.",
    cellDeep: "‘{query}’ → ‘{key}’: {weight} · 점수 순위 {count}개 중 {rank}위",
    cellMean: "‘{query}’ → ‘{key}’: {weight} · 평균에서 {count}개 중 {rank}위",
  },
};

export function fits(doc) {
  return doc.attentions.length > 0;
}

export const variant = crossVariant;

export function mount(root, context) {
  const { doc, state, t } = context;
  const readout = el("p", { class: "said", "aria-live": "polite" });
  const legend = createLegend(SCALES.weights), closeup = createCloseup();
  let shown = null;

  const tell = (cell) => {
    readout.textContent = cell && shown ? sentence(context, shown, cell) : t("rest");
    readout.classList.toggle("soft", !cell);
    if (shown) closeup.show(shown.large ? cell : null, shown);
  };
  const map = createMap(root, { onCell: tell, onPick: (cell) => state.set({ pair: cell }) });
  root.classList.add("attention");
  root.append(el("div", { class: "beside" }, map.node, el("div", {}, readout, legend.node, closeup.node)));

  const draw = latest((weights) => {
    const { attention, head } = chosen(context);
    const { rows, columns } = tokensAt(doc, attention);
    const most = largest(weights.data);
    const hidden = (row, column) => attention.causal && column > row;
    shown = { attention, head, weights, most, hidden, rows, columns, large: isLarge({ rows, columns }) };
    const name = `${kindName(context, kindOf(attention))}, ${headName(context, { attention, head })}`;
    map.draw({
      rows, columns, hidden, panels: [{ map: weights, scale: SCALES.weights, most }], digits: state.get("level") === "deep",
      label: t("label", { name, rows: rows.length, columns: columns.length }), hint: t("hint"),
    });
    legend.draw("0", most.toFixed(state.get("level") === "deep" ? 4 : 2));
  });
  const load = () => draw(weightsOf(context, chosen(context)));
  state.on(["attention", "head", "level", "language", "theme"], load);
  return load();
}

function sentence({ doc, state, t }, { attention, head, weights, rows, columns }, { query, key }) {
  const values = { query: rows[query].text, key: columns[key].text };
  if (attention.causal && key > query) return t("hiddenPair", values);
  const row = rowOf(weights, query), weight = row[key];
  const percent = `${(weight * 100).toFixed(weight < 0.1 ? 1 : 0)}%`;
  if (state.get("level") !== "deep") return t(writes(doc, attention) ? "cellCross" : "cellSimple", { ...values, percent });
  const count = attention.causal ? query + 1 : columns.length;
  const told = { ...values, weight: weight.toFixed(4), rank: rankIn(row, key), count };
  return t(head === "mean" ? "cellMean" : "cellDeep", told);
}
