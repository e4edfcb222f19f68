// The answer as it was written: before, now, later, with a slider that all views follow.
import { el, svg, clear } from "../dom.js";
import { label, number, percent, widthOf } from "./figures/text.js";
import { flow, onWidth, sized } from "./generation/flow.js";
import { player } from "./generation/player.js";
import { currentRow, firstRow, givenVariant, stepAt, textBefore } from "./generation/rows.js";
import { tail, visible } from "./generation/words.js";

export const name = "writing";

export const words = {
  en: {
    title: "Written one token at a time",
    simple: "The model writes one piece at a time, and reads its own words before each new one. Move the slider: what is written stands dark, what is being written now is marked, what comes later is faint. The bar under a word is the probability the model gave it.",
    deep: "Row i of the decoder reads the target up to token i and predicts the next one. The probabilities are the model's own softmax, replayed over the final answer without the rules of the search.",
    "title.given": "Made to write a given answer",
    "simple.given": "This answer was given to the model; a person wrote it. Move the slider: at each step the model has read the text so far, and the bar under a word is the probability with which it would have written that word itself.",
    "deep.given": "Row i of the decoder reads the given target up to token i and predicts the next one. The probabilities are the model's own softmax over a text that it did not write.",
    play: "Play", pause: "Pause", back: "One step back", on: "One step on", slider: "Step of the answer", place: "{step} of {all}",
    label: "The answer while it is written. Step {step} of {all}: {word}",
    now: "Having read “{before}”, the model writes “{word}”. It gave this piece a probability of {share}.",
    opening: "The model begins with “{word}”. It gave this piece a probability of {share}.",
    closing: "After “{before}” the model ends the answer. It gave the end a probability of {share}.",
    given: "“{word}” was given, not written. The model would have expected it with a probability of {share}.",
    "now.given": "After “{before}” it would have had to write “{word}”, probability {share}.",
    "opening.given": "It would have had to begin with “{word}”, probability {share}.",
    "closing.given": "After “{before}” it would have had to end, probability {share}.",
    numbers: "row {row} · p = {p} · log p = {log} · Σ log p so far = {sum} · perplexity so far = {perplexity}",
  },
  ko: {
    title: "한 토큰씩 써 내려가기",
    simple: "모델은 한 번에 한 조각씩 쓰고, 다음 조각을 쓰기 전에 지금까지 쓴 글을 다시 읽습니다. 막대를 움직여 보세요. 이미 쓴 것은 진하게, 지금 쓰는 것은 색으로, 아직 쓰지 않은 것은 흐리게 보입니다. 낱말 아래의 줄은 모델이 그 낱말에 준 확률입니다.",
    deep: "디코더의 i행은 타깃을 i번째 토큰까지 읽고 그다음 토큰을 예측합니다. 확률은 완성된 답을 다시 넣어 구한 모델 자신의 소프트맥스 값이며, 탐색 규칙은 들어 있지 않습니다.",
    "title.given": "주어진 답 따라 쓰기",
    "simple.given": "이 답은 모델이 쓴 것이 아니라 사람이 준 글입니다. 막대를 움직여 보세요. 단계마다 모델은 거기까지의 글을 읽었고, 낱말 아래의 줄은 모델이 그 낱말을 스스로 썼을 확률입니다.",
    "deep.given": "디코더의 i행은 주어진 타깃을 i번째 토큰까지 읽고 그다음 토큰을 예측합니다. 확률은 모델이 쓰지 않은 글에 대해 구한 모델 자신의 소프트맥스 값입니다.",
    play: "재생", pause: "멈춤", back: "한 단계 뒤로", on: "한 단계 앞으로", slider: "답의 단계", place: "{all}단계 중 {step}",
    label: "써 내려가는 답. {all}단계 중 {step}단계: {word}",
    now: "“{before}”까지 읽고 “{word}” 차례입니다. 모델이 이 조각에 준 확률은 {share}입니다.",
    opening: "첫 조각은 “{word}”입니다. 모델이 이 조각에 준 확률은 {share}입니다.",
    closing: "“{before}”까지 쓰고 답을 끝냅니다. 모델이 끝에 준 확률은 {share}입니다.",
    given: "“{word}” 부분은 모델이 쓴 것이 아니라 주어진 글입니다. 모델이 여기에 준 확률은 {share}입니다.",
    "now.given": "“{before}” 다음에 주어진 것은 “{word}”입니다. 모델이 스스로 이 조각을 썼을 확률은 {share}입니다.",
    "opening.given": "주어진 첫 조각은 “{word}”입니다. 모델이 스스로 이렇게 시작했을 확률은 {share}입니다.",
    "closing.given": "주어진 글은 “{before}”에서 끝납니다. 모델이 스스로 여기서 끝냈을 확률은 {share}입니다.",
    numbers: "{row}행 · p = {p} · log p = {log} · 지금까지 Σ log p = {sum} · 지금까지 혼란도(perplexity) = {perplexity}",
  },
};

const LONG = 80; // tokens: more are written smaller
const LARGE = { font: 19, line: 54, box: 32, foot: 25, gap: 3, padding: 7 };
const SMALL = { font: 14, line: 44, box: 25, foot: 19, gap: 2, padding: 5 };

