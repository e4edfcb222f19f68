// The line as the model reads it: patches, what a chosen one looks at, and the forecast, beside the truth where that is known.
import { el } from "../dom.js";
import { chosen, weightsOf } from "./attention/chosen.js";
import { list, looker, sharesOf } from "./attention/patching.js";
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
    deep: "Context and forecast; below, the patches, coloured by a row of the attention weights.",
    "deep.truth": "Context, forecast and truth; below, the patches, coloured by a row of the attention weights.",
    from: "Looks from", past: "past", forecast: "forecast", truth: "truth", step: "step {n}", patch: "patch {n} ({text})",
    most: "From {from} most goes to {to}: {share}.", error: "Mean error of the forecast: {error} ({part} of the truth).",
    map: "{name}: the line with its patches and the forecast", none: "This model has no attention: only the line and the forecast are shown.",
  },
  ko: {
    ...shared.ko,
    title: "선 위의 어텐션",
    simple: "모델은 지난 값을 조각(패치)으로 나누어 읽고 그 뒤를 이어 갑니다. 조각을 고르면 그 조각이 어디를 보는지 나타납니다.",
    deep: "지난 값과 예측. 아래는 어텐션 가중치 한 줄로 색을 입힌 패치입니다.",
    "deep.truth": "지난 값, 예측, 실제 값. 아래는 어텐션 가중치 한 줄로 색을 입힌 패치입니다.",
    from: "보는 쪽", past: "지난 값", forecast: "예측", truth: "실제", step: "{n}번째", patch: "조각 {n} ({text})",
    most: "{from}에서 가장 많이 보는 곳은 {to}, {share}입니다.", error: "예측의 평균 오차: {error} (실제 값의 {part})",
    map: "{name}: 선과 조각, 예측", none: "이 모델에는 어텐션이 없어 선과 예측만 보여 줍니다.",
  },
};

export function fits(doc) {
  return doc.series !== null;
}

export function variant({ series }) {
  return series.truth ? "truth" : "";
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

export function mount(root, context) {
  const { doc, state, t } = context;
  const { source } = doc.sequences;
  const first = source.length - doc.series.patches.length; // what stands before the patches is no part of the line
  const { from, choose } = looker(context, source.length - 1);
  const nameOf = (place) => t("patch", { n: place, text: source[place + first].text });
  const choosePatch = (place) => choose(place + first);

  async function looking() {
    if (!doc.attentions.length) return null;
    const one = chosen(context);
    const token = Math.max(first, from());
    const { patches: shares, best } = sharesOf(await weightsOf(context, one), token, first);
    return { from: token - first, shares, best: best - first, title: headName(context, one) };
  }

  drawn(root, state, ["attention", "head", "pinned"], async (width, note) => {
    const look = await looking();
    const named = [doc.series.name, doc.series.column].filter(Boolean).join(" · ");
    const series = { ...doc.series, name: named || t("title") };
    const figure = price({ series, width, looking: look, nameOf, choose: choosePatch, note, t });
    const error = errorOf(doc.series, t);
    if (!look) return [figure, el("p", { class: "figure-note" }, `${t("none")} ${error}`)];
    const said = t("most", { from: nameOf(look.from), to: nameOf(look.best), share: percent(look.shares[look.best]) });
    const names = doc.series.patches.map((_, place) => nameOf(place));
    return [
      el("div", { class: "picks" }, list(t("from"), names, look.from, choosePatch, "from")),
      figure, el("p", { class: "figure-note" }, `${said} ${error}`),
    ];
  });
}
