// A model that writes: the answer step by step, and what could have come next.
import { entropy, total } from "../attention/measure.js";
import { shade } from "../color.js";
import { cellUnder, clear, el, onWidth, set, svg } from "../dom.js";
import { bars } from "../drawing/chart.js";
import { brief, fittedEnd, joined, label, number, PART, percent, resize, spelled, tail, visible, widthOf, wrapWords } from "../drawing/text.js";
import { firstRow, furthest, givenVariant, instead, isGiven, stepAt, textBefore, textOf, treeOf } from "../generation/answer.js";

// The answer as it was written: before, now, later, with a slider that all views follow.
export const writing = {
  name: "writing", variant: givenVariant, mount: mountWriting,
  fits: (doc) => Boolean(doc.written && doc.generation),
};

const LONG = 80; // tokens: more are written smaller
const LARGE = { font: 19, line: 54, box: 32, foot: 25, gap: 3, padding: 7 };
const SMALL = { font: 14, line: 44, box: 25, foot: 19, gap: 2, padding: 5 };

function mountWriting(root, context) {
  const { doc, state, t } = context;
  const texts = doc.written.map(visible);
  const picture = svg("svg", { role: "img", class: "writing" });
  const controls = player(context);
  const sentence = el("p", { class: "readout", "aria-live": "polite" });
  const numbers = el("p", { class: "readout numbers" });
  const paper = el("div", { class: "paper" }, picture);
  root.append(controls.node, paper, sentence, numbers);
  const size = texts.length > LONG ? SMALL : LARGE;
  const opening = doc.sequences.target[0].special ? [] : [visible(doc.sequences.target[0].text)]; // read, never written
  let pieces = [], width = 0;

  function lay() {
    if (!width) return;
    const { boxes, lines } = wrapWords([...opening, ...texts], width, { ...size, size: size.font });
    resize(picture, width, lines * size.line + 4);
    pieces = boxes.slice(opening.length).map((box, row) => piece(box, row));
    clear(picture).append(...opening.map((text) => written(boxes[0], text)), ...pieces.map((made) => made.group));
    paint();
  }

  function piece({ x, width: wide, line }, row) {
    const share = Math.exp(stepAt(doc, row)?.logprob ?? -Infinity);
    const isPrompt = row < firstRow(doc);
    const top = line * size.line + 2, y = top + size.box + 4;
    const ground = svg("rect", { x, y: top, width: wide, height: size.box, rx: 6 });
    const text = written({ x, width: wide, line }, texts[row]);
    const stroke = { y1: y, y2: y, "stroke-width": 3, "stroke-linecap": "round", x1: x + 5 };
    const track = svg("line", { ...stroke, x2: x + wide - 5, stroke: "var(--line)", "stroke-dasharray": isPrompt && "1 5" });
    const bar = svg("line", { ...stroke, x2: x + 5 + (wide - 10) * share, stroke: "var(--accent)" });
    const narrow = widthOf("99%", 10) > wide;
    const value = label(narrow ? Math.round(100 * share) : percent(share), x + wide / 2, y + 12, { size: 10, anchor: "middle" });
    const title = svg("title", {}, `${texts[row]} · ${percent(share)}`);
    const look = { style: { cursor: "pointer" }, onclick: () => state.set({ step: row }) };
    return { group: svg("g", look, title, ground, text, track, bar, value), ground, text, bar, value, isPrompt };
  }

  function written({ x, width: wide, line }, text) {
    return label(text, x + wide / 2, line * size.line + size.foot, { size: size.font, anchor: "middle" });
  }

  // A long answer scrolls in its own box, and the token of the moment stays in sight.
  function follow(row) {
    const y = Number(pieces[row].ground.getAttribute("y"));
    if (y < paper.scrollTop || y > paper.scrollTop + paper.clientHeight - size.line) paper.scrollTop = y - paper.clientHeight / 2;
  }

  function paint() {
    const now = state.get("step");
    const deep = state.get("level") === "deep";
    pieces.forEach(({ group, ground, text, bar, value, isPrompt }, row) => {
      const isNow = row === now, fill = isNow ? "var(--paper)" : isPrompt ? "var(--soft)" : "var(--ink)";
      set(group, { opacity: row > now ? 0.32 : 1 });
      set(ground, { fill: isNow ? "var(--accent)" : "transparent" });
      set(text, { fill, "font-weight": isNow ? 600 : 400 });
      set(bar, { visibility: row > now || isPrompt ? "hidden" : "visible" });
      set(value, { visibility: isNow || (deep && row < now) ? "visible" : "hidden" });
    });
    set(picture, { "aria-label": t("label", { step: now + 1, all: texts.length, word: texts[now] }) });
    set(sentence, { "aria-live": controls.playing() ? "off" : "polite" });
    follow(now);
    update(now, deep);
  }

  function update(row, deep) {
    const step = stepAt(doc, row);
    const ends = doc.written[row] === "■";
    const before = tail(textBefore(doc, row));
    const key = row < firstRow(doc) ? "given" : ends ? "closing" : before ? "now" : "opening";
    const share = step ? percent(Math.exp(step.logprob)) : "–";
    sentence.textContent = t(doc.given ? `${key}.given` : key, { before, word: texts[row], share });
    numbers.hidden = !deep || !step;
    if (numbers.hidden) return;
    numbers.textContent = t("numbers", { row, ...sums(row), p: number(Math.exp(step.logprob), 4), log: number(step.logprob) });
  }

  function sums(row) {
    const from = Math.min(firstRow(doc), row), count = row - from + 1;
    const sum = total(Array.from({ length: count }, (_, n) => stepAt(doc, from + n)?.logprob ?? 0));
    return { sum: number(sum), perplexity: number(Math.exp(-sum / count), 2) };
  }

  onWidth(paper, (wide) => ((width = wide), lay()));
  state.on(["step", "level", "language"], paint);
}

