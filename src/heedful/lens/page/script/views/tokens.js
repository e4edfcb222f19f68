// The tokens themselves: point at one to see what it looks at and what looks at it.
import { columnOf, columnSums, largest, peak, rowOf, strongest } from "../attention/measure.js";
import { chosen, crossVariant, sidesOf, tokensOf, weightsOf, writes } from "../attention/selection.js";
import { hue } from "../color.js";
import { clear, el, onKeys, onWidth, set, svg } from "../dom.js";
import { latest } from "../drawing/stage.js";
import { label, resize, short, wrapWords } from "../drawing/text.js";
import { isGiven } from "../generation/answer.js";

export const name = "tokens";
export const fits = (doc) => doc.attentions.length > 0;
export const variant = crossVariant;

export function mount(root, context) {
  const { doc, state, t } = context;
  const story = el("div", { class: "story", "aria-live": "polite" });
  let current = null;
  const follow = () => {
    if (!current) return;
    const active = state.get("token") ?? state.get("pinned");
    const seen = active && lookOf(current, active);
    const view = seen ? focused(current, active, seen) : atRest(current);
    const drawn = chips.show(view);
    const rest = !drawn ? "restShade" : view.some ? "restSome" : "restLinks";
    const lines = seen ? describe(context, current, active, seen, drawn)
      : [el("p", { class: "soft" }, t(rest, { drawn: view.links.length }))];
    clear(story).append(...lines);
  };
  const chips = createChips(context, follow);
  root.classList.add("attention");
  root.append(chips.node, story);

  const draw = latest((weights) => {
    const { attention } = chosen(context);
    current = { weights, attention, doc, received: columnSums(weights) };
    chips.draw(attention);
    follow();
  });
  const load = () => draw(weightsOf(context, chosen(context)));
  state.on(["attention", "head", "language", "level", "theme"], load);
  state.on(["token", "pinned"], follow);
  return load();
}


function describe({ doc, state, t }, { attention, received: sums, weights }, active, { out, into }, drawn) {
  const deep = state.get("level") === "deep", token = tokensOf(doc, active.sequence)[active.index].text;
  const { queries, keys } = sidesOf(doc, attention), cross = writes(doc, attention) ? ".cross" : "";
  const list = (values, sequence) => {
    const named = strongest(values, deep ? 5 : 3).map((place) => {
      const self = sequence === active.sequence && place === active.index;
      const name = self ? t("itself") : t("quote", { text: tokensOf(doc, sequence)[place].text });
      return deep ? `${name} ${values[place].toFixed(4)}` : `${name} (${Math.round(values[place] * 100)}%)`;
    });
    return deep || named.length < 2 ? named.join(", ") : named.slice(0, -1).join(", ") + t("and") + named.at(-1);
  };
  const line = (number, text) => el("p", {}, el("i", { class: "swatch", style: { background: hue(number) } }), text);
  const lines = [];
  if (out) lines.push(line(0, t(`out${cross}`, { token, list: list(out, keys) })));
  else lines.push(line(0, t("outNone", { token })));
  if (into && largest(into) > 0) {
    const evenly = (weights.shape[0] / weights.shape[1]).toFixed(2);
    const gets = deep ? ` ${t("gets", { sum: sums[active.index].toFixed(4), even: evenly })}` : "";
    lines.push(line(1, t(`into${cross}`, { token, list: list(into, queries) }) + gets));
  } else lines.push(line(1, t(into ? "intoLast" : "intoNone", { token })));
  const notes = [];
  const next = active.sequence === "target" && doc.written?.[active.index];
  if (next) notes.push(t(isGiven(doc, active.index) ? "readsGiven" : "reads", { token, next }));
  if (active.sequence === "written") notes.push(t("before", { token, read: doc.sequences.target[active.index].text }));
  const all = Math.max(out ? out.length : 0, into ? into.length : 0);
  if (drawn && all > DRAWN) notes.push(t("some", { drawn: DRAWN }));
  if (notes.length) lines.push(el("p", { class: "soft" }, notes.join(" ")));
  return lines;
}

