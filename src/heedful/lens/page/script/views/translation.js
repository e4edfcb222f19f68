// What a translation was made from: the words each word looked at, and which word became which.
import { entropy, largest, peak, rowOf, strongest, total } from "../attention/measure.js";
import { crossChoice, picker, weightsOf } from "../attention/selection.js";
import { ink, shade } from "../color.js";
import { cellUnder, clear, dropdown, el, onHover, onKeys, onWidth, set, svg } from "../dom.js";
import { frame, isLarge, paint, SCALES } from "../drawing/map.js";
import { latest } from "../drawing/stage.js";
import { fitted, label, number, percent, resize, visible, widthOf, wrapWords } from "../drawing/text.js";
import { givenVariant } from "../generation/answer.js";

// Cross-attention while translating: what each written word was mixed from, drawn from the row that predicted it.
export const cross = {
  name: "cross", variant: givenVariant, mount: mountCross,
  fits: (doc) => Boolean(doc.written) && doc.attentions.some((attention) => attention.kind === "cross"),
};

function mountCross(root, context) {
  const { doc, state, t } = context;
  const choice = crossChoice(context);
  const source = doc.sequences.source.map((token) => visible(token.text));
  const target = doc.written.map(visible);
  const picture = svg("svg", { role: "img", class: "cross" });
  const sentence = el("p", { class: "readout", "aria-live": "polite" });
  const numbers = el("p", { class: "readout numbers" });
  const note = el("p", { class: "readout aside" });
  const lists = picker(context, choice, (attention, head) => state.set({ attention: attention.id, head }));
  root.append(lists, picture, sentence, numbers, note);
  let width = 0, weights = null, drawing = null, summary = "";

  function draw() {
    if (!width || !weights) return;
    const now = state.get("step");
    const deep = state.get("level") === "deep";
    drawing = crossLinks({ source, target, weights, now, width, deep, look, go: (row) => state.set({ step: row }) });
    resize(clear(picture), width, drawing.height).append(...drawing.nodes);
    note.hidden = drawing.whole;
    note.textContent = t("window");
    update(now, rowOf(weights, now), drawing.drawn);
    light();
  }

  const look = (index) => state.set({ token: index === null ? null : { sequence: "source", index } });

  // A source word looked at, here or in another view.
  function light() {
    if (!drawing) return;
    const token = state.get("token"), now = state.get("step");
    const index = token?.sequence === "source" ? token.index : null;
    drawing.light(index);
    if (index === null) sentence.textContent = summary;
    else sentence.textContent = t("pair", { target: target[now], source: source[index], share: percent(rowOf(weights, now)[index]) });
  }

  function update(now, reads, drawn) {
    const best = strongest(reads, 3).filter((index, rank) => rank === 0 || reads[index] >= 0.1);
    const named = best.map((index) => t("one", { word: source[index], share: percent(reads[index]) })).join(", ");
    summary = t(doc.given ? "told.given" : "told", { word: target[now], best: named });
    set(picture, { "aria-label": t("label", { step: now + 1, word: target[now], best: named }) });
    numbers.hidden = state.get("level") !== "deep";
    const { attention, head } = choice();
    const sum = percent(total(drawn.map((index) => reads[index])));
    const looking = t(head === "mean" ? "meanOf" : "headOf", { layer: attention.layer, head });
    const facts = { head: looking, row: now, entropy: number(entropy(reads), 2), most: number(Math.log2(reads.length), 2) };
    numbers.textContent = t("row", { ...facts, least: percent(LEAST), links: drawn.length, all: reads.length, sum });
  }

  const show = latest((map) => ((weights = map), draw()));
  const load = () => show(weightsOf(context, choice()));
  onWidth(root, (wide) => ((width = wide), draw()));
  state.on(["attention", "head"], load);
  state.on(["step", "level", "language", "theme"], draw);
  state.on(["token"], light);
  load();
}

