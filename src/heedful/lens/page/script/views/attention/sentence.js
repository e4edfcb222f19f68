// One drawing of the sequences an attention reads: chips, and curves between them where there is room.
import { hue } from "../../colour.js";
import { clear, el, svg } from "../../dom.js";
import { chip, chipSizes, placed } from "./chips.js";
import { resize } from "./labels.js";
import { link } from "./links.js";
import { sidesOf, tokensOf } from "./sides.js";

const LINES_FROM = 560;

/** Chips that follow pointer and keyboard: `draw(attention)`, then `show(view)` as often as needed. */
export function createChips({ doc, state, t }) {
  const curves = svg("g", {}), layer = svg("g", {});
  const drawing = svg("svg", { role: "group", class: "sentence" }, curves, layer);
  const node = el("div", { class: "sentence-frame" }, drawing); // a long text scrolls within it, and its story stays in sight
  let shown = {}, attention = null, withLines = true, seenWidth = 0, spoken = null, resized = () => {};

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
  drawing.addEventListener("keydown", (event) => {
    const here = tokenOf(event.target), step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!here || event.ctrlKey || event.metaKey || event.altKey) return;
    if (step) neighbour(here, step)?.focus();
    else if (event.key === "Enter" || event.key === " ") pin(here);
    else if (event.key === "Escape") state.set({ pinned: null });
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  const neighbour = ({ sequence, index }, step) => {
    const order = Object.values(shown).flat(), at = order.indexOf(shown[sequence][index]) + step;
    return order[at]?.node;
  };

  const build = () => {
    seenWidth = node.clientWidth;
    const plan = planned(sequencesOf(doc, attention).map((sequence) => tokensOf(doc, sequence)), seenWidth);
    withLines = plan.lines;
    let top = plan.above;
    shown = {};
    clear(layer);
    for (const sequence of sequencesOf(doc, attention)) {
      const tokens = tokensOf(doc, sequence), first = top + (plan.left ? 0 : 20);
      const place = placed(tokens, plan.sizes, { ...plan, top: first });
      const caption = plan.left ? first + plan.sizes.height / 2 + 4 : first - 8;
      const called = t(doc.kind === "writing" ? "text" : sequence === "written" && doc.given ? "written.given" : sequence);
      layer.append(svg("text", { x: 0, y: caption, "font-size": 12, class: "quiet" }, called));
      shown[sequence] = place.boxes.map((box, index) => chip(tokens[index], box, { sequence, index, font: plan.sizes.font }));
      layer.append(...shown[sequence].map((one) => one.node));
      top = place.bottom + plan.between;
    }
    const height = top - plan.between + plan.below;
    resize(drawing, seenWidth, height, -2);
    drawing.setAttribute("aria-label", t("label"));
    Object.values(shown)[0][0].node.setAttribute("tabindex", "0");
  };
  new ResizeObserver(() => {
    if (!attention || !node.clientWidth || node.clientWidth === seenWidth) return;
    build();
    resized();
  }).observe(node);

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
      const colours = [hue(0), hue(1)], pinned = state.get("pinned");
      const is = (token, sequence, index) => token?.sequence === sequence && token.index === index;
      for (const [sequence, chips] of Object.entries(shown)) {
        chips.forEach((one, index) =>
          one.show({
            out: share(out, sequence, index), into: share(into, sequence, index), colours,
            active: is(active, sequence, index), pinned: is(pinned, sequence, index),
          }),
        );
      }
      const boxOf = ({ sequence, index }) => shown[sequence][index].box;
      clear(curves);
      const colourOf = ({ side }) => colours[side < 0 ? 0 : 1];
      const drawn = (one) => link({ ...one, from: boxOf(one.from), to: boxOf(one.to), colour: colourOf(one) });
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