// What the token view shows: everything about one token, or, at rest, where each token looks most.

const DRAWN = 12, ALL_AT_REST = 40;

/** A token's row as one who looks and column as one looked at; null for a token of another sequence. */
function lookOf({ weights, attention, doc }, { sequence, index }) {
  const { queries, keys } = sidesOf(doc, attention);
  const out = sequence === queries && index < weights.shape[0] ? rowOf(weights, index) : null;
  const into = sequence === keys && index < weights.shape[1] ? columnOf(weights, index) : null;
  return out || into ? { out, into } : null;
}

/** The strongest links from and to one token, and the shares that shade all others. */
function focused({ attention, doc }, active, { out, into }) {
  const { queries, keys } = sidesOf(doc, attention);
  const toward = (sequence, values, linkTo) => {
    if (!values) return { links: [] };
    const most = largest(values);
    const links = strongest(values, DRAWN).map((index) =>
      ({ weight: values[index], share: values[index] / most, ...linkTo({ sequence, index }) }));
    return { sequence, values, most, links };
  };
  const outward = toward(keys, out, (other) => ({ from: active, to: other, side: -1 }));
  const inward = toward(queries, into, (other) => ({ from: other, to: active, side: 1 }));
  return { active, out: outward, into: inward, links: [...outward.links, ...inward.links] };
}

/** Each token's strongest link, of a long input only the strongest of these, and how much each is looked at. */
function atRest({ weights, attention, doc, received }) {
  const { queries, keys } = sidesOf(doc, attention);
  const best = Array.from({ length: weights.shape[0] }, (_, query) => {
    const row = rowOf(weights, query), key = peak(row);
    const from = { sequence: queries, index: query }, to = { sequence: keys, index: key };
    return { from, to, weight: row[key], side: -1 };
  });
  const some = best.length > ALL_AT_REST;
  const strongestLinks = some ? strongest(best.map((item) => item.weight), DRAWN).map((place) => best[place]) : best;
  const most = largest(strongestLinks.map((item) => item.weight));
  const links = strongestLinks.map((item) => ({ ...item, share: (0.5 * item.weight) / most }));
  const into = { sequence: keys, values: received, most: largest(received) };
  return { active: null, links, some, out: null, into };
}

// One drawing of the sequences an attention reads: chips, and curves between them where there is room.

const LINES_FROM = 560;

