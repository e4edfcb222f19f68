// The beam tree: what was followed, what was dropped, what won, and how its score was made.
import { clear, el } from "../dom.js";
import { number } from "./figures/text.js";
import { penaltyOf, storyOf, textOf, treeOf, wayTo } from "./generation/branches.js";
import { FATES, sample } from "./generation/marks.js";
import { currentRow, firstRow } from "./generation/rows.js";
import { treePicture } from "./generation/trees.js";
import { tail, visible } from "./generation/words.js";

export const name = "beams";

export const words = {
  en: {
    title: "The paths of beam search",
    simple: "Instead of taking the likeliest word every time, the search follows several sentences at once and drops the weak ones. In each step the best stand on top; the thick line is the answer.",
    deep: "In each step candidates stand by their score: the logprob divided by the length penalty. Move over a node for its numbers; with the keyboard, arrows walk the tree.",
    chosen: "on the way to the answer", kept: "followed for a while", finished: "finished, not the best", pruned: "dropped",
    label: "Beam tree over {steps} steps. {story}", box: "Beam tree: arrow keys walk from node to node",
    upset: "The best first word did not win: “{leader}” stood first, yet “{winner}” won.",
    behind: "The winner did not always lead: at step {step}, with “{word}”, it stood in place {rank}.",
    led: "The answer led at every step.", greedy: "Always taking the likeliest word would have written the same.",
    detour: "Always taking the likeliest word would have written something else.",
    counts: "{pruned} branches were dropped; {ends} reached the end.", countsOne: "{pruned} branches were dropped.",
    lengths: "By probability alone “{text}” would have won; the length penalty decided.",
    text: "Text so far", fate: "What became of it", logprob: "Log probability", score: "Score", nothing: "(nothing yet)",
    penalty: "Length penalty", length: "n: tokens written, α: strength of the penalty", end: "the answer ends",
    rules: "The rules of the search (boosts, repetition penalty) changed the ranked sum to {sum}.",
  },
  ko: {
    title: "빔 탐색이 지나간 길",
    simple: "빔 탐색(beam search)은 그때그때 가장 그럴듯한 낱말만 고르지 않고, 여러 문장을 함께 따라가며 약한 것을 버립니다. 단계마다 위에 있을수록 점수가 높고, 굵은 선이 마지막 답입니다.",
    deep: "단계마다 후보를 점수 순으로 세웠습니다. 점수는 로그 확률을 길이 벌점으로 나눈 값입니다. 마디 위에 포인터를 올리면 값이 보이고, 자판에서는 화살표로 옮겨 다닙니다.",
    chosen: "답으로 이어진 길", kept: "한동안 따라간 것", finished: "끝났지만 뽑히지 않은 것", pruned: "버린 것",
    label: "{steps}단계의 빔 나무. {story}", box: "빔 나무: 화살표로 마디 사이를 옮겨 다닙니다",
    upset: "첫 낱말의 1등이 이기지 못했습니다. 처음에는 “{leader}” 쪽이 앞섰지만 이긴 것은 “{winner}” 쪽입니다.",
    behind: "이긴 길이 늘 앞서지는 않았습니다. {step}단계의 “{word}”에서는 {rank}등이었습니다.",
    led: "답이 된 길은 모든 단계에서 1등이었습니다.", greedy: "매번 가장 그럴듯한 낱말만 골라도 같은 답이 나옵니다.",
    detour: "매번 가장 그럴듯한 낱말만 골랐다면 다른 답이 나왔을 것입니다.",
    counts: "버린 갈래는 {pruned}개, 끝까지 간 갈래는 {ends}개입니다.", countsOne: "버린 갈래는 {pruned}개입니다.",
    lengths: "확률만 보면 “{text}” 쪽이 이겼을 텐데, 길이 벌점이 결과를 바꾸었습니다.",
    text: "지금까지의 글", fate: "어떻게 되었나", logprob: "로그 확률", score: "점수", nothing: "(아직 없음)",
    penalty: "길이 벌점", length: "n: 쓴 토큰 수, α: 벌점의 세기", end: "답의 끝",
    rules: "탐색 규칙(가산점, 반복 벌점) 때문에 순위에 쓰인 합은 {sum}입니다.",
  },
};

export function fits(doc) {
  return Boolean(doc.written && doc.generation?.beam?.nodes.length > 1);
}