// Source above, target below, and between them the links of the current step, earlier ones faint.

const LEAST = 0.02; // a link with less weight is not drawn
const MOST = 40; // nor more than so many
const EARLIER = 0.15; // an earlier step shows only its strong links
const FULL = 0.3; // a row whose strongest weight is smaller is drawn as if that were this much
const LONG = 120; // words of both sides: more are written small

// { nodes, height, whole, drawn, light(index) }: `drawn` are the source words linked now; `whole` says whether all
// of the target is shown; `look(index | null)` is told of a source word under the pointer, `go(row)` of a click.
function crossLinks({ source, target, weights, now, width, deep, look, go }) {
  const size = source.length + target.length > LONG ? SIZES.small : SIZES.large;
  const places = wordRows({ source, target, now, width, size });
  const reads = rowOf(weights, now);
  const tones = toned(reads);
  const drawn = strongest(reads, MOST).filter((index) => reads[index] >= LEAST);

  const earlier = (_, row) => {
    if (!places.target[row]) return [];
    const before = rowOf(weights, row);
    const strong = strongest(before, 3).filter((index) => before[index] >= EARLIER);
    return strong.map((index) => link(places, row, index, { "stroke-width": 0.6 + 3 * before[index] }));
  };
  const lines = { fill: "none", "stroke-linecap": "round" };
  const faint = svg("g", { ...lines, stroke: "var(--soft)", opacity: 0.2 }, Array.from({ length: now }, earlier));
  const clear = svg("g", { ...lines, stroke: "var(--accent)" }, drawn.toReversed().map((index) => {
    const look = { "stroke-width": 1 + 8 * tones[index], opacity: 0.35 + 0.6 * tones[index] };
    return link(places, now, index, look, svg("title", {}, `${target[now]} ← ${source[index]}: ${percent(reads[index])}`));
  }));

  const valued = deep && size === SIZES.large;
  const above = source.map((text, index) => {
    const place = places.source[index];
    const word = sourceWord(place, text, tones[index], size);
    word.append(svg("title", {}, `${text}: ${percent(reads[index])}`));
    if (valued) word.append(label(number(reads[index], 2), place.x, place.top - 5, { size: 10, anchor: "middle" }));
    onHover(word, () => look(index), () => look(null));
    return word;
  });
  const below = target.flatMap((text, row) => {
    const place = places.target[row];
    return place ? [targetWord(place, text, row - now, size, () => go(row))] : [];
  });

  function light(marked) {
    above.forEach((word, index) => word.firstChild.setAttribute("stroke", index === marked ? "var(--accent-2)" : "var(--line)"));
  }
  return { nodes: [faint, clear, ...above, ...below], height: places.height, whole: places.target.every(Boolean), drawn, light };
}

// Weights as strengths from 0 to 1: as they are, but scaled up where even the strongest is weak.
function toned(reads) {
  const most = largest(reads);
  const scale = most > 0 && most < FULL ? FULL / most : 1;
  return reads.map((weight) => weight * scale);
}

function link(places, row, index, look, title) {
  const [from, to] = [places.target[row], places.source[index]];
  const bend = Math.max(24, (from.top - to.bottom) * 0.5);
  const d = `M${from.x} ${from.top}C${from.x} ${from.top - bend} ${to.x} ${to.bottom + bend} ${to.x} ${to.bottom}`;
  return svg("path", { d, ...look }, title);
}

function word({ x, left, top, width, bottom }, text, size, box, look) {
  const rect = svg("rect", { x: left, y: top, width, height: bottom - top, rx: 6, "stroke-width": 1.5, ...box });
  return svg("g", {}, rect, label(text, x, bottom - size.foot, { size: size.font, anchor: "middle", ...look }));
}

function sourceWord(place, text, tone, size) {
  const ground = shade(tone);
  const through = size === SIZES.small && tone < 0.05; // links to the lines above stay visible behind it
  const box = { fill: ground, "fill-opacity": through ? 0.25 : 1, stroke: "var(--line)" };
  return word(place, text, size, box, { fill: through ? "var(--ink)" : ink(ground) });
}

