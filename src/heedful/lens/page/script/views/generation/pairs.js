// Source words on the left, target words on the right, a line for each pair: the thicker, the surer.
import { svg } from "../../dom.js";
import { fitted, label, percent, widthOf } from "../figures/text.js";

const ROW = 30;
const TOP = 26;

// Each target word with the source word it looks at most: [source, target].
export function bestLinks({ shape: [targets, sources], at }) {
  return Array.from({ length: targets }, (_, to) => {
    let best = 0;
    for (let from = 1; from < sources; from += 1) if (at(to, from) > at(to, best)) best = from;
    return [best, to];
  });
}

export function pairsOf({ source, target, links, weights, width, watch, deep, t }) {
  const rows = Math.max(source.length, target.length);
  const room = Math.min(150, width * 0.33);
  const wide = (texts) => Math.min(room, Math.max(...texts.map((text) => widthOf(text, 15, 600))));
  const left = wide(source) + 18;
  const right = width - wide(target) - 18 - (deep ? 40 : 0);
  const y = (place, count) => TOP + (place + 0.5) * ROW * (rows / count); // both sides are equally high
  const node = svg("g");
  const lines = links.map(([from, to]) => {
    const [a, b, middle] = [y(from, source.length), y(to, target.length), (right - left) * 0.45];
    const share = weights.at(to, from);
    const d = `M${left} ${a}C${left + middle} ${a} ${right - middle} ${b} ${right} ${b}`;
    return svg("path", { d, fill: "none", stroke: "var(--accent)", "stroke-width": 1 + 5 * share, "stroke-linecap": "round" });
  });
  const words = (texts, look, pairOf) => texts.map((text, place) => {
    const word = label(fitted(text, room, 15), look.x, y(place, texts.length) + 5, { size: 15, fill: "var(--ink)", ...look });
    word.append(svg("title", {}, text));
    word.addEventListener("pointerenter", () => watch(pairOf(place)));
    word.addEventListener("pointerleave", () => watch(null));
    return word;
  });
  const link = (side) => (place) => links.find((pair) => pair[side] === place) ?? null;
  const sources = words(source, { x: left - 10, anchor: "end" }, link(0));
  const targets = words(target, { x: right + 10 }, link(1));
  node.append(label(t("source"), left - 10, 13, { anchor: "end" }), label(t("target"), right + 10, 13));
  node.append(...lines, ...sources, ...targets);
  if (deep) {
    for (const [from, to] of links) {
      node.append(label(percent(weights.at(to, from)), width, y(to, target.length) + 4, { size: 11, anchor: "end" }));
    }
  }

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
