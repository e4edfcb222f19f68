// Source above, target below, and between them the links of the current step, earlier ones faint.
import { ink, shade } from "../../colour.js";
import { svg } from "../../dom.js";
import { rowOf, strongest } from "../attention/measure.js";
import { label, number, percent } from "../figures/text.js";
import { SIZES, banks } from "./banks.js";

export const LEAST = 0.02; // a link with less weight is not drawn
const MOST = 40; // nor more than so many
const EARLIER = 0.15; // an earlier step shows only its strong links
const FULL = 0.3; // a row whose strongest weight is smaller is drawn as if that were this much
const LONG = 120; // words of both sides: more are written small

// { nodes, height, whole, drawn, light(index) }: `drawn` are the source words linked now; `whole` says whether all
// of the target is shown; `look(index | null)` is told of a source word under the pointer, `go(row)` of a click.
export function river({ source, target, weights, now, width, deep, look, go }) {
  const size = source.length + target.length > LONG ? SIZES.small : SIZES.large;
  const places = banks({ source, target, now, width, size });
  const reads = rowOf(weights, now);
  const tones = toned(reads);
  const drawn = strongest(reads, MOST).filter((index) => reads[index] >= LEAST);

  const faint = svg("g", { fill: "none", stroke: "var(--soft)", opacity: 0.2, "stroke-linecap": "round" });
  for (let row = 0; row < now; row += 1) {
    const before = rowOf(weights, row);
    const strong = places.target[row] ? strongest(before, 3).filter((index) => before[index] >= EARLIER) : [];
    faint.append(...strong.map((index) => link(places, row, index, { "stroke-width": 0.6 + 3 * before[index] })));
  }
  const clear = svg("g", { fill: "none", stroke: "var(--accent)", "stroke-linecap": "round" });
  for (const index of drawn.toReversed()) {
    const line = link(places, now, index, { "stroke-width": 1 + 8 * tones[index], opacity: 0.35 + 0.6 * tones[index] });
    line.append(svg("title", {}, `${target[now]} ← ${source[index]}: ${percent(reads[index])}`));
    clear.append(line);
  }

  const valued = deep && size === SIZES.large;
  const above = source.map((text, index) => {
    const place = places.source[index];
    const word = sourceWord(place, text, tones[index], size);
    word.append(svg("title", {}, `${text}: ${percent(reads[index])}`));
    if (valued) word.append(label(number(reads[index], 2), place.x, place.top - 5, { size: 10, anchor: "middle" }));
    word.addEventListener("pointerenter", () => look(index));
    word.addEventListener("pointerleave", () => look(null));
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
  const most = strongest(reads, 1).map((index) => reads[index])[0] ?? 0;
  const scale = most > 0 && most < FULL ? FULL / most : 1;
  return reads.map((weight) => weight * scale);
}

function link(places, row, index, look) {
  const [from, to] = [places.target[row], places.source[index]];
  const bend = Math.max(24, (from.top - to.bottom) * 0.5);
  const d = `M${from.x} ${from.top}C${from.x} ${from.top - bend} ${to.x} ${to.bottom + bend} ${to.x} ${to.bottom}`;
  return svg("path", { d, ...look });
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
  node.setAttribute("opacity", ahead > 0 ? 0.35 : 1);
  node.style.cursor = "pointer";
  node.addEventListener("click", choose);
  return node;
}
