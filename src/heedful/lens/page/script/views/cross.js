// Cross-attention while translating: what each written word was mixed from, drawn from the row that predicted it.
import { entropy, largest, rowOf, strongest, total } from "../attention/measure.js";
import { crossChoice, picker, weightsOf } from "../attention/selection.js";
import { ink, shade } from "../color.js";
import { clear, el, onHover, onWidth, set, svg } from "../dom.js";
import { latest } from "../drawing/stage.js";
import { label, number, percent, resize, visible, wrapWords } from "../drawing/text.js";
import { currentRow, givenVariant } from "../generation/answer.js";

export const name = "cross";
export const fits = (doc) => Boolean(doc.written) && doc.attentions.some((attention) => attention.kind === "cross");
export const variant = givenVariant;

export function mount(root, context) {
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
    const now = currentRow(doc, state);
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
    const token = state.get("token"), now = currentRow(doc, state);
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
    const before = rowOf(weights, row);
    const strong = places.target[row] ? strongest(before, 3).filter((index) => before[index] >= EARLIER) : [];
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

function word(place, text, size, box, look) {
  const rect = svg("rect", { x: place.left, y: place.top, width: place.width, height: place.bottom - place.top, rx: 6, ...box });
  const middle = { x: place.x, y: place.bottom - size.foot, "text-anchor": "middle", "font-size": size.font };
  return svg("g", {}, rect, svg("text", { ...middle, ...look }, text));
}

function sourceWord(place, text, tone, size) {
  const ground = shade(tone);
  const through = size === SIZES.small && tone < 0.05; // links to the lines above stay visible behind it
  const box = { fill: ground, "fill-opacity": through ? 0.25 : 1, stroke: "var(--line)", "stroke-width": 1.5 };
  return word(place, text, size, box, { fill: through ? "var(--ink)" : ink(ground) });
}

// `ahead`: steps from now; what is yet to come is faint.
function targetWord(place, text, ahead, size, choose) {
  const now = ahead === 0;
  const box = now ? { fill: "var(--accent)" } : { fill: "var(--paper)", stroke: "var(--line)", "stroke-width": 1.5 };
  const node = word(place, text, size, box, { "font-weight": now ? 600 : 400, fill: now ? "var(--paper)" : "var(--ink)" });
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
