// One layer beside its attention: normalisation, the residual stream, and the feed-forward's neurons.
import { drawn } from "./figures/drawn.js";
import { flow } from "./figures/flow.js";
import { neurons } from "./figures/neurons.js";
import { norms } from "./figures/norms.js";
import { stream } from "./figures/stream.js";
import { brief, percent } from "./figures/text.js";
import { visible } from "./generation/words.js";

export const name = "layer";

export const words = {
  en: {
    title: "The rest of the layer",
    simple: "Around attention: numbers are brought to one measure, every part adds to what was there, and each token thinks on its own.",
    deep: "Normalisation, residual stream and feed-forward of the chosen layer, token by token.",
    attention: "attention", cross_attention: "cross-attention", feed_forward: "feed-forward",
    "norm.title": "Brought to one measure",
    "post.simple": "After each part the numbers are brought to one measure.",
    "pre.simple": "Before each part the numbers are brought to one measure.",
    "layer.simple": "Each token gets mean 0 and deviation 1; learned weights then stretch and move its numbers.",
    "rms.simple": "Each token gets root mean square 1, its mean stays; learned weights then stretch its numbers.",
    "batch.simple": "That is done over the whole batch, not over a token: one token's mean and deviation may lie anywhere.",
    "post.deep": "Post-norm: x ← norm(x + part(x)).",
    "pre.deep": "Pre-norm: x ← x + part(norm(x)).",
    "layer.deep": "LayerNorm: γ·(x − μ)/σ + β; mean 0 and deviation 1 before γ and β are applied.",
    "rms.deep": "RMSNorm: γ·x/√mean(x²); root mean square 1 before γ is applied, and the mean is not moved to 0.",
    "batch.deep": "BatchNorm: γ·(x − μ)/σ + β, with μ and σ of each dimension over the batch (in use: kept from training), not over a token.",
    "other.simple": "", "other.deep": "", rings: "Rings: before. Dots: after.",
    "axes.layer": "across: mean · up: deviation", "axes.rms": "across: mean · up: root mean square",
    "stream.title": "Nothing is replaced, all is added",
    "stream.simple": "Each part's answer is added to the token's vector. The lines show how long the vectors are on the way; the thick one is their mean.",
    "stream.deep": "‖x‖₂ of each token at the entry and after each x + part(x); thick: the mean, {from} → {to}.",
    entry: "entry", length: "length",
    "neurons.title": "Each token on its own",
    "neurons.simple": "The feed-forward asks every token many small questions, one a neuron. On average {zeros} of the neurons stay silent. Strong colour: a clear yes.",
    "neurons.deep": "φ(x·W₁) of the first {shown} neurons (colour: of the layer's largest); right: share of all neurons that are 0 (below 0.01 of the largest without ReLU), mean {zeros}.",
    silent: "silent", neuron: "neuron",
  },
  ko: {
    title: "층의 나머지 부분",
    simple: "어텐션 둘레에서 일어나는 일입니다. 숫자의 크기를 고르게 맞추고, 결과를 더해 나가고, 토큰마다 따로 생각합니다.",
    deep: "고른 층의 정규화, 잔차 연결, 피드포워드를 토큰별로 살펴봅니다.",
    attention: "어텐션", cross_attention: "교차 어텐션", feed_forward: "피드포워드",
    "norm.title": "크기를 고르게",
    "post.simple": "한 부분이 끝날 때마다 숫자의 크기를 맞춥니다.",
    "pre.simple": "각 부분에 들어가기 전에 숫자의 크기를 맞춥니다.",
    "layer.simple": "토큰마다 평균 0, 표준편차 1로 맞춘 뒤 학습된 값으로 늘리고 옮깁니다.",
    "rms.simple": "토큰마다 제곱평균제곱근을 1로 맞춘 뒤 학습된 값으로 늘립니다. 평균은 옮기지 않습니다.",
    "batch.simple": "토큰 하나가 아니라 배치 전체를 기준으로 맞추므로, 한 토큰의 평균과 표준편차는 어디에든 놓일 수 있습니다.",
    "post.deep": "사후 정규화(post-norm): x ← norm(x + part(x)).",
    "pre.deep": "사전 정규화(pre-norm): x ← x + part(norm(x)).",
    "layer.deep": "층 정규화(LayerNorm): γ·(x − μ)/σ + β. γ와 β를 적용하기 전에는 평균 0, 표준편차 1입니다.",
    "rms.deep": "RMS 정규화(RMSNorm): γ·x/√mean(x²). γ를 적용하기 전에는 제곱평균제곱근이 1이며, 평균을 0으로 옮기지 않습니다.",
    "batch.deep": "배치 정규화(BatchNorm): γ·(x − μ)/σ + β. μ와 σ는 토큰이 아니라 배치에 걸쳐 차원마다 구한 값이며, 쓸 때는 학습 때의 값을 씁니다.",
    "other.simple": "", "other.deep": "", rings: "고리는 맞추기 전, 점은 맞춘 뒤입니다.",
    "axes.layer": "가로: 평균 · 세로: 표준편차", "axes.rms": "가로: 평균 · 세로: 제곱평균제곱근",
    "stream.title": "바꾸지 않고 더한다",
    "stream.simple": "부분마다 나온 결과를 토큰의 벡터에 더합니다(잔차 연결). 선은 그때그때 벡터의 길이, 굵은 선은 평균입니다.",
    "stream.deep": "입구와 x + part(x)마다 잰 토큰별 ‖x‖₂. 굵은 선은 평균, {from} → {to}.",
    entry: "입구", length: "길이",
    "neurons.title": "토큰마다 따로",
    "neurons.simple": "피드포워드는 토큰마다 작은 물음을 아주 많이 던집니다. 뉴런 하나가 물음 하나입니다. 평균 {zeros}의 뉴런은 잠잠합니다. 색이 강할수록 크게 반응했습니다.",
    "neurons.deep": "앞쪽 뉴런 {shown}개의 φ(x·W₁) (색은 층의 최댓값 기준). 오른쪽은 전체 뉴런 중 0인 비율(ReLU가 아니면 최댓값의 0.01 미만), 평균 {zeros}.",
    silent: "잠잠함", neuron: "뉴런",
  },
};