export function fits(doc) {
  return Boolean(doc.written && doc.generation);
}

export const variant = givenVariant;

export function mount(root, context) {
  const { doc, state, t } = context;
  const texts = doc.written.map(visible);
  const picture = svg("svg", { role: "img", class: "writing" });
  const controls = player(context);
  const sentence = el("p", { class: "readout", "aria-live": "polite" });
  const numbers = el("p", { class: "readout numbers" });
  const paper = el("div", { class: "paper" }, picture);
  root.append(controls.node, paper, sentence, numbers);
  const size = texts.length > LONG ? SMALL : LARGE;
  const opening = doc.sequences.target[0].special ? [] : [visible(doc.sequences.target[0].text)]; // read, never written
  let pieces = [];
  let width = 0;

  function lay() {
    if (!width) return;
    const { boxes, lines } = flow([...opening, ...texts], width, { ...size, size: size.font });
    const height = lines * size.line + 4;
    sized(picture, width, height);
    pieces = boxes.slice(opening.length).map((box, row) => piece(box, row));
    clear(picture).append(...opening.map((text) => written(boxes[0], text)), ...pieces.map((made) => made.group));
    paint();
  }

  function piece({ x, width: wide, line }, row) {
    const share = Math.exp(stepAt(doc, row)?.logprob ?? -Infinity);
    const given = row < firstRow(doc);
    const top = line * size.line + 2;
    const y = top + size.box + 4;
    const ground = svg("rect", { x, y: top, width: wide, height: size.box, rx: 6 });
    const text = written({ x, width: wide, line }, texts[row]);
    const stroke = { y1: y, y2: y, "stroke-width": 3, "stroke-linecap": "round" };
    const track = svg("line", { ...stroke, x1: x + 5, x2: x + wide - 5, stroke: "var(--line)" });
    const bar = svg("line", { ...stroke, x1: x + 5, x2: x + 5 + (wide - 10) * share, stroke: "var(--accent)" });
    const narrow = widthOf("99%", 10) > wide;
    const value = label(narrow ? Math.round(100 * share) : percent(share), x + wide / 2, y + 12, { size: 10, anchor: "middle" });
    const title = svg("title", {}, `${texts[row]} · ${percent(share)}`);
    const group = svg("g", { style: { cursor: "pointer" } }, title, ground, text, track, bar, value);
    if (given) track.setAttribute("stroke-dasharray", "1 5");
    group.addEventListener("click", () => state.set({ step: row }));
    return { group, ground, text, track, bar, value, given };
  }

  function written({ x, width: wide, line }, text) {
    return label(text, x + wide / 2, line * size.line + size.foot, { size: size.font, anchor: "middle" });
  }

  // A long answer scrolls in its own box, and the token of the moment stays in sight.
  function follow(row) {
    const y = Number(pieces[row].ground.getAttribute("y"));
    if (y < paper.scrollTop || y > paper.scrollTop + paper.clientHeight - size.line) paper.scrollTop = y - paper.clientHeight / 2;
  }

  function paint() {
    const now = currentRow(doc, state);
    const deep = state.get("level") === "deep";
    pieces.forEach(({ group, ground, text, bar, value, given }, row) => {
      group.setAttribute("opacity", row > now ? 0.32 : 1);
      ground.setAttribute("fill", row === now ? "var(--accent)" : "transparent");
      text.setAttribute("fill", row === now ? "var(--paper)" : given ? "var(--soft)" : "var(--ink)");
      text.setAttribute("font-weight", row === now ? 600 : 400);
      bar.setAttribute("visibility", row > now || given ? "hidden" : "visible");
      value.setAttribute("visibility", row === now || (deep && row < now) ? "visible" : "hidden");
    });
    picture.setAttribute("aria-label", t("label", { step: now + 1, all: texts.length, word: texts[now] }));
    sentence.setAttribute("aria-live", controls.playing() ? "off" : "polite");
    follow(now);
    tell(now, deep);
  }

  function tell(row, deep) {
    const step = stepAt(doc, row);
    const ends = doc.written[row] === "■";
    const before = tail(textBefore(doc, row));
    const key = row < firstRow(doc) ? "given" : ends ? "closing" : before ? "now" : "opening";
    const share = step ? percent(Math.exp(step.logprob)) : "–";
    sentence.textContent = t(doc.given ? `${key}.given` : key, { before, word: texts[row], share });
    numbers.hidden = !deep || !step;
    if (numbers.hidden) return;
    numbers.textContent = t("numbers", { row, ...sums(row), p: number(Math.exp(step.logprob), 4), log: number(step.logprob) });
  }

  function sums(row) {
    let sum = 0;
    const from = Math.min(firstRow(doc), row);
    for (let at = from; at <= row; at += 1) sum += stepAt(doc, at)?.logprob ?? 0;
    return { sum: number(sum), perplexity: number(Math.exp(-sum / (row - from + 1)), 2) };
  }

  onWidth(paper, (wide) => ((width = wide), lay()));
  state.on(["step", "level", "language"], paint);
}
