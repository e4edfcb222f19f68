// All heads at a glance: a small map for each, drawn in idle time, so that the page opens at once.
import { clear, el } from "../dom.js";
import { chosen, kindOf, ofKind } from "./attention/chosen.js";
import { createGallery } from "./attention/gallery.js";
import { evenly, habit, largest, shrunk } from "./attention/measure.js";
import { kindTabs } from "./attention/picker.js";
import { raster } from "./attention/raster.js";
import { SCALES } from "./attention/scales.js";
import { crossVariant } from "./attention/sides.js";
import { headName, kindName, shared } from "./attention/words.js";

const SIDE = 48;

export const name = "heads";

export const words = {
  en: {
    ...shared.en,
    title: "All heads at a glance",
    simple: "Every layer has several heads, and each looks in its own way. Choose one to see it large.",
    deep: "Rows of each small map are queries, columns keys; each is scaled to its own largest weight. Below: mean distance |key − query| in tokens, and entropy in bits.",
    "deep.cross": "Rows of each small map are queries, columns keys; each is scaled to its own largest weight. A row is that of the token it predicts; it has read the one before. Below: entropy in bits.",
    label: "Small maps of all heads, {kind}", order: "Order", byPlace: "layer and head", byEntropy: "entropy", byDistance: "distance",
    spread: "spreads|out", near: "looks|nearby", one: "looks at|one token", few: "looks at|a few",
    place: "L{layer} · H{head}", distance: "{value} tokens", entropy: "{value} bits",
    about: "Spreads out: entropy above 85% of what even weights have. Nearby: at most half their distance. One token: at most 1 bit. A few: everything else.",
    shrunk: "The maps are smaller than the input: each dot is the largest weight of those it stands for.",
  },
  ko: {
    ...shared.ko,
    title: "모든 헤드 한눈에 보기",
    simple: "층마다 헤드가 여럿 있고, 헤드마다 보는 방식이 다릅니다. 하나를 고르면 크게 볼 수 있습니다.",
    deep: "작은 지도의 행은 쿼리, 열은 키이며 저마다 가장 큰 가중치에 맞추어 칠했습니다. 아래는 평균 거리 |키 − 쿼리|(토큰)와 엔트로피(비트)입니다.",
    "deep.cross": "작은 지도의 행은 쿼리, 열은 키이며 저마다 가장 큰 가중치에 맞추어 칠했습니다. 한 행은 그 행이 예측하는 토큰의 것이며, 그 앞의 토큰까지 읽었습니다. 아래는 엔트로피(비트)입니다.",
    label: "모든 헤드의 작은 지도, {kind}", order: "정렬", byPlace: "층과 헤드", byEntropy: "엔트로피", byDistance: "거리",
    spread: "고루 봄", near: "가까이 봄", one: "한 토큰만", few: "몇 토큰만",
    place: "{layer}층 · {head}번", distance: "{value}토큰", entropy: "{value}비트",
    about: "고루 봄: 엔트로피가 고른 가중치의 85%를 넘음. 가까이 봄: 거리가 고른 가중치의 절반 이하. 한 토큰만: 1비트 이하. 몇 토큰만: 그 밖의 모두.",
    shrunk: "지도가 입력보다 작습니다. 점 하나는 그 자리에 모인 가중치 가운데 가장 큰 값입니다.",
  },
};

export function fits(doc) {
  return doc.attentions.flatMap((attention) => attention.heads).length > 1;
}

export const variant = crossVariant;

