// Which word became which: a guess made from attention, drawn as pairs and as a map.
import { largest } from "../attention/measure.js";
import { latest } from "../attention/selection.js";
import { shadeBytes } from "../color.js";
import { clear, el, onHover, onKeys, onWidth, svg } from "../dom.js";
import { pixels, plane } from "../drawing/matrix.js";
import { columnNames, fitted, label, number, percent, resize, rowName, short, widthOf } from "../drawing/text.js";
import { givenVariant } from "../generation/answer.js";

export const name = "alignment";

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
    resize(picture, Math.max(width, map.width), height);
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
  select.addEventListener("change", () => ((index = Number(select.value)), load()));
  onWidth(box, (wide) => ((width = wide), draw()));
  state.on(["level", "language", "theme"], name);
  name();
  load();
}

// Source words on the left, target words on the right, a line for each pair: the thicker, the surer.

const ROW = 30;
const TOP = 26;

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
    onHover(word, () => watch(pairOf(place)), () => watch(null));
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

// The weights between words as a map: source words across, target words down, a ring on each link.

const [SMALLEST, LARGEST] = [15, 34]; // of a cell with names and a ring
const MOST = 60; // words: more have no names
const HIGH = 460;

// How large a cell is in this room, and what its names take: if need be wider than the room, to be read.
function cellSize({ source, target, width }) {
  const words = [source, target].map((texts) => texts.map((text) => ({ text })));
  const side = Math.max(...words[1].map((word) => widthOf(short(word), 12))) + 14;
  const within = (overhang) => (width - side - overhang - 4) / source.length;
  const free = within(columnNames(words[0], Math.max(SMALLEST, within(0)), 12).overhang);
  return { words, side, cell: Math.max(SMALLEST, Math.min(LARGEST, free, Math.max(18, HIGH / target.length))) };
}

function mapOf({ source, target, links, weights, width, watch, t }) {
  const named = Math.max(source.length, target.length) <= MOST;
  const sizes = cellSize({ source, target, width });
  const cell = named ? sizes.cell : Math.min((width - 18) / source.length, 1100 / target.length);
  const above = named && columnNames(sizes.words[0], cell, 12);
  const [side, slant] = named ? [sizes.side, above.height] : [18, 22];
  const [wide, high] = [cell * source.length, cell * target.length];
  const node = svg("g");
  const inner = svg("g", { transform: `translate(${side} ${slant})` });
  const area = { width: wide, height: high };
  const most = largest(weights.data);
  const image = { href: pixels(plane(weights), (share) => shadeBytes(share / most)), preserveAspectRatio: "none", "image-rendering": "pixelated" };
  inner.append(svg("image", { ...image, ...area }), svg("rect", { ...area, fill: "none", stroke: "var(--line)" }));
  if (named) {
    const names = svg("g", { fill: "var(--ink)" });
    sizes.words[1].forEach((word, row) => names.append(rowName(short(word), -8, (row + 0.5) * cell, 12)));
    source.forEach((_, column) => column % above.every || names.append(above.write(column, (column + 0.5) * cell, 0)));
    inner.append(names);
    for (const [from, to] of links) {
      const ring = { cx: (from + 0.5) * cell, cy: (to + 0.5) * cell, r: cell * 0.2, fill: "none", "stroke-width": 2 };
      inner.append(svg("circle", { ...ring, stroke: "var(--paper)", "stroke-width": 4 }));
      inner.append(svg("circle", { ...ring, stroke: "var(--accent-2)" }));
    }
  } else {
    inner.append(label(`${t("source")} →`, 0, -7));
    inner.append(label(`← ${t("target")}`, -6, 0, { anchor: "end", transform: "rotate(-90 -6 0)" }));
  }
  const edge = { fill: "none", stroke: "var(--accent-2)", "stroke-width": 2, visibility: "hidden" };
  const cursor = svg("rect", { width: Math.max(3, cell), height: Math.max(3, cell), ...edge });
  const ground = svg("rect", { ...area, fill: "transparent" });
  inner.append(cursor, ground);
  node.append(inner);

  const under = (event) => {
    const frame = ground.getBoundingClientRect();
    const place = (way, count) => Math.min(count - 1, Math.max(0, Math.floor(way * count)));
    const [across, down] = [(event.clientX - frame.left) / frame.width, (event.clientY - frame.top) / frame.height];
    return [place(across, source.length), place(down, target.length)];
  };
  ground.addEventListener("pointermove", (event) => watch(under(event)));
  ground.addEventListener("pointerleave", () => watch(null));

  function light(pair) {
    cursor.setAttribute("visibility", pair ? "visible" : "hidden");
    if (!pair) return;
    cursor.setAttribute("x", pair[0] * cell);
    cursor.setAttribute("y", pair[1] * cell);
  }
  return { node, light, width: side + wide + (above ? above.overhang : 0), height: slant + high + 4 };
}