/** Chips that follow pointer and keyboard: `draw(attention)`, then `show(view)` as often as needed, and when `resized`. */
function createChips({ doc, state, t }, resized) {
  const curves = svg("g"), layer = svg("g");
  const drawing = svg("svg", { role: "group", class: "sentence" }, curves, layer);
  const node = el("div", { class: "sentence-frame" }, drawing); // a long text scrolls within it, and its story stays in sight
  let chipsBySequence = {}, attention = null, withLines = true, drawn = null;

  const tokenOf = (target) => {
    const group = target.closest?.("[data-index]");
    return group && { sequence: group.dataset.sequence, index: Number(group.dataset.index) };
  };
  const pin = (token) => {
    const same = JSON.stringify(state.get("pinned")) === JSON.stringify(token);
    state.set({ pinned: same ? null : token });
  };
  const point = (event) => state.set({ token: tokenOf(event.target) });
  drawing.addEventListener("pointerover", (event) => event.pointerType !== "touch" && point(event));
  drawing.addEventListener("pointerleave", () => state.set({ token: null }));
  drawing.addEventListener("click", (event) => tokenOf(event.target) && pin(tokenOf(event.target)));
  drawing.addEventListener("focusin", (event) => event.target.matches(":focus-visible") && point(event));
  drawing.addEventListener("focusout", () => state.set({ token: null }));
  onKeys(drawing, (key, { target }) => {
    const here = tokenOf(target), step = { ArrowLeft: -1, ArrowRight: 1 }[key];
    const all = Object.values(chipsBySequence).flat();
    if (here && step) all[all.findIndex(({ node: chip }) => chip.contains(target)) + step]?.node.focus();
    else if (here && (key === "Enter" || key === " ")) pin(here);
    else if (here && key === "Escape") state.set({ pinned: null });
    else return false;
  });

  const build = () => {
    const width = node.clientWidth;
    const sequences = sequencesOf(doc, attention);
    const plan = planned(sequences.map((sequence) => tokensOf(doc, sequence)), width);
    withLines = plan.lines;
    let top = plan.arcs;
    chipsBySequence = {};
    clear(layer);
    for (const sequence of sequences) {
      const tokens = tokensOf(doc, sequence), first = top + (plan.left ? 0 : 20);
      const place = placed(tokens, plan.sizes, { ...plan, top: first });
      const caption = plan.left ? first + plan.sizes.height / 2 + 4 : first - 8;
      const called = t(doc.kind === "writing" ? "text" : sequence === "written" && doc.given ? "written.given" : sequence);
      layer.append(label(called, 0, caption));
      chipsBySequence[sequence] = place.boxes.map((box, index) => chip(tokens[index], box, { sequence, index, font: plan.sizes.font }));
      layer.append(...chipsBySequence[sequence].map((item) => item.node));
      top = place.bottom + plan.between;
    }
    set(resize(drawing, width, top - plan.between + plan.arcs, -2), { "aria-label": t("label") });
    Object.values(chipsBySequence)[0][0].node.setAttribute("tabindex", "0");
  };
  onWidth(node, () => {
    if (!attention) return;
    build();
    resized();
  });

  return {
    node,
    /** Chips are set anew only for other sequences or another language. */
    draw(next) {
      const before = drawn;
      attention = next;
      drawn = [...sequencesOf(doc, next), state.get("language")].join();
      if (drawn !== before) build();
    },
    /** Shades every chip and draws the links; says whether links are drawn at this width. */
    show(view) {
      const colors = [hue(0), hue(1)], pinned = state.get("pinned");
      for (const item of Object.values(chipsBySequence).flat()) item.show({ ...view, colors, pinned });
      const boxOf = ({ sequence, index }) => chipsBySequence[sequence][index].box;
      const curve = (item) => link({ ...item, from: boxOf(item.from), to: boxOf(item.to), color: colors[item.side < 0 ? 0 : 1] });
      clear(curves).append(...(withLines ? view.links.map(curve) : []));
      return withLines;
    },
  };
}

/** Keys stand above, queries below. */
function sequencesOf(doc, attention) {
  const { queries, keys } = sidesOf(doc, attention);
  return [...new Set([keys, queries])];
}

/** How large chips are and how far apart: a short sentence is set large, a long one close, a phone has no lines. */
function planned(sequences, width) {
  const lines = width >= LINES_FROM, left = lines ? 64 : 0;
  const within = { left, width: width - 4, top: 0, pitch: 1 };
  const fitting = (font) => Math.max(...sequences.map((tokens) => placed(tokens, chipSizes(font), within).lines));
  const onOneLine = lines && [22, 19, 16, 14].find((font) => fitting(font) === 1);
  const sizes = chipSizes(onOneLine || (fitting(16) > 24 ? 12 : fitting(16) > 8 ? 14 : 16));
  const many = fitting(sizes.font) > 6, two = sequences.length > 1;
  const arcs = !lines || two ? 4 : onOneLine ? 68 : 30;
  return {
    lines, left, width: width - 4, sizes, arcs, between: lines ? 96 : 16,
    pitch: sizes.height + (!lines ? 8 : many ? 18 : 34),
  };
}

// Tokens as chips in lines that wrap like text.

const WITHIN_WORD = 3;

/** Sizes of a chip whose letters are this large. */
function chipSizes(font) {
  return { font, height: Math.round(font * 2.1), inside: font * 0.65, between: Math.round(font * 0.65) };
}