// The slider of steps with its buttons. It sets state.step; everything else follows.

const PAUSE = 900; // ms between two steps of a short answer; a long one runs through in about half a minute
const LONGEST = 30000;

function player({ doc, state, t }) {
  const last = doc.written.length - 1;
  const go = (row) => state.set({ step: row });
  const moveTo = (rowOf) => () => (stop(), go(rowOf()));
  const back = el("button", { type: "button", onclick: moveTo(() => state.get("step") - 1) }, "‹");
  const play = el("button", { type: "button", class: "play", onclick: () => (timer === null ? start() : stop()) });
  const on = el("button", { type: "button", onclick: moveTo(() => state.get("step") + 1) }, "›");
  const slider = el("input", { type: "range", min: 0, max: last, step: 1, oninput: moveTo(() => Number(slider.value)) });
  const place = el("output", { class: "place" });
  const node = el("div", { class: "player" }, back, play, on, slider, place);
  let timer = null;

  const stop = () => {
    clearTimeout(timer);
    timer = null;
    name();
  };
  const tick = () => {
    const row = state.get("step");
    if (row >= last) return stop();
    go(row + 1);
    timer = setTimeout(tick, Math.min(PAUSE, LONGEST / doc.written.length));
  };
  const start = () => {
    if (state.get("step") >= last) go(firstRow(doc));
    timer = setTimeout(tick, 300);
    name();
  };
  const name = () => {
    play.textContent = t(timer === null ? "play" : "pause");
    for (const [node, word] of [[back, "back"], [on, "on"], [slider, "slider"]]) set(node, { "aria-label": t(word) });
  };
  const show = () => {
    const row = state.get("step");
    slider.value = String(row);
    set(slider, { "aria-valuetext": `${row + 1}: ${visible(doc.written[row])}` });
    place.textContent = t("place", { step: row + 1, all: last + 1 });
    [back.disabled, on.disabled] = [row === 0, row === last];
  };

  state.on(["step"], show);
  state.on(["language"], () => (name(), show()));
  name();
  show();
  return { node, playing: () => timer !== null };
}

