// Cross-attention while translating: what each written word was mixed from, drawn from the row that predicted it.
import { clear, el, svg } from "../dom.js";
import { latest, weightsOf } from "./attention/chosen.js";
import { rowOf, strongest } from "./attention/measure.js";
import { number, percent } from "./figures/text.js";
import { onWidth, sized } from "./generation/flow.js";
import { crossChoice, crossLists } from "./generation/crosschoice.js";
import { LEAST, river } from "./generation/river.js";
import { currentRow, givenVariant } from "./generation/rows.js";
import { visible } from "./generation/words.js";

export const name = "cross";

export const words = {
  en: {
    title: "From source to target",
    simple: "Above stands what the model reads, below what it writes. The lines show from which words it mixed in information to write the marked one: the thicker, the more. It is a view of what was mixed, not an explanation.",
    deep: "Cross-attention: the queries of target row i, which predicts written[i], over the encoder's keys. Weights of a row sum to 1. A view of what was mixed, not an explanation.",
    "simple.given": "Above stands what the model reads, below the answer it was given. The lines show from which words it mixed in information where it would have had to write the marked one: the thicker, the more. It is a view of what was mixed, not an explanation.",
    "told.given": "It would have had to write “{word}” here. It mixed in most from {best}.",
    label: "Cross-attention of step {step}, {word}: most from {best}",
    told: "To write “{word}”, the model mixed in most from {best}.",
    one: "“{word}” ({share})",
    pair: "“{target}” took {share} from “{source}”.",
    row: "{head} · row {row} · entropy {entropy} of at most {most} bits · drawn from {least} up: {links} of {all} links, {sum} of the weight",
    headOf: "layer {layer}, head {head}", meanOf: "layer {layer}, mean of its heads",
    window: "Of the target only the lines around the current step are shown.",
  },
  ko: {
    title: "원문에서 번역문으로",
    simple: "위는 모델이 읽는 원문, 아래는 모델이 쓰는 글입니다. 표시된 낱말을 쓸 때 어느 낱말의 정보를 섞었는지 선으로 보입니다. 굵을수록 많이 섞은 것입니다. 무엇을 섞었는지 보여 줄 뿐, 이유를 설명하지는 않습니다.",
    deep: "교차 어텐션(cross-attention): written[i]를 예측하는 타깃 i행의 쿼리가 인코더의 키를 봅니다. 한 행의 가중치를 모두 더하면 1입니다. 무엇을 섞었는지 보여 줄 뿐, 설명은 아닙니다.",
    "simple.given": "위는 모델이 읽는 원문, 아래는 모델에게 주어진 답입니다. 표시된 낱말 차례에 모델이 어느 낱말의 정보를 섞었는지 선으로 보입니다. 굵을수록 많이 섞은 것입니다. 무엇을 섞었는지 보여 줄 뿐, 이유를 설명하지는 않습니다.",
    "told.given": "주어진 “{word}” 차례에 모델이 가장 많이 섞은 것: {best}",
    label: "{step}단계의 교차 어텐션, {word}: 가장 많이 섞은 것은 {best}",
    told: "“{word}” 차례에 모델이 가장 많이 섞은 것: {best}",
    one: "“{word}” ({share})",
    pair: "“{target}” 차례에 “{source}”에서 {share}만큼 섞었습니다.",
    row: "{head} · {row}행 · 엔트로피 {entropy}비트 (최대 {most}) · {least}부터 그림: 연결 {all}개 중 {links}개, 가중치의 {sum}",
    headOf: "{layer}층 {head}번 헤드", meanOf: "{layer}층 헤드의 평균",
    window: "타깃은 지금 단계 둘레의 줄만 보입니다.",
  },
};

export function fits(doc) {
  return Boolean(doc.written) && doc.attentions.some((attention) => attention.kind === "cross");
}

export const variant = givenVariant;

export function mount(root, context) {
  const { doc, state, t } = context;
  const choice = crossChoice(context);
  const source = doc.sequences.source.map((token) => visible(token.text));
  const target = doc.written.map(visible);
  const picture = svg("svg", { role: "img", class: "cross" });
  const sentence = el("p", { class: "readout", "aria-live": "polite" });
  const numbers = el("p", { class: "readout numbers" });
  const aside = el("p", { class: "readout aside" });
  root.append(crossLists(context, choice), picture, sentence, numbers, aside);
  let width = 0;
  let weights = null;
  let drawing = null;
  let told = "";

  function draw() {
    if (!width || !weights) return;
    const now = currentRow(doc, state);
    const deep = state.get("level") === "deep";
    drawing = river({ source, target, weights, now, width, deep, look, go: (row) => state.set({ step: row }) });
    clear(picture).append(...drawing.nodes);
    sized(picture, width, drawing.height);
    aside.hidden = drawing.whole;
    aside.textContent = t("window");
    tell(now, rowOf(weights, now), drawing.drawn);
    light();
  }

  const look = (index) => state.set({ token: index === null ? null : { sequence: "source", index } });

  // A source word looked at, here or in another view.
  function light() {
    if (!drawing) return;
    const token = state.get("token");
    const index = token?.sequence === "source" ? token.index : null;
    const now = currentRow(doc, state);
    drawing.light(index);
    const share = () => percent(rowOf(weights, now)[index]);
    sentence.textContent = index === null ? told : t("pair", { target: target[now], source: source[index], share: share() });
  }

  function tell(now, reads, drawn) {
    const best = strongest(reads, 3).filter((index, rank) => rank === 0 || reads[index] >= 0.1);
    const named = best.map((index) => t("one", { word: source[index], share: percent(reads[index]) })).join(", ");
    told = t(doc.given ? "told.given" : "told", { word: target[now], best: named });
    picture.setAttribute("aria-label", t("label", { step: now + 1, word: target[now], best: named }));
    numbers.hidden = state.get("level") !== "deep";
    const { attention, head } = choice();
    const sum = drawn.reduce((total, index) => total + reads[index], 0);
    const entropy = reads.reduce((total, p) => total - (p > 0 ? p * Math.log2(p) : 0), 0);
    const looking = t(head === "mean" ? "meanOf" : "headOf", { layer: attention.layer, head });
    const facts = { head: looking, row: now, entropy: number(entropy, 2), most: number(Math.log2(reads.length), 2) };
    numbers.textContent = t("row", { ...facts, least: percent(LEAST), links: drawn.length, all: reads.length, sum: percent(sum) });
  }

  const show = latest((map) => ((weights = map), draw()));
  const load = () => show(weightsOf(context, choice()));
  onWidth(root, (wide) => ((width = wide), draw()));
  state.on(["attention", "head"], load);
  state.on(["step", "level", "language", "theme"], draw);
  state.on(["token"], light);
  load();
}
