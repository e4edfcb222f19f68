// The answer as it was written: before, now, later, with a slider that all views follow.
import { total } from "../attention/measure.js";
import { clear, el, onWidth, set, svg } from "../dom.js";
import { label, number, percent, resize, tail, visible, widthOf, wrapWords } from "../drawing/text.js";
import { currentRow, firstRow, givenVariant, stepAt, textBefore } from "../generation/answer.js";

const LONG = 80; // tokens: more are written smaller
const LARGE = { font: 19, line: 54, box: 32, foot: 25, gap: 3, padding: 7 };
const SMALL = { font: 14, line: 44, box: 25, foot: 19, gap: 2, padding: 5 };

export const name = "writing";
export const fits = (doc) => Boolean(doc.written && doc.generation);
export const variant = givenVariant;

export function mount(root, context) {
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
    const now = currentRow(doc, state);
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
  const move = (by) => () => (stop(), go(currentRow(doc, state) + by));
  const back = el("button", { type: "button", onclick: move(-1) }, "‹");
  const play = el("button", { type: "button", class: "play", onclick: () => (timer === null ? start() : stop()) });
  const on = el("button", { type: "button", onclick: move(1) }, "›");
  const slider = el("input", {
    type: "range", min: "0", max: String(last), step: "1", oninput: () => (stop(), go(Number(slider.value))),
  });
  const place = el("output", { class: "place" });
  const node = el("div", { class: "player" }, back, play, on, slider, place);
  let timer = null;

  const go = (row) => state.set({ step: Math.min(Math.max(row, 0), last) });
  const stop = () => {
    clearTimeout(timer);
    timer = null;
    name();
  };
  const tick = () => {
    const row = currentRow(doc, state);
    if (row >= last) return stop();
    go(row + 1);
    timer = setTimeout(tick, Math.min(PAUSE, LONGEST / doc.written.length));
  };
  const start = () => {
    if (currentRow(doc, state) >= last) go(firstRow(doc));
    timer = setTimeout(tick, 300);
    name();
  };
  const name = () => {
    play.textContent = t(timer === null ? "play" : "pause");
    for (const [node, word] of [[back, "back"], [on, "on"], [slider, "slider"]]) set(node, { "aria-label": t(word) });
  };
  const show = () => {
    const row = currentRow(doc, state);
    slider.value = String(row);
    set(slider, { "aria-valuetext": `${row + 1}: ${visible(doc.written[row])}` });
    place.textContent = t("place", { step: row + 1, all: last + 1 });
    back.disabled = row === 0;
    on.disabled = row === last;
  };

  state.on(["step"], show);
  state.on(["language"], () => (name(), show()));
  name();
  show();
  return { node, playing: () => timer !== null };
}
