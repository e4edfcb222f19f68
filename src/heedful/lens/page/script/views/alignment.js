// Which word became which: a guess made from attention, drawn as pairs and as a map.
import { largest } from "../attention/measure.js";
import { latest } from "../attention/selection.js";
import { cellUnder, clear, dropdown, el, onHover, onKeys, onWidth, set, svg } from "../dom.js";
import { frame, isLarge, paint, SCALES } from "../drawing/map.js";
import { fitted, label, number, percent, resize, widthOf } from "../drawing/text.js";
import { givenVariant } from "../generation/answer.js";

const SIDE_BY_SIDE = 700; // the width that pairs and map need beside each other
const LEGIBLE = 18; // a map of smaller cells takes the whole width
const GAP = 26;
const LONG = 700; // higher pairs would hide a map below them
const WHOLE = 900; // what is higher scrolls in its box

export const name = "alignment";
export const fits = ({ alignment }) => Boolean(alignment?.maps.length && alignment.source.length && alignment.target.length);
export const variant = givenVariant;

export function mount(root, context) {
  const { doc, state, arrays, t } = context;
  const { source, target, maps, chosen } = doc.alignment;
  const picks = el("div", { class: "picks" });
  const drawing = svg("svg", { role: "img" });
  const box = el("div", { class: "pairs", tabindex: 0, role: "region" }, drawing);
  const sentence = el("p", { class: "readout", "aria-live": "polite" });
  const note = el("p", { class: "readout aside" });
  root.classList.add("attention");
  root.append(picks, box, sentence, note);
  let index = chosen, width = 0, weights = null, parts = [];
  let walked = -1; // the link the keyboard stands at

  const defaultLinks = doc.alignment.links.toSorted((a, b) => a[1] - b[1] || a[0] - b[0]);
  const linksNow = () => (index === chosen ? defaultLinks : bestLinks(weights));

  function draw() {
    if (!width || !weights) return;
    const links = linksNow();
    const beside = width >= SIDE_BY_SIDE && frame(mapSpec({ source, target, weights }), width / 2).cell >= LEGIBLE;
    const room = beside ? width / 2 : width;
    const about = { source, target, links, weights, watch, t };
    const pairs = pairsOf({ ...about, width: beside ? width * 0.46 : width, deep: state.get("level") === "deep" });
    const map = mapOf({ ...about, width: room });
    const [upper, lower] = pairs.height > LONG ? [map, pairs] : [pairs, map]; // where they stand one below the other
    if (beside) map.node.setAttribute("transform", `translate(${width - room} 0)`);
    else lower.node.setAttribute("transform", `translate(0 ${upper.height + GAP})`);
    clear(drawing).append(pairs.node, map.node);
    parts = [pairs, map];
    const height = Math.ceil(beside ? Math.max(pairs.height, map.height) : upper.height + GAP + lower.height);
    resize(drawing, Math.max(width, map.width), height);
    box.style.maxHeight = height <= WHOLE ? "none" : "";
    describe(links);
  }

  function describe(links) {
    const share = ([from, to]) => weights.at(to, from);
    const named = links.slice(0, 30).map(([from, to]) => `${target[to]} ← ${source[from]}`).join(", ");
    set(drawing, { "aria-label": t("label", { source: source.length, target: target.length, pairs: named }) });
    set(box, { "aria-label": t("title") });
    const weakest = links.reduce((low, link) => (share(link) < share(low) ? link : low), links[0]);
    const count = links.filter((link) => share(link) > 0.5).length;
    const about = weakest && { source: source[weakest[0]], target: target[weakest[1]], share: percent(share(weakest)) };
    sentence.textContent = about ? t(links.length > 1 ? "told" : "toldOne", { count, all: target.length, ...about }) : "";
    note.textContent = `${t(index === chosen ? "same" : "other")} ${t("hint")}`;
  }

  // One pair under the pointer, by its words' numbers; null: none.
  function watch(pair) {
    parts.forEach((part) => part.light(pair));
    if (!pair) return describe(linksNow());
    const [from, to] = pair;
    const digits = state.get("level") === "deep" ? number(weights.at(to, from)) : percent(weights.at(to, from));
    sentence.textContent = t("pair", { source: source[from], target: target[to], share: digits });
  }

  function name() {
    const named = ({ layer, head }) => (layer === null ? t("all") : t(head === null ? "layer" : "one", { layer, head }));
    const marked = (map, place) => [place, place === chosen ? t("chosen", { name: named(map) }) : named(map)];
    const choose = (place) => ((index = place), load());
    clear(picks).append(dropdown(t("from"), maps.map(marked), index, choose, "from"));
    draw();
  }

  // With the keyboard: from pair to pair, down the target.
  onKeys(box, (key) => {
    const by = { ArrowUp: -1, ArrowDown: 1 }[key];
    const links = weights && linksNow();
    if (!by || !links?.length) return false;
    walked = Math.min(links.length - 1, Math.max(0, walked + by));
    watch(links[walked]);
    parts[0].reveal(links[walked], box);
  });
  box.addEventListener("blur", () => ((walked = -1), weights && watch(null)));

  const show = latest((map) => ((weights = map), draw()));
  const load = () => show(arrays.get(maps[index].weights));
  onWidth(box, (wide) => ((width = wide), draw()));
  state.on(["level", "language", "theme"], name);
  name();
  load();
}

