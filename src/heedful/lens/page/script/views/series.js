// The line as the model reads it: patches, what a chosen one looks at, and the forecast, beside the truth where that is known.
import { mean } from "../attention/measure.js";
import { chosen, headName, lookingToken, pin, sharesOf, weightsOf } from "../attention/selection.js";
import { dropdown, el } from "../dom.js";
import { forecastChart } from "../drawing/forecast.js";
import { redrawn } from "../drawing/stage.js";
import { percent } from "../drawing/text.js";

export const name = "series";
export const fits = (doc) => doc.series !== null;
export const variant = ({ series }) => (series.truth ? "truth" : "");

function errorOf({ forecast, truth }, t) {
  if (!truth) return "";
  const pairs = forecast.map((value, n) => [value, truth[n]]).filter(([, real]) => Number.isFinite(real));
  if (!pairs.length) return "";
  const error = mean(pairs.map(([value, real]) => Math.abs(value - real)));
  const size = mean(pairs.map(([, real]) => Math.abs(real)));
  return t("error", { error: Number(error.toPrecision(3)), part: size ? percent(error / size) : "–" });
}

export function mount(root, context) {
  const { doc, state, t } = context;
  const { source } = doc.sequences;
  const first = source.length - doc.series.patches.length; // what stands before the patches is no part of the line
  const nameOf = (place) => t("patch", { n: place, text: source[place + first].text });
  const choose = (place) => pin(context, place + first);

  async function looking() {
    if (!doc.attentions.length) return null;
    const item = chosen(context);
    const token = Math.max(first, lookingToken(context, source.length - 1));
    const { patches: shares, best } = sharesOf(await weightsOf(context, item), token, first);
    return { from: token - first, shares, best: best - first, title: headName(context, item) };
  }

  redrawn(root, state, ["attention", "head", "pinned"], async (width, note) => {
    const look = await looking();
    const named = [doc.series.name, doc.series.column].filter(Boolean).join(" · ");
    const series = { ...doc.series, name: named || t("title") };
    const figure = forecastChart({ series, width, looking: look, nameOf, choose, note, t });
    const error = errorOf(doc.series, t);
    if (!look) return [figure, el("p", { class: "figure-note" }, `${t("none")} ${error}`)];
    const summary = t("most", { from: nameOf(look.from), to: nameOf(look.best), share: percent(look.shares[look.best]) });
    const names = doc.series.patches.map((_, place) => [place, nameOf(place)]);
    return [
      el("div", { class: "picks" }, dropdown(t("from"), names, look.from, choose, "from")),
      figure, el("p", { class: "figure-note" }, `${summary} ${error}`),
    ];
  });
}