// What could have come next: the most probable tokens of the current step, and how sure the model was at every step.
export const next = {
  name: "next", variant: givenVariant, mount: mountNext,
  fits: (doc) => Boolean(doc.written && doc.generation?.steps.some((step) => step.top.length)),
};

const FEW = 5; // candidates for a reader who is new

function mountNext(root, context) {
  const { doc, state, t } = context;
  const tree = doc.generation.beam && treeOf(doc.generation.beam);
  const box = el("input", { type: "checkbox", onchange: () => draw() });
  const option = el("label", { class: "option" }, box, el("span", {}));
  const picture = svg("svg", { role: "group", class: "next" });
  const sentence = el("p", { class: "readout", "aria-live": "polite" });
  const numbers = el("p", { class: "readout numbers" });
  const signs = el("p", { class: "readout aside" });
  root.append(option, picture, sentence, numbers, signs);
  const strip = certaintyStrip(context);
  let width = 0;

  function draw() {
    if (!width) return;
    const row = state.get("step");
    const deep = state.get("level") === "deep";
    const candidates = candidatesOf(doc, row);
    const { list, written, rest } = candidates;
    const rows = !deep ? fewest(list, FEW) : rest > 0 ? [...list, { text: null, share: rest }] : list;
    const ariaLabel = written && t(isGiven(doc, row) ? "label.given" : "label", { step: row + 1, word: visible(written.text), share: percent(written.share) });
    const chart = bars(rows.map((candidate) => rowOf(candidate, row, deep && box.checked)), width, ariaLabel ?? t("title"));
    const foot = Number(chart.getAttribute("height")) + 14;
    resize(clear(picture), width, foot + strip.height).append(chart, strip.draw(width, foot));
    option.hidden = !deep;
    option.lastChild.textContent = t("log");
    signs.textContent = t("signs");
    update(row, candidates, deep);
  }

  function rowOf(candidate, row, logarithmic) {
    const { text, share, written } = candidate;
    return {
      name: text === null ? t("rest") : spelled(text), share: logarithmic ? logShare(share) : share, text: percent(share), title: number(share, 4),
      note: text === null ? "" : meant(candidate, row),
      look: { fill: text === null ? "var(--soft)" : "var(--ink)", weight: written ? 650 : 400 },
      bar: written ? { fill: "var(--accent)" } : { fill: "var(--soft)", opacity: 0.55 },
    };
  }

  function meant(candidate, row) {
    if (candidate.written) return t(isGiven(doc, row) ? "given" : "written");
    const { key, text } = meaningOf(doc, tree, row, candidate);
    const room = Math.max(width / 2, width - 260) - widthOf(t(key, { text: "" }), 11);
    return t(key, { text: fittedEnd(text, room, 11) });
  }

  function certainty(row, top, share, times) {
    if (isGiven(doc, row)) return top.written ? "foreseen" : doc.given ? "forced" : "prompted";
    if (!top.written) return tree ? "against" : "sampled";
    if (share >= 0.95) return "sure";
    return times >= 5 ? "fairly" : times >= 1.5 ? "leaning" : "open";
  }

  function update(row, { list, written, rest }, deep) {
    const other = list.find((candidate) => !candidate.written);
    const top = list[0];
    numbers.hidden = !deep || !written;
    sentence.hidden = !written;
    if (!written) return;
    const times = other ? written.share / other.share : Infinity;
    const key = certainty(row, top, written.share, times);
    const about = { word: visible(written.text), other: visible((top.written ? other ?? written : top).text) };
    sentence.textContent = t(key, { ...about, share: percent(top.share), own: percent(written.share), times: brief(times) });
    const normalized = list.map(({ share }) => share / (1 - rest)); // scaled to sum to 1
    const facts = { count: list.length, bits: number(entropy(normalized), 2), most: number(Math.log2(list.length), 2), rest: percent(rest) };
    numbers.textContent = t("entropy", { ...facts, word: about.word, surprise: number(-Math.log2(written.share), 2) });
  }

  onWidth(root, (wide) => ((width = wide), draw()));
  state.on(["step", "level", "language", "theme"], draw);
}