// `ahead`: steps from now; what is yet to come is faint.
function targetWord(place, text, ahead, size, choose) {
  const node = ahead === 0 ? word(place, text, size, { fill: "var(--accent)" }, { weight: 600, fill: "var(--paper)" })
    : word(place, text, size, { fill: "var(--paper)", stroke: "var(--line)" }, { fill: "var(--ink)" });
  return set(node, { opacity: ahead > 0 ? 0.35 : 1, style: { cursor: "pointer" }, onclick: choose });
}

// Two blocks of words with their links between them: source lines above, target lines below.

const SIZES = {
  large: { font: 16, foot: 10, box: 31, line: 54, padding: 11, gap: 8, airy: 30, river: 130, first: 18 },
  small: { font: 11, foot: 6, box: 19, line: 24, padding: 5, gap: 3, airy: 3, river: 80, first: 4 },
};
const AROUND = 2; // target lines shown before and after the current one, where there are more than twice as many

const laid = new WeakMap(); // texts → their last layout: steps change often, widths seldom

function lines(texts, width, size) {
  const cached = laid.get(texts);
  if (cached?.width === width && cached.size === size) return cached.layout;
  const layout = wrapWords(texts, width, { ...size, size: size.font });
  const { boxes } = layout, ends = new Map(boxes.map((box) => [box.line, box.x + box.width]));
  // A single line has more air between its words; each line stands in the middle.
  const air = ends.size === 1 ? Math.min(size.airy - size.gap, (width - ends.get(0)) / Math.max(1, boxes.length - 1)) : 0;
  const middle = (line) => (width - ends.get(line) - (boxes.length - 1) * air) / 2;
  boxes.forEach((box, place) => (box.x += place * air + middle(box.line)));
  laid.set(texts, { width, size, layout });
  return layout;
}

// Places { x, left, width, top, bottom } by word; a target word whose line is not shown has none.
function wordRows({ source, target, now, width, size }) {
  const above = lines(source, width, size);
  const below = lines(target, width, size);
  const middle = below.boxes[now].line;
  const far = below.lines > 2 * AROUND + 1;
  const from = far ? Math.max(0, Math.min(middle - AROUND, below.lines - 2 * AROUND - 1)) : 0;
  const nLines = far ? 2 * AROUND + 1 : below.lines;
  const shore = size.first + above.lines * size.line - (size.line - size.box) + size.river;
  const pitch = size.box + size.gap;
  const place = (box, top) => ({ x: box.x + box.width / 2, left: box.x, width: box.width, top, bottom: top + size.box });
  return {
    source: above.boxes.map((box) => place(box, size.first + box.line * size.line)),
    target: below.boxes.map((box) => {
      const line = box.line - from;
      return line < 0 || line >= nLines ? null : place(box, shore + line * pitch);
    }),
    height: shore + nLines * pitch + 2,
  };
}

// Which word became which: a guess made from attention, drawn as pairs and as a map.
export const alignment = {
  name: "alignment", variant: givenVariant, mount: mountAlignment,
  fits: ({ alignment }) => Boolean(alignment?.maps.length && alignment.source.length && alignment.target.length),
};

const SIDE_BY_SIDE = 700; // the width that pairs and map need beside each other
const LEGIBLE = 18; // a map of smaller cells takes the whole width
const GAP = 26;
const LONG_PAIRS = 700; // higher pairs would hide a map below them
const WHOLE = 900; // what is higher scrolls in its box

function mountAlignment(root, context) {
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
    const [upper, lower] = pairs.height > LONG_PAIRS ? [map, pairs] : [pairs, map]; // where they stand one below the other
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
const bestLinks = (weights) => Array.from({ length: weights.shape[0] }, (_, to) => [peak(rowOf(weights, to)), to]);

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
