// The line as the model reads it: patches, what a chosen one looks at, and the forecast beside the truth.
import { el } from "../dom.js";
import { chosen, weightsOf } from "./attention/chosen.js";
import { headName, shared } from "./attention/words.js";
import { drawn } from "./figures/drawn.js";
import { price } from "./figures/price.js";
import { percent } from "./figures/text.js";

export const name = "series";

export const words = {
  en: {
    ...shared.en,
    title: "Over the line",
    simple: "The model reads the past in pieces, its patches, and goes on from there. Choose a patch to see which others it looks at.",
    deep: "Context, forecast and truth; below, the patches, coloured by a row of the attention weights.",
    from: "Looks from", past: "past", forecast: "forecast", truth: "truth", step: "step {n}", patch: "patch {n} ({text})",
    most: "From {from} most goes to {to}: {share}.", error: "Mean error of the forecast: {error} ({part} of the truth).",
    map: "Line of {name} with its patches and the forecast", none: "This model has no attention: only the line and the forecast are shown.",
  },
  ko: {
    ...shared.ko,
    title: "선 위의 어텐션",
    simple: "모델은 지난 값을 조각(패치)으로 나누어 읽고 그 뒤를 이어 갑니다. 조각을 고르면 그 조각이 어디를 보는지 나타납니다.",
    deep: "지난 값, 예측, 실제 값. 아래는 어텐션 가중치 한 줄로 색을 입힌 패치입니다.",
    from: "보는 쪽", past: "지난 값", forecast: "예측", truth: "실제", step: "{n}번째", patch: "조각 {n} ({text})",
    most: "{from}에서 가장 많이 보는 곳은 {to}, {share}입니다.", error: "예측의 평균 오차: {error} (실제 값의 {part})",
    map: "{name}의 선과 조각, 예측", none: "이 모델에는 어텐션이 없어 선과 예측만 보여 줍니다.",
  },
};

export function fits(doc) {
  return doc.series !== null;
}

function errorOf({ forecast, truth }, t) {
  if (!truth) return "";
  const pairs = forecast.map((value, n) => [value, truth[n]]).filter(([, real]) => Number.isFinite(real));
  if (!pairs.length) return "";
  const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
  const error = mean(pairs.map(([value, real]) => Math.abs(value - real)));
  const size = mean(pairs.map(([, real]) => Math.abs(real)));
  return t("error", { error: Number(error.toPrecision(3)), part: size ? percent(error / size) : "–" });
}

// The patches are the last tokens; what stands before them is no part of the line.
async function looks(context, first) {
  const { doc, state } = context;
  if (!doc.attentions.length) return null;
  const one = chosen(context);
  const pinned = state.get("pinned");
  const place = pinned?.sequence === "source" ? pinned.index - first : doc.series.patches.length - 1;
  const from = place >= 0 && place < doc.series.patches.length ? place : 0;
  const weights = await weightsOf(context, one);
  const tokens = weights.shape[1];
  const shares = doc.series.patches.map((_, n) => weights.data[(from + first) * tokens + first + n]);
  return { from, shares, title: headName(context, one) };
}

export function mount(root, context) {
  const { doc, state, t } = context;
  const first = doc.sequences.source.length - doc.series.patches.length;
  const nameOf = (place) => t("patch", { n: place, text: doc.sequences.source[place + first].text });
  const choose = (place) => state.set({ pinned: { sequence: "source", index: place + first } });
  drawn(root, state, ["attention", "head", "pinned"], async (width, note) => {
    const looking = await looks(context, first);
    const figure = price({ series: doc.series, width, looking, nameOf, choose, note, t });
    const error = errorOf(doc.series, t);
    if (!looking) return [figure, el("p", { class: "figure-note" }, `${t("none")} ${error}`)];
    const { from, shares } = looking;
    const best = shares.indexOf(Math.max(...shares));
    const list = el("select", { "data-keep": "from", onchange: () => choose(list.selectedIndex) },
      shares.map((_, n) => el("option", {}, nameOf(n))));
    list.selectedIndex = from;
    const said = t("most", { from: nameOf(from), to: nameOf(best), share: percent(shares[best]) });
    return [
      el("div", { class: "picks" }, el("label", { class: "pick" }, el("span", {}, t("from")), list)),
      figure, el("p", { class: "figure-note" }, `${said} ${error}`),
    ];
  });
}