export function fits(doc) {
  return doc.layers.length > 0;
}

function layerOf({ doc, state }) {
  const chosen = state.get("layer");
  return doc.layers.find((one) => one.stack === chosen?.stack && one.layer === chosen.layer) ?? doc.layers[0];
}

// The token that is hovered or pinned anywhere stands out here too.
function follow(root, { doc, state }) {
  state.on(["token", "pinned"], () => {
    const chosen = state.get("token") ?? state.get("pinned");
    const index = chosen?.sequence === layerOf({ doc, state }).sequence ? String(chosen.index) : null;
    for (const node of root.querySelectorAll("[data-token]")) node.classList.toggle("picked", node.dataset.token === index);
  });
}

export function mount(root, context) {
  const { doc, arrays, state, t } = context;
  follow(root, context);
  drawn(root, state, ["layer"], async (width, note) => {
    const layer = layerOf(context);
    const read = (id) => (id ? arrays.get(id) : null);
    const pairs = await Promise.all(layer.norms.map(async (norm) => ({
      name: t(norm.name), before: await read(norm.before), after: await read(norm.after),
    })));
    const [residual, hidden, zeros] = await Promise.all([read(layer.residual), read(layer.hidden), read(layer.zeros)]);
    const tokens = doc.sequences[layer.sequence].map((token) => visible(token.text));
    const look = (index) => state.set({ token: index === null ? null : { sequence: layer.sequence, index } });
    const shared = { t, note, tokens, look, deep: state.get("level") === "deep" };
    const level = state.get("level");
    const norm = layer.norm === undefined ? "layer" : layer.norm ?? "other"; // of another make
    const steps = [];
    if (pairs.length) steps.push({
      title: t("norm.title"), draw: (room) => norms(pairs, norm, room, shared),
      text: [`${layer.order}.${level}`, `${norm}.${level}`, "rings"].map((word) => t(word)).join(" "),
    });
    const mean = (part) => brief(tokens.reduce((sum, _, n) => sum + residual.at(n, part), 0) / tokens.length);
    steps.push({
      title: t("stream.title"), text: t(`stream.${level}`, { from: mean(0), to: mean(residual.shape[1] - 1) }),
      draw: (room) => stream(residual, [t("entry"), ...partsOf(layer).map((part) => `+ ${t(part)}`)], room, shared),
    });
    if (hidden) {
      const silent = zeros ? percent(zeros.data.reduce((a, b) => a + b, 0) / zeros.data.length) : "–";
      steps.push({
        title: t("neurons.title"), text: t(`neurons.${level}`, { zeros: silent, shown: hidden.shape[1] }),
        draw: (room) => neurons(hidden, zeros, room, shared),
      });
    }
    return [flow(width, steps, t("title"))];
  });
}

function partsOf(layer) {
  if (layer.norms.length) return layer.norms.map((norm) => norm.name);
  return ["attention", "feed_forward"];
}
