// Which word became which: a guess made from attention, drawn as pairs and as a map.
import { clear, el, svg } from "../dom.js";
import { latest } from "./attention/chosen.js";
import { number, percent } from "./figures/text.js";
import { onWidth, sized } from "./generation/flow.js";
import { cellSize, mapOf } from "./generation/maps.js";
import { bestLinks, pairsOf } from "./generation/pairs.js";
import { givenVariant } from "./generation/rows.js";

export const name = "alignment";

export const words = {
  en: {
    title: "Which word became which",
    simple: "Each word of the answer is joined to the word of the question it looked at most. This is guessed from attention: it can be wrong, and often is for small words.",
    deep: "Attention of the tokens is summed over each source word and averaged over each target word; a target word is joined to its largest weight. Derived from attention, so it may be wrong; a thin line is a weak guess.",
    "simple.given": "Each word of the given answer is joined to the word of the question that was looked at most where it had to be written. This is guessed from attention: it can be wrong, and often is for small words.",
    from: "Derived from", all: "mean of all heads", layer: "layer {layer}, mean of its heads", one: "layer {layer}, head {head}",
    chosen: "{name} (chosen)", source: "source", target: "target",
    label: "Word alignment of {source} source and {target} target words: {pairs}",
    pair: "“{target}” ← “{source}”: {share} of its attention",
    told: "{count} of {all} words look at their partner with more than half of their attention; the weakest guess is “{target}” ← “{source}” ({share}).",
    toldOne: "The guess is “{target}” ← “{source}” ({share}).",
    hint: "Move over a word or the map to see one pair; with the keyboard, up and down walk the pairs.",
    same: "These links are the ones the document was made with.", other: "Links drawn from this head: each target word with its largest weight.",
  },
  ko: {
    title: "어느 낱말이 어느 낱말이 되었나",
    simple: "답의 낱말마다 가장 많이 본 원문 낱말을 이었습니다. 어텐션에서 짐작한 것이라 틀릴 수 있고, 짧은 낱말에서는 자주 틀립니다.",
    deep: "토큰의 어텐션을 원문 낱말마다 더하고 타깃 낱말마다 평균한 뒤, 타깃 낱말을 가중치가 가장 큰 원문 낱말과 이었습니다. 어텐션에서 끌어낸 정렬(alignment)이라 틀릴 수 있으며, 가는 선일수록 약한 짐작입니다.",
    "simple.given": "주어진 답의 낱말마다, 그 차례에 모델이 가장 많이 본 원문 낱말을 이었습니다. 어텐션에서 짐작한 것이라 틀릴 수 있고, 짧은 낱말에서는 자주 틀립니다.",
    from: "바탕", all: "모든 헤드의 평균", layer: "{layer}층 헤드의 평균", one: "{layer}층 {head}번 헤드",
    chosen: "{name} (고른 것)", source: "원문", target: "번역문",
    label: "원문 {source}낱말과 번역문 {target}낱말의 정렬: {pairs}",
    pair: "“{target}” ← “{source}”: 어텐션의 {share}",
    told: "낱말 {all}개 중 {count}개는 짝을 절반 넘게 봅니다. 가장 약한 짐작은 “{target}” ← “{source}” ({share})입니다.",
    toldOne: "짐작은 “{target}” ← “{source}” ({share})입니다.",
    hint: "낱말이나 지도 위에 포인터를 올리면 한 쌍의 값이 보이고, 자판에서는 위아래 화살표로 옮겨 다닙니다.",
    same: "문서를 만들 때 정한 연결입니다.", other: "이 헤드에서 새로 이은 것: 타깃 낱말마다 가중치가 가장 큰 원문 낱말입니다.",
  },
};

const SIDE_BY_SIDE = 700; // the width that pairs and map need beside each other
const LEGIBLE = 18; // a map of smaller cells takes the whole width
const GAP = 26;
const LONG = 700; // higher pairs would hide a map below them
const WHOLE = 900; // what is higher scrolls in its box

export function fits(doc) {
  return Boolean(doc.alignment?.maps.length && doc.alignment.source.length && doc.alignment.target.length);
}

export const variant = givenVariant;