// Source words on the left, target words on the right, a line for each pair: the thicker, the surer.

const ROW = 30, TOP = 26;

// Each target word with the source word it looks at most: [source, target].
function bestLinks({ shape: [targets, sources], at }) {
  return Array.from({ length: targets }, (_, to) => {
    let best = 0;
    for (let from = 1; from < sources; from += 1) if (at(to, from) > at(to, best)) best = from;
    return [best, to];
  });
}

function pairsOf({ source, target, links, weights, width, watch, deep, t }) {
  const rows = Math.max(source.length, target.length);
  const room = Math.min(150, width * 0.33);
  const wide = (texts, title) => Math.min(room, Math.max(widthOf(title, 12), ...texts.map((text) => widthOf(text, 15, 600))));
  const left = wide(source, t("source")) + 18;
  const right = width - wide(target, t("target")) - 18 - (deep ? 40 : 0);
  const y = (place, count) => TOP + (place + 0.5) * ROW * (rows / count); // both sides are equally high
  const lines = links.map(([from, to]) => {
    const [a, b, middle] = [y(from, source.length), y(to, target.length), (right - left) * 0.45];
    const share = weights.at(to, from);
    const d = `M${left} ${a}C${left + middle} ${a} ${right - middle} ${b} ${right} ${b}`;
    return svg("path", { d, fill: "none", stroke: "var(--accent)", "stroke-width": 1 + 5 * share, "stroke-linecap": "round" });
  });
  const words = (texts, look, pairOf) => texts.map((text, place) => {
    const word = label(fitted(text, room, 15), look.x, y(place, texts.length) + 5, { size: 15, fill: "var(--ink)", ...look });
    word.append(svg("title", {}, text));
    onHover(word, () => watch(pairOf(place)), () => watch(null));
    return word;
  });
  const link = (side) => (place) => links.find((pair) => pair[side] === place) ?? null;
  const sources = words(source, { x: left - 10, anchor: "end" }, link(0));
  const targets = words(target, { x: right + 10 }, link(1));
  const shares = deep && links.map(([from, to]) =>
    label(percent(weights.at(to, from)), width, y(to, target.length) + 4, { size: 11, anchor: "end" }));
  const titles = [label(t("source"), left - 10, 13, { anchor: "end" }), label(t("target"), right + 10, 13)];
  const node = svg("g", {}, titles, lines, sources, targets, shares);

  // The pair looked at stands out; null: all alike.
  function light(pair) {
    const strong = (on, part) => part.setAttribute("opacity", !pair || on ? 1 : 0.25);
    links.forEach(([from, to], place) => strong(from === pair?.[0] && to === pair?.[1], lines[place]));
    sources.forEach((word, place) => strong(pair?.[0] === place, word));
    targets.forEach((word, place) => strong(pair?.[1] === place, word));
  }

  // Scrolls a box so that a pair is seen in it.
  function reveal([, to], box) {
    const [word, frame] = [targets[to].getBoundingClientRect(), box.getBoundingClientRect()];
    if (word.top < frame.top || word.bottom > frame.bottom) box.scrollTop += word.top - (frame.top + frame.bottom) / 2;
  }
  return { node, light, reveal, height: TOP + rows * ROW + 4 };
}

// The weights between words as a map: source words across, target words down, a ring on each link.

function mapSpec({ source, target, weights }) {
  const [rows, columns] = [target, source].map((texts) => texts.map((text) => ({ text })));
  return { rows, columns, hidden: () => false, panels: [{ map: weights, scale: SCALES.weights, most: largest(weights.data) }] };
}

function mapOf({ source, target, links, weights, width, watch }) {
  const spec = mapSpec({ source, target, weights }), sizes = frame(spec, width);
  const { cell, high, across, down, places: [{ x, y }] } = sizes;
  const drawing = svg("svg");
  const [mark] = paint(drawing, spec, sizes);
  const rings = isLarge(spec) ? [] : links.flatMap(([from, to]) => {
    const ring = { cx: x + (from + 0.5) * cell, cy: y + (to + 0.5) * high, r: cell * 0.2, fill: "none", "stroke-width": 2 };
    const looks = [{ stroke: "var(--paper)", "stroke-width": 4 }, { stroke: "var(--accent-2)" }];
    return looks.map((look) => svg("circle", { ...ring, ...look }));
  });
  const ground = svg("rect", {
    x, y, width: across, height: down, fill: "transparent", onpointerleave: () => watch(null),
    onpointermove: (event) => watch(cellUnder(event, ground, target.length, source.length).reverse()),
  });
  drawing.append(...rings, ground);
  const light = (pair) => mark(pair && { key: pair[0], query: pair[1] });
  return { node: svg("g", {}, drawing), light, width: sizes.width, height: sizes.height };
}