export function mount(root, context) {
  const { doc, state, t } = context;
  const small = new Map();
  const order = el("select", { onchange: () => draw() });
  const sorting = el("label", {}, el("span", {}), order);
  const note = el("p", { class: "soft note" });
  const gallery = createGallery({
    onChoose: ({ attention, head }) => state.set({ attention: attention.id, head }),
    isChosen: ({ attention, head }) => {
      if (attention.id !== chosen(context).attention.id) return "";
      return state.get("head") === "mean" ? "of-mean" : state.get("head") === head ? "chosen" : "";
    },
  });
  root.classList.add("attention");
  root.append(el("div", { class: "picks" }, kindTabs(context), sorting), gallery.node, note);

  let turn = 0, drawn = null;
  const paint = async (cells) => {
    const mine = ++turn;
    for (const cell of cells) {
      if (!small.has(cell.weights)) {
        await idle();
        if (mine !== turn) return;
        small.set(cell.weights, shrunk(await context.arrays.get(cell.weights), SIDE));
        if (mine !== turn) return;
      }
      const map = small.get(cell.weights);
      const hidden = (row, column) => cell.attention.causal && column > row;
      gallery.picture(cell, raster(map, SCALES.weights, largest(map.data), hidden));
    }
  };
  const draw = () => {
    const kind = kindOf(chosen(context).attention), deep = state.get("level") === "deep";
    const cells = cellsOf(context, kind);
    const by = deep ? chosenOrder(order, sorting, t, cells) : "place";
    sorting.hidden = !deep;
    const sorted = by === "place" ? cells : [...cells].sort((a, b) => a[by] - b[by]);
    for (const cell of cells) {
      const place = { layer: cell.attention.layer, head: cell.head };
      cell.caption = by === "place" ? `${t("head")} ${cell.head}` : t("place", place);
    }
    const inLayer = (one) => ({ title: t("layerName", one), cells: cells.filter((cell) => cell.attention === one) });
    const rows = by === "place" ? ofKind(doc, kind).map(inLayer) : [{ title: "", cells: sorted }];
    gallery.draw(rows, t("label", { kind: kindName(context, kind) }));
    const { queries, keys } = cells[0].attention;
    const tokens = Math.max(doc.sequences[queries].length, doc.sequences[keys].length);
    note.textContent = [deep ? t("about") : "", tokens > SIDE ? t("shrunk") : ""].join(" ").trim();
    drawn = kind;
    paint(sorted);
  };
  state.on(["level", "language", "theme"], draw);
  state.on(["attention", "head"], () => {
    if (kindOf(chosen(context).attention) === drawn) gallery.mark();
    else draw();
  });
  draw();
}

function idle() {
  return new Promise((resolve) => {
    if (window.requestIdleCallback) requestIdleCallback(resolve, { timeout: 200 });
    else setTimeout(resolve);
  });
}

/** One cell for each head of a kind, with its words for the reading level. */
function cellsOf(context, kind) {
  const { doc, state, t } = context;
  return ofKind(doc, kind).flatMap((attention) => {
    const even = evenly(doc.sequences[attention.queries].length, doc.sequences[attention.keys].length, attention.causal);
    return attention.heads.map((one, head) => {
      const numbers = [
        one.distance === null ? null : t("distance", { value: one.distance.toFixed(2) }),
        t("entropy", { value: one.entropy.toFixed(2) }),
      ].filter(Boolean);
      const said = t(habit(one, even)).split("|");
      const [lines, joint] = state.get("level") === "deep" ? [numbers, " · "] : [said, " "];
      const label = `${headName(context, { attention, head })}: ${said.join(" ")}, ${numbers.join(", ")}`;
      return { attention, head, weights: one.weights, distance: one.distance, entropy: one.entropy, lines, joint, label };
    });
  });
}

/** Fills the list of orders in the page's language and gives the chosen one. */
function chosenOrder(order, sorting, t, cells) {
  const chosen = order.value || "place";
  const orders = { place: "byPlace", entropy: "byEntropy", ...(cells[0].distance === null ? {} : { distance: "byDistance" }) };
  sorting.firstChild.textContent = t("order");
  clear(order).append(...Object.entries(orders).map(([value, word]) => el("option", { value }, t(word))));
  order.value = chosen in orders ? chosen : "place";
  return order.value;
}
