// One drawing of the sequences an attention reads: chips, and curves between them where there is room.
import { sidesOf, tokensOf } from "./selection.js";
import { hue } from "../color.js";
import { clear, el, onKeys, onWidth, svg } from "../dom.js";
import { resize, short, widthOf } from "../drawing/text.js";

const LINES_FROM = 560;

/** Chips that follow pointer and keyboard: `draw(attention)`, then `show(view)` as often as needed. */
export function createChips({ doc, state, t }) {
  const curves = svg("g", {}), layer = svg("g", {});
  const drawing = svg("svg", { role: "group", class: "sentence" }, curves, layer);
  const node = el("div", { class: "sentence-frame" }, drawing); // a long text scrolls within it, and its story stays in sight
  let chipsBySequence = {}, attention = null, withLines = true, spoken = null, resized = () => {};

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
    if (here && step) neighbor(here, step)?.focus();
    else if (here && (key === "Enter" || key === " ")) pin(here);
    else if (here && key === "Escape") state.set({ pinned: null });
    else return false;
  });
  const neighbor = ({ sequence, index }, step) => {
    const order = Object.values(chipsBySequence).flat(), at = order.indexOf(chipsBySequence[sequence][index]) + step;
    return order[at]?.node;
  };

  const build = () => {
    const width = node.clientWidth;
    const plan = planned(sequencesOf(doc, attention).map((sequence) => tokensOf(doc, sequence)), width);
    withLines = plan.lines;
    let top = plan.above;
    chipsBySequence = {};
    clear(layer);
    for (const sequence of sequencesOf(doc, attention)) {
      const tokens = tokensOf(doc, sequence), first = top + (plan.left ? 0 : 20);
      const place = placed(tokens, plan.sizes, { ...plan, top: first });
      const caption = plan.left ? first + plan.sizes.height / 2 + 4 : first - 8;
      const called = t(doc.kind === "writing" ? "text" : sequence === "written" && doc.given ? "written.given" : sequence);
      layer.append(svg("text", { x: 0, y: caption, "font-size": 12, class: "quiet" }, called));
      chipsBySequence[sequence] = place.boxes.map((box, index) => chip(tokens[index], box, { sequence, index, font: plan.sizes.font }));
      layer.append(...chipsBySequence[sequence].map((item) => item.node));
      top = place.bottom + plan.between;
    }
    const height = top - plan.between + plan.below;
    resize(drawing, width, height, -2);
    drawing.setAttribute("aria-label", t("label"));
    Object.values(chipsBySequence)[0][0].node.setAttribute("tabindex", "0");
  };
  onWidth(node, () => {
    if (!attention) return;
    build();
    resized();
  });

  const share = (side, sequence, index) => (side?.sequence === sequence && side.most ? side.values[index] / side.most : 0);
  return {
    node,
    onResize: (callback) => (resized = callback),
    /** Chips are set anew only for other sequences or another language. */
    draw(next) {
      const before = attention && sequencesOf(doc, attention).join(), language = state.get("language");
      attention = next;
      if (before === sequencesOf(doc, next).join() && language === spoken) return;
      spoken = language;
      build();
    },
    /** Shades every chip and draws the links; says whether links are drawn at this width. */
    show({ active, links, out, into }) {
      const colors = [hue(0), hue(1)], pinned = state.get("pinned");
      const is = (token, sequence, index) => token?.sequence === sequence && token.index === index;
      for (const [sequence, chips] of Object.entries(chipsBySequence)) {
        chips.forEach((item, index) =>
          item.show({
            out: share(out, sequence, index), into: share(into, sequence, index), colors,
            active: is(active, sequence, index), pinned: is(pinned, sequence, index),
          }),
        );
      }
      const boxOf = ({ sequence, index }) => chipsBySequence[sequence][index].box;
      clear(curves);
      const colorOf = ({ side }) => colors[side < 0 ? 0 : 1];
      const drawn = (item) => link({ ...item, from: boxOf(item.from), to: boxOf(item.to), color: colorOf(item) });
      if (withLines) curves.append(...links.map(drawn));
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
    lines, left, width: width - 4, sizes, above: arcs, below: arcs, between: lines ? 96 : 16,
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
export function placed(tokens, sizes, { left, width, top, pitch }) {
  const boxes = [];
  let x = left, line = 0;
  tokens.forEach((token, index) => {
    const name = short(token), wide = Math.max(sizes.height * 0.85, widthOf(name, sizes.font) + 2 * sizes.inside);
    const isSameWord = index > 0 && token.word !== null && token.word === tokens[index - 1].word;
    const gap = index === 0 ? 0 : isSameWord ? WITHIN_WORD : sizes.between;
    if (x > left && x + gap + wide > width) {
      x = left;
      line++;
    } else x += gap;
    boxes.push({ name, x, y: top + line * pitch, width: wide, height: sizes.height, middle: x + wide / 2 });
    x += wide;
  });
  return { boxes, lines: line + 1, bottom: top + line * pitch + sizes.height };
}

/** Sets attributes of a shape; what stays as it is costs nothing. */
function sparing(shape) {
  const before = {};
  return (name, value) => {
    if (before[name] !== value) shape.setAttribute(name, (before[name] = value));
  };
}

/** A chip that can show how much it is looked at: its ground for one direction, a bar for the other. */
export function chip(token, box, { sequence, index, font }) {
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
  return {
    node, box,
    /** Shares from 0 to 1; text stays readable on the strongest tint. */
    show({ out, into, colors, active, pinned }) {
      putTint("fill", colors[0]);
      putTint("fill-opacity", (0.55 * out).toFixed(2));
      putBar("fill", colors[1]);
      putBar("width", String(Math.round((width - 10) * into)));
      putNode("class", `chip${token.special ? " special" : ""}${token.part ? " part" : ""}${active ? " active" : ""}`);
      putNode("aria-pressed", String(pinned));
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
export function link({ from, to, side, share, color, weight }) {
  const width = Math.max(0.8, WIDEST * share).toFixed(2), strength = (0.25 + 0.6 * share).toFixed(2);
  return svg(
    "path",
    { d: curve(from, to, side), fill: "none", stroke: color, "stroke-width": width, "stroke-opacity": strength, "stroke-linecap": "round" },
    svg("title", {}, weight.toFixed(4)),
  );
}