/** A box for every token from `top` on: pieces of one word stand closer together. */
function placed(tokens, { font, height, inside, between }, { left, width, top, pitch }) {
  const isSameWord = (index) => tokens[index].word !== null && tokens[index].word === tokens[index - 1].word;
  const { boxes, lines } = wrapWords(tokens.map(short), width - left, {
    size: font, padding: inside, narrowest: height * 0.85, gapBefore: (index) => (isSameWord(index) ? WITHIN_WORD : between),
  });
  const placedBoxes = boxes.map(({ text, x, width: wide, line }) =>
    ({ name: text, x: left + x, y: top + line * pitch, width: wide, height, middle: left + x + wide / 2 }));
  return { boxes: placedBoxes, lines, bottom: top + (lines - 1) * pitch + height };
}

/** Sets attributes of a shape; what stays as it is costs nothing. */
function sparing(shape) {
  const before = {};
  return (name, value) => {
    if (before[name] !== value) shape.setAttribute(name, (before[name] = value));
  };
}

/** A chip that can show how much it is looked at: its ground for one direction, a bar for the other. */
function chip(token, box, { sequence, index, font }) {
  const { x, y, width, height } = box, shape = { x, y, width, height, rx: height / 4 };
  const ground = svg("rect", { ...shape, class: "ground" });
  const tint = svg("rect", { ...shape, "fill-opacity": 0 });
  const bar = svg("rect", { x: x + 5, y: y + height - 6, width: 0, height: 3, rx: 1.5 });
  const text = svg("text", { x: box.middle, y: y + height / 2 + font * 0.3, "font-size": font, "text-anchor": "middle" }, box.name);
  const node = svg("g", {
    role: "button", tabindex: "-1", "aria-label": token.text,
    "data-sequence": sequence, "data-index": index,
  }, token.part && svg("title", {}, token.piece), ground, tint, bar, text);
  const [putTint, putBar, putNode] = [tint, bar, node].map(sparing);
  const share = (side) => (side?.sequence === sequence && side.most ? side.values[index] / side.most : 0);
  const isThis = (other) => other?.sequence === sequence && other.index === index;
  return {
    node, box,
    /** Text stays readable on the strongest tint. */
    show({ out, into, colors, active, pinned }) {
      putTint("fill", colors[0]);
      putTint("fill-opacity", (0.55 * share(out)).toFixed(2));
      putBar("fill", colors[1]);
      putBar("width", String(Math.round((width - 10) * share(into))));
      putNode("class", `chip${token.special ? " special" : ""}${token.part ? " part" : ""}${isThis(active) ? " active" : ""}`);
      putNode("aria-pressed", String(isThis(pinned)));
    },
  };
}

// Curves between chips: as wide as the weight they stand for.

const WIDEST = 9, ARC = 84;

/** A curve from one chip to another; `side` is -1 to leave above, 1 below, for chips of one line. */
function curve(from, to, side) {
  const shift = side * 4, a = from.middle + shift, b = to.middle + shift;
  if (from.y === to.y) {
    const y = from.y + (side < 0 ? 0 : from.height);
    if (from === to) return `M${a - 9},${y}C${a - 24},${y + side * 46} ${a + 24},${y + side * 46} ${a + 9},${y}`;
    const h = y + side * Math.min(ARC, 18 + Math.abs(a - b) * 0.3);
    return `M${a},${y}C${a},${h} ${b},${h} ${b},${y}`;
  }
  const down = to.y > from.y, start = from.y + (down ? from.height : 0), end = to.y + (down ? 0 : from.height);
  const half = (start + end) / 2;
  return `M${a},${start}C${a},${half} ${b},${half} ${b},${end}`;
}

/** One curve: `share` of the strongest gives its width, `weight` its title. */
function link({ from, to, side, share, color, weight }) {
  const width = Math.max(0.8, WIDEST * share).toFixed(2), strength = (0.25 + 0.6 * share).toFixed(2);
  const look = { fill: "none", stroke: color, "stroke-width": width, "stroke-opacity": strength, "stroke-linecap": "round" };
  return svg("path", { d: curve(from, to, side), ...look }, svg("title", {}, weight.toFixed(4)));
}