// The candidates of a step and what can be said of them: pure functions, no page.

// { list, written, rest }: the likeliest, the written one among them even where it is not likely, and all others' share.
function candidatesOf(doc, row) {
  const step = stepAt(doc, row);
  if (!step) return { list: [], written: null, rest: 0 };
  const list = step.top.map(([text, share]) => ({ text, share, written: false }));
  const share = Math.exp(step.logprob);
  const alike = list.filter((candidate) => Math.abs(candidate.share - share) <= 1e-4 * share); // texts can be alike too
  const candidates = alike.find((candidate) => candidate.text === step.token) ?? alike[0];
  const written = candidates ?? { text: step.token, share };
  written.written = true;
  if (!candidates) list.push(written);
  const rest = 1 - total(list.map((candidate) => candidate.share));
  return { list, written, rest: rest > 1e-6 ? rest : 0 };
}

// A probability from one in a million to 1 on a logarithmic scale from 0 to 1.
const logShare = (share) => Math.max(0, 1 + Math.log10(Math.max(share, 1e-12)) / 6);

// The few likeliest, and among them the one that was written.
function fewest(list, count) {
  const few = list.slice(0, count);
  return few.some((candidate) => candidate.written) ? few : [...few.slice(0, -1), list.find((candidate) => candidate.written)];
}

// What an alternative would have meant: what the beam made of it, or how the text would read.
function meaningOf(doc, tree, row, { text, share }) {
  const node = tree && instead(tree, row - firstRow(doc) + 1, text, share);
  if (node?.fate === "pruned") return { key: "pruned", text: "" };
  const end = node && furthest(tree, node);
  if (node) return { key: end === node ? "once" : "kept", text: textOf(tree, end) };
  if (visible(text) === PART) return { key: "part", text: "" };
  return { key: "instead", text: joined([tail(textBefore(doc, row)), text]) };
}

// A strip of all steps: how probable the written token was at each. A click or a drag goes there.

const HIGH = 44, HEAD = 18;

function certaintyStrip({ doc, state, t }) {
  const shares = doc.written.map((_, row) => Math.exp(stepAt(doc, row)?.logprob ?? -Infinity));

  // A group whose upper edge lies at y.
  function draw(width, y) {
    const now = state.get("step");
    const wide = Math.min(width / shares.length, 64);
    const gap = wide > 6 ? 2 : 0;
    const all = wide * shares.length;
    const bars = svg("g", { transform: `translate(0 ${y + HEAD + 6})` });
    bars.append(svg("line", { x1: 0, x2: all, y1: HIGH + 0.5, y2: HIGH + 0.5, stroke: "var(--line)" }));
    bars.append(...shares.map((share, row) => {
      const height = Math.max(1, HIGH * share), fill = row === now ? "var(--accent)" : shade(0.25 + 0.5 * share);
      return svg("rect", { x: row * wide, y: HIGH - height, width: Math.max(0.6, wide - gap), height, fill });
    }));
    const middle = (now + 0.5) * wide - gap / 2;
    bars.append(svg("path", { d: `M${middle} ${HIGH + 3}l5 8h-10z`, fill: "var(--accent)" }));
    const go = (event) => state.set({ step: cellUnder(event, ground, 1, shares.length)[1] });
    const ground = svg("rect", {
      x: 0, y: -4, width: all, height: HIGH + 18, fill: "transparent", style: { cursor: "pointer", "touch-action": "pan-y" },
      onpointerdown: go, onpointermove: (event) => event.buttons && go(event),
    });
    const ariaLabel = `${now + 1}: ${visible(doc.written[now])} ${percent(shares[now])}`;
    bars.append(ground);
    return svg("g", { role: "img", "aria-label": `${t("strip")}. ${ariaLabel}` }, label(t("strip"), 0, y + 10), bars);
  }

  return { draw, height: HEAD + HIGH + 22 };
}