export function mount(root, { doc, state, t }) {
  const { beam } = doc.generation;
  const tree = treeOf(beam);
  const last = tree.columns.length - 1;
  const sentence = el("p", { class: "readout story" });
  const box = el("div", { class: "tree", tabindex: 0, role: "region" });
  const legend = el("ul", { class: "fates" });
  const details = el("dl", { class: "hypothesis", "aria-live": "polite" });
  const drawing = treePicture(tree, { choose: (node) => pick(node), watch: (node) => look(node) });
  let selected = null;
  let seen = null; // under the pointer
  root.append(sentence, legend, box, details);
  box.append(drawing.picture);

  const now = () => Math.min(last, Math.max(1, currentRow(doc, state) - firstRow(doc) + 1));
  const facts = storyOf(tree);
  const story = () => told(facts, t);

  function draw() {
    const deep = state.get("level") === "deep";
    const node = seen ?? selected;
    const lit = new Set(wayTo(tree, node).map((one) => one.id));
    const from = box.scrollLeft;
    const name = t("label", { steps: last, story: story() });
    drawing.draw({ from, to: from + box.clientWidth, now: now(), shown: node.id, lit, deep, name });
    detail(node, deep);
  }

  function detail(node, deep) {
    const entry = (key, text, look) => [el("dt", {}, t(key)), el("dd", { class: look }, text)];
    const text = node.step ? tail(textOf(tree, node), 240) : t("nothing");
    clear(details).append(...entry("text", text), ...entry("fate", t(node.fate)));
    if (!deep) return;
    const { value, formula, filled } = penaltyOf(beam, node.step);
    const sum = node.score * value;
    details.append(...entry("logprob", number(node.logprob), "formula"));
    details.append(...entry("penalty", `${formula} = ${filled} = ${number(value)}`, "formula"));
    details.lastChild.append(el("small", {}, t("length")));
    details.append(...entry("score", `logprob / ${formula} = ${number(sum)} / ${number(value)} = ${number(node.score)}`, "formula"));
    if (Math.abs(sum - node.logprob) > 1e-3) details.append(el("dt"), el("dd", {}, t("rules", { sum: number(sum) })));
  }

  function look(node) {
    if (node === seen) return;
    seen = node;
    draw();
  }

  function pick(node) {
    selected = node;
    seen = null;
    state.set({ step: node.step - 1 + firstRow(doc) });
    draw();
  }

  function follow() {
    if (selected?.step !== now()) selected = tree.chosen[now()] ?? tree.columns[now()][0];
    draw();
    const x = drawing.columnAt(now());
    const [left, right] = [box.scrollLeft + 70, box.scrollLeft + box.clientWidth - 180];
    if (x < left || x > right) box.scrollLeft = x - box.clientWidth * 0.4;
  }

  function name() {
    sentence.textContent = story();
    box.setAttribute("aria-label", t("box"));
    clear(legend).append(...FATES.map((fate) => el("li", {}, sample(fate), t(fate))));
    legend.firstChild.after(el("li", {}, sample("chosen", true), t("end")));
    follow();
  }

  const moves = {
    ArrowUp: (column, lane) => column[lane - 1],
    ArrowDown: (column, lane) => column[lane + 1],
    ArrowLeft: () => selected.step > 1 && tree.byId.get(selected.parent),
    ArrowRight: () => tree.children.get(selected.id)[0],
  };
  box.addEventListener("keydown", (event) => {
    if (!(event.key in moves)) return;
    event.preventDefault();
    event.stopPropagation(); // here the arrows walk the tree, not the page's layers
    const column = tree.columns[selected.step];
    const node = moves[event.key](column, column.indexOf(selected));
    if (node) pick(node);
  });
  if (!drawing.whole) box.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  new ResizeObserver(() => draw()).observe(box);
  state.on(["step"], follow);
  state.on(["level", "language"], name);
  name();
}

// What the search did here, from the nodes alone.
function told(story, t) {
  const parts = [];
  const { worst, worstRank: rank } = story;
  if (story.upset) parts.push(t("upset", { leader: visible(story.leader.text), winner: visible(story.first.text) }));
  else parts.push(rank > 1 ? t("behind", { step: worst.step, word: visible(worst.text), rank }) : t("led"));
  parts.push(t(story.greedy ? "greedy" : "detour"));
  if (story.likeliest !== story.winner) parts.push(t("lengths", { text: story.likeliestText }));
  parts.push(t(story.ends > 1 ? "counts" : "countsOne", { pruned: story.pruned, ends: story.ends }));
  return parts.join(" ");
}
