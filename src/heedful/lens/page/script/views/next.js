// What could have come next: the most probable tokens of the current step, and how sure the model was at every step.
import { clear, el, svg } from "../dom.js";
import { brief, fitted, label, number, percent, widthOf } from "./figures/text.js";
import { treeOf } from "./generation/branches.js";
import { certaintyStrip } from "./generation/certainty.js";
import { candidatesOf, entropyOf, fewest, logShare, meaningOf } from "./generation/candidates.js";
import { onWidth, sized } from "./generation/flow.js";
import { currentRow, givenVariant, isGiven } from "./generation/rows.js";
import { fittedEnd, marked, spelled, visible } from "./generation/words.js";

export const name = "next";

export const words = {
  en: {
    title: "What could have come next",
    simple: "Before each word the model weighs all the words it knows. These are the likeliest; the marked one was written. Beside the others stands how the text would read with them, or what the search made of them.",
    deep: "The largest softmax probabilities of the current row. The strip below shows the probability of the written token at every step; choose one to go there.",
    "simple.given": "Before each word the model weighs all the words it knows. These are the likeliest; the marked one was given to it. Beside the others stands how the text would read with them.",
    "deep.given": "The largest softmax probabilities of the current row. The strip below shows the probability of the given token at every step; choose one to go there.",
    log: "Logarithmic bars", written: "written", given: "given", rest: "all others", strip: "Certainty at every step",
    label: "The likeliest next tokens at step {step}; “{word}” was written with {share}",
    "label.given": "The likeliest next tokens at step {step}; “{word}” was given, and has {share}",
    sure: "The model was almost certain of “{word}”.",
    fairly: "The model clearly preferred “{word}”: it was {times} times as likely as the next, “{other}”.",
    open: "The model was undecided: “{other}” was nearly as likely as “{word}”.",
    leaning: "The model leaned towards “{word}”: it was {times} times as likely as “{other}”.",
    against: "“{word}” was not the likeliest here: “{other}” was, with {share}. The search chose it for the sentence as a whole.",
    sampled: "“{word}” was not the likeliest here: “{other}” was, with {share}.",
    prompted: "“{word}” was given. The model expected “{other}” most, with {share}.",
    forced: "It would have had to write “{word}”, probability {own}. It expected “{other}” most, with {share}.", foreseen: "“{word}” was given, and is what the model expected most: {share}.",
    kept: "followed to “{text}”", once: "kept, then dropped", pruned: "dropped by the beam", instead: "“{text}”", part: "part of a letter",
    signs: "␣: a space before the token. ◌: part of a letter. ■: the end.",
    entropy: "entropy of the {count} shown, scaled to sum to 1: {bits} of at most {most} bits · all others: {rest} · surprise of “{word}”: {surprise} bits",
  },
  ko: {
    title: "다음에 올 수 있던 것",
    simple: "모델은 낱말을 쓸 때마다 아는 낱말을 모두 견주어 봅니다. 아래는 그중 가장 그럴듯한 것들이고, 표시된 것이 실제로 쓴 낱말입니다. 다른 것 옆에는 그것을 골랐을 때의 글이나 탐색이 그것을 어떻게 했는지가 있습니다.",
    deep: "지금 행의 소프트맥스 확률 가운데 가장 큰 것들입니다. 아래 띠는 단계마다 실제로 쓴 토큰의 확률이며, 누르면 그 단계로 갑니다.",
    "simple.given": "모델은 낱말을 쓸 때마다 아는 낱말을 모두 견주어 봅니다. 아래는 그중 가장 그럴듯한 것들이고, 표시된 것이 모델에게 주어진 낱말입니다. 다른 것 옆에는 그것을 골랐을 때의 글이 있습니다.",
    "deep.given": "지금 행의 소프트맥스 확률 가운데 가장 큰 것들입니다. 아래 띠는 단계마다 주어진 토큰의 확률이며, 누르면 그 단계로 갑니다.",
    log: "로그 눈금", written: "쓴 것", given: "주어진 것", rest: "그 밖의 모두", strip: "단계마다의 확신",
    label: "{step}단계의 다음 토큰 후보. 쓴 것은 “{word}”, 확률 {share}",
    "label.given": "{step}단계의 다음 토큰 후보. 주어진 것은 “{word}”, 확률 {share}",
    sure: "모델은 “{word}” 하나를 거의 확신했습니다.",
    fairly: "모델은 “{word}” 쪽을 뚜렷이 골랐습니다. 다음 후보 “{other}”보다 {times}배 그럴듯하다고 보았습니다.",
    open: "모델은 망설였습니다. “{other}”도 “{word}”만큼이나 그럴듯했습니다.",
    leaning: "모델은 “{word}” 쪽으로 기울었습니다. “{other}”보다 {times}배 그럴듯하다고 보았습니다.",
    against: "여기서 가장 그럴듯한 것은 “{other}”({share})였습니다. 그래도 탐색은 문장 전체를 보고 “{word}” 쪽을 골랐습니다.",
    sampled: "여기서 가장 그럴듯한 것은 “{other}”({share})였지만, 실제로 쓴 것은 “{word}”입니다.",
    prompted: "“{word}” 부분은 주어진 글입니다. 모델이 가장 그럴듯하게 본 것은 “{other}”({share})입니다.",
    forced: "주어진 것은 “{word}”, 모델이 스스로 썼을 확률은 {own}입니다. 모델이 가장 그럴듯하게 본 것은 “{other}”({share})입니다.", foreseen: "“{word}” 부분은 주어진 글이며, 모델도 이것을 가장 그럴듯하게 보았습니다({share}).",
    kept: "더 따라간 글: “{text}”", once: "남겼다가 버림", pruned: "빔이 버림", instead: "“{text}”", part: "글자의 일부",
    signs: "␣: 토큰 앞의 빈칸. ◌: 글자의 일부. ■: 끝.",
    entropy: "보이는 {count}개를 합이 1이 되게 나눈 엔트로피: {bits}비트 (최대 {most}) · 그 밖의 모두: {rest} · “{word}”의 정보량(surprisal): {surprise}비트",
  },
};