export function mount(root, context) {
  const { doc, state, arrays, t } = context;
  const { source, target, maps, chosen } = doc.alignment;
  const select = el("select", {});
  const picked = el("label", { class: "pick" }, el("span", {}), select);
  const box = el("div", { class: "pairs", tabindex: 0, role: "region" });
  const picture = svg("svg", { role: "img" });
  const sentence = el("p", { class: "readout", "aria-live": "polite" });
  const aside = el("p", { class: "readout aside" });
  box.append(picture);
  root.append(el("div", { class: "picks" }, picked), box, sentence, aside);
  let index = chosen;
  let width = 0;
  let weights = null;
  let parts = [];
  let walked = -1; // the link the keyboard stands at

  const given = doc.alignment.links.toSorted((a, b) => a[1] - b[1] || a[0] - b[0]);
  const linksNow = () => (index === chosen ? given : bestLinks(weights));

  function draw() {
    if (!width || !weights) return;
    const links = linksNow();
    const half = width * 0.5;
    const beside = width >= SIDE_BY_SIDE && cellSize({ source, target, width: half }).cell >= LEGIBLE;
    const deep = state.get("level") === "deep";
    const room = beside ? half : width;
    const about = { source, target, links, weights, watch, t };
    const pairs = pairsOf({ ...about, width: beside ? width * 0.46 : width, deep });
    const map = mapOf({ ...about, width: room });
    const [upper, lower] = pairs.height > LONG ? [map, pairs] : [pairs, map]; // where they stand one below the other
    if (beside) map.node.setAttribute("transform", `translate(${width - room} 0)`);
    else lower.node.setAttribute("transform", `translate(0 ${upper.height + GAP})`);
    clear(picture).append(pairs.node, map.node);
    parts = [pairs, map];
    const height = Math.ceil(beside ? Math.max(pairs.height, map.height) : upper.height + GAP + lower.height);
    sized(picture, Math.max(width, map.width), height);
    box.style.maxHeight = height <= WHOLE ? "none" : "";
    tell(links);
  }

  function tell(links) {
    const share = ([from, to]) => weights.at(to, from);
    const named = links.slice(0, 30).map(([from, to]) => `${target[to]} ← ${source[from]}`).join(", ");
    picture.setAttribute("aria-label", t("label", { source: source.length, target: target.length, pairs: named }));
    box.setAttribute("aria-label", t("title"));
    const weakest = links.reduce((low, link) => (share(link) < share(low) ? link : low), links[0]);
    const count = links.filter((link) => share(link) > 0.5).length;
    const about = weakest && { source: source[weakest[0]], target: target[weakest[1]], share: percent(share(weakest)) };
    sentence.textContent = about ? t(links.length > 1 ? "told" : "toldOne", { count, all: target.length, ...about }) : "";
    aside.textContent = `${t(index === chosen ? "same" : "other")} ${t("hint")}`;
  }

  // One pair under the pointer, by its words' numbers; null: none.
  function watch(pair) {
    parts.forEach((part) => part.light(pair));
    if (!pair) return tell(linksNow());
    const [from, to] = pair;
    const digits = state.get("level") === "deep" ? number(weights.at(to, from)) : percent(weights.at(to, from));
    sentence.textContent = t("pair", { source: source[from], target: target[to], share: digits });
  }

  function name() {
    const named = ({ layer, head }) => (layer === null ? t("all") : t(head === null ? "layer" : "one", { layer, head }));
    picked.firstChild.textContent = t("from");
    const marked = (map, place) => (place === chosen ? t("chosen", { name: named(map) }) : named(map));
    clear(select).append(...maps.map((map, place) => el("option", { value: place }, marked(map, place))));
    select.value = String(index);
    draw();
  }

  // With the keyboard: from pair to pair, down the target.
  box.addEventListener("keydown", (event) => {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const links = weights && linksNow();
    if (!by || !links?.length) return;
    event.preventDefault();
    event.stopPropagation(); // here they walk the pairs, not the page's layers
    walked = Math.min(links.length - 1, Math.max(0, walked + by));
    watch(links[walked]);
    parts[0].reveal(links[walked], box);
  });
  box.addEventListener("blur", () => ((walked = -1), weights && watch(null)));

  const show = latest((map) => ((weights = map), draw()));
  const load = () => show(arrays.get(maps[index].weights));
  select.addEventListener("change", () => ((index = Number(select.value)), load()));
  onWidth(box, (wide) => ((width = wide), draw()));
  state.on(["level", "language", "theme"], name);
  name();
  load();
}