const ROW = 31;
const TALL = 46; // where there is no room beside the bars, the meaning stands below them
const BAR = 16;
const BESIDE = 660;
const FEW = 5; // candidates for a reader who is new

export function fits(doc) {
  return Boolean(doc.written && doc.generation?.steps.some((step) => step.top.length));
}

export const variant = givenVariant;

export function mount(root, context) {
  const { doc, state, t } = context;
  const tree = doc.generation.beam && treeOf(doc.generation.beam);
  const box = el("input", { type: "checkbox" });
  const option = el("label", { class: "option" }, box, el("span", {}));
  const picture = svg("svg", { role: "group", class: "next" });
  const sentence = el("p", { class: "readout", "aria-live": "polite" });
  const numbers = el("p", { class: "readout numbers" });
  const signs = el("p", { class: "readout aside" });
  root.append(option, picture, sentence, numbers, signs);
  const strip = certaintyStrip(context);
  let width = 0;

  function draw() {
    if (!width) return;
    const row = currentRow(doc, state);
    const deep = state.get("level") === "deep";
    const found = candidatesOf(doc, row);
    const { list, written, rest } = found;
    const rows = !deep ? fewest(list, FEW) : rest > 0 ? [...list, { text: null, share: rest }] : list;
    const columns = columnsFor(rows);
    const said = written && t(isGiven(doc, row) ? "label.given" : "label", { step: row + 1, word: visible(written.text), share: percent(written.share) });
    const bars = svg("g", { role: "img", "aria-label": said ?? t("title") });
    rows.forEach((candidate, place) => bars.append(line(candidate, place * columns.pitch, columns, row, deep && box.checked)));
    const foot = rows.length * columns.pitch + 14;
    clear(picture);
    picture.append(bars, strip.draw(width, foot));
    const height = foot + strip.height;
    sized(picture, width, height);
    option.hidden = !deep;
    option.lastChild.textContent = t("log");
    signs.textContent = t("signs");
    tell(row, found, deep);
  }

  function columnsFor(rows) {
    const names = rows.map((candidate) => widthOf(name(candidate), 15, 600));
    const left = Math.min(Math.max(...names, 30) + 26, width * 0.34);
    const wide = width >= BESIDE;
    const right = wide ? width * 0.58 : width;
    return { left, bar: right - left - 62, pitch: wide ? ROW : TALL, meaning: wide ? [right + 14, 18] : [left, 35] };
  }

  const name = ({ text }) => (text === null ? t("rest") : spelled(text));

  function line(candidate, y, { left, bar, meaning }, row, logarithmic) {
    const share = logarithmic ? logShare(candidate.share) : candidate.share;
    const look = { fill: candidate.text === null ? "var(--soft)" : "var(--ink)", weight: candidate.written ? 650 : 400 };
    const group = svg("g", {}, svg("title", {}, `${name(candidate)}: ${number(candidate.share, 4)}`));
    if (candidate.written) group.append(svg("path", { d: `M2 ${y + 8}l7 5.5l-7 5.5z`, fill: "var(--accent)" }));
    group.append(label(marked(fitted(name(candidate), left - 24, 15)), 16, y + 19, { size: 15, ...look }));
    group.append(svg("rect", { x: left, y: y + 5, width: bar, height: BAR, rx: 4, fill: "var(--line)", opacity: 0.45 }));
    const tone = candidate.written ? "var(--accent)" : "var(--soft)";
    const body = { x: left, y: y + 5, width: Math.max(1.5, bar * share), height: BAR, rx: Math.min(4, bar * share), fill: tone };
    group.append(svg("rect", { ...body, opacity: candidate.written ? 1 : 0.55 }));
    group.append(label(percent(candidate.share), left + bar + 8, y + 18, { size: 13, ...look }));
    const [x, down] = meaning;
    if (candidate.text !== null) group.append(label(meant(candidate, row, width - x), x, y + down, { size: 12.5 }));
    return group;
  }

  function meant(candidate, row, room) {
    if (candidate.written) return t(isGiven(doc, row) ? "given" : "written");
    const { key, text } = meaningOf(doc, tree, row, candidate);
    return t(key, { text: fittedEnd(text, room - widthOf(t(key, { text: "" }), 12.5), 12.5) });
  }

  function verdict(row, top, share, times) {
    if (isGiven(doc, row)) return top.written ? "foreseen" : doc.given ? "forced" : "prompted";
    if (!top.written) return tree ? "against" : "sampled";
    if (share >= 0.95) return "sure";
    return times >= 5 ? "fairly" : times >= 1.5 ? "leaning" : "open";
  }

  function tell(row, { list, written, rest }, deep) {
    const other = list.find((candidate) => !candidate.written);
    const top = list[0];
    numbers.hidden = !deep || !written;
    sentence.hidden = !written;
    if (!written) return;
    const times = other ? written.share / other.share : Infinity;
    const key = verdict(row, top, written.share, times);
    const about = { word: visible(written.text), other: visible((top.written ? other ?? written : top).text) };
    sentence.textContent = t(key, { ...about, share: percent(top.share), own: percent(written.share), times: brief(times) });
    const { bits, most } = entropyOf(list);
    const facts = { count: list.length, bits: number(bits, 2), most: number(most, 2), rest: percent(rest) };
    numbers.textContent = t("entropy", { ...facts, word: about.word, surprise: number(-Math.log2(written.share), 2) });
  }

  box.addEventListener("change", draw);
  onWidth(root, (wide) => ((width = wide), draw()));
  state.on(["step", "level", "language", "theme"], draw);
}
