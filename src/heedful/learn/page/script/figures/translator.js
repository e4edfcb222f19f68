// The toy translator: one step of its decoder after another, the beams of a search as a tree, and its training.
import { hue, ink, shade } from "../../lens/color.js";
import { el, svg } from "../../lens/dom.js";
import { bars, lineLook } from "../../lens/drawing/chart.js";
import { table } from "../../lens/drawing/stage.js";
import { brief, label, number, percent, resize, widthOf, wrapWords } from "../../lens/drawing/text.js";
import { caption, controls, controlsOf, figure, indexed, live, namedChart, readout, sized } from "../controls.js";

const MOST = 6, SIZE = 14, LINE = 46;
const tenths = (value) => (value / 10).toFixed(1);

// Where the decoder looks, and the words it could write next, at a temperature.
export const wordByWord = figure(640, { sentence: 0, step: 0, temperature: 10 }, ({ data, message, state, redraw, width }) => {
  const sentence = data.sentences[state.sentence], last = sentence.written.length;
  const visible = (word) => ({ "</s>": message("end"), "<s>": message("start") })[word] ?? word;

  // Words in boxes, each with a text below; `fill(n)` colors the nth.
  function boxes(words, fill, below, name) {
    const { boxes: placed, lines } = wrapWords(words, width, { size: SIZE, padding: 10, gap: 6, narrowest: 44 });
    return sized(name, width, lines * LINE, placed.map((box, n) => {
      const paper = fill(n), top = box.line * LINE, middle = box.x + box.width / 2;
      return svg("g", {}, svg("rect", { x: box.x, y: top, width: box.width, height: 28, rx: 6, fill: paper, stroke: "var(--line)" }),
        label(box.text, middle, top + 19, { size: SIZE, anchor: "middle", fill: ink(paper) }),
        label(below(n), middle, top + 41, { size: 11, anchor: "middle" }));
    }));
  }
  const other = controlsOf(state, () => { state.step = 0; redraw(); });
  return [
    controls(other.dropdown("sentence", message("sentence"), indexed(data.sentences.map(({ source }) => source.slice(0, -1).join(" "))))),
    ...live(state, ({ slider }) => [
      slider("step", message("step"), [0, last], (value) => `${value + 1} / ${last + 1}`),
      slider("temperature", message("temperature"), [1, 30], tenths),
    ], () => {
      const logits = sentence.logits[state.step], weights = sentence.attention[state.step], top = Math.max(...logits);
      const likely = logits.map((value) => Math.exp((value - top) / (state.temperature / 10)));
      const sum = likely.reduce((a, b) => a + b, 0), shares = likely.map((value) => value / sum);
      const order = shares.map((_, n) => n).sort((a, b) => shares[b] - shares[a]);
      const entropy = -shares.reduce((total, p) => total + (p > 0 ? p * Math.log2(p) : 0), 0);
      const best = visible(data.words[order[0]]), written = state.step ? sentence.written.slice(0, state.step) : [message("start")];
      return [
        caption(message("source")), boxes(sentence.source.map(visible), (n) => shade(weights[n]), (n) => percent(weights[n]), message("source")),
        caption(message("written")), boxes(written, () => shade(0.02), () => "", message("written")),
        caption(message("next")), bars(order.slice(0, MOST).map((n, rank) => ({
          name: visible(data.words[n]), share: shares[n], text: percent(shares[n]), bar: rank ? { fill: hue(5) } : {},
        })), width, message("next")),
        readout(message("facts", { n: state.step + 1, word: best, share: percent(shares[order[0]]), bits: entropy.toFixed(2) }))];
    })];
});

const NODE = 13, ROW = 46, HIGH = 26, LEAST = 92;

// The answer with the best score for a length penalty is marked.
export const beamTree = figure(760, { tree: 0, beam: 1, alpha: 10 }, ({ data, message, state, width: room }) => live(state, ({ dropdown, either, slider }) => [
  dropdown("tree", message("sentence"), indexed(data.trees.map(({ source }) => source))),
  el("div", { class: "pick" }, el("span", {}, message("beam")), either("beam", message("beam"), indexed(data.beams.map(String)))),
  slider("alpha", message("alpha"), [0, 15], tenths),
], () => {
  const nodes = data.trees[state.tree].nodes[state.beam], alpha = state.alpha / 10;
  const deep = nodes.map((node, n) => (node.depth = node.parent < 0 ? 0 : nodes[node.parent].depth + 1, n));
  const path = (n) => (n < 0 ? [] : [...path(nodes[n].parent), n]);
  const answers = deep.filter((n) => nodes[n].outcome === "ended")
    .map((n) => ({ n, words: path(n).slice(0, -1).map((at) => nodes[at].word).join(" "), score: nodes[n].total / (nodes[n].depth + 1) ** alpha }))
    .sort((a, b) => b.score - a.score);
  const best = new Set(path(answers[0].n));
  const columns = Math.max(...nodes.map(({ depth }) => depth)) + 1;
  const step = Math.max(LEAST, (room - 8) / columns), width = step * columns + 8;
  // A prefix stands beside its first continuation; each leaf has a row of its own.
  let rows = 0;
  const place = (n) => {
    const following = deep.filter((at) => nodes[at].parent === n).map(place);
    nodes[n].row = following.length ? following[0] : rows++;
    return nodes[n].row;
  };
  deep.filter((n) => nodes[n].parent < 0).forEach(place);
  const x = (n) => 4 + nodes[n].depth * step, y = (n) => 18 + nodes[n].row * ROW;
  const wide = (n) => Math.min(step - 14, widthOf(named(n), NODE) + 18);
  const named = (n) => (nodes[n].word === "</s>" ? message("end") : nodes[n].word);
  function drawn(n) {
    const { parent, outcome, logprob, total } = nodes[n], gone = outcome.endsWith("below the beam"), mark = best.has(n);
    const paper = gone ? shade(0) : shade(0.1 + 0.5 * Math.exp(total)), line = { "stroke-width": mark ? 2.4 : 1.2, "stroke-dasharray": gone ? "3 3" : null };
    const from = parent < 0 ? null : [x(parent) + wide(parent), y(parent) + HIGH / 2], to = [x(n), y(n) + HIGH / 2];
    return svg("g", { opacity: gone ? 0.75 : 1 },
      from && svg("path", { d: `M${from}C${from[0] + 12} ${from[1]} ${to[0] - 12} ${to[1]} ${to}`, fill: "none", ...line, stroke: mark ? "var(--accent-2)" : "var(--soft)" }),
      svg("rect", { x: x(n), y: y(n), width: wide(n), height: HIGH, rx: 6, fill: paper, ...line, stroke: mark ? "var(--accent-2)" : "var(--line)" },
        svg("title", {}, message("total", { share: percent(Math.exp(total)) }))),
      label(named(n), x(n) + wide(n) / 2, y(n) + 18, { size: NODE, anchor: "middle", fill: ink(paper) }),
      label(percent(Math.exp(logprob)), x(n) + 2, y(n) - 4, { size: 10.5 }));
  }
  const drawing = svg("svg", { role: "img", style: { "max-width": "none" }, "aria-label": message("name", { beam: data.beams[state.beam] }) }, deep.map(drawn));
  const rank = ({ words, n, score }) => [words, percent(Math.exp(nodes[n].total)), String(nodes[n].depth + 1), number(score)];
  return [
    el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": message("tree") }, resize(drawing, width, rows * ROW + 4)),
    table(["answer", "probability", "length", "score"].map((key) => message(key)), answers.map(rank)),
    readout(message("facts", { answer: answers[0].words, alpha: alpha.toFixed(1) }))];
}));

// Losses and learning rates of three trainings, and what the model translates at a chosen step.
export const trainingRun = figure(700, { run: "warmup", at: 4 }, ({ data, message, state, width, named }) => {
  const names = Object.keys(data.runs);
  // A line for each run over the steps, with a rule where the reader stands.
  const chart = (key, high) => namedChart({
    series: names.map((name, n) => ({ name: message(name), points: data.runs[name][key].map((value, at) => [at + 1, value]), look: { ...lineLook(n), opacity: name === state.run ? 1 : 0.45 } })),
    width, high, isNamed: key === "losses", xLabel: message("step"), name: message(key),
    more: ({ x }) => svg("path", { d: `M${x(data.steps[state.at])} 6V${high + 6}`, stroke: "var(--accent-2)", "stroke-width": 1.5 }),
  });
  return live(state, ({ either, slider }) => [
    either("run", message("run"), named(names)),
    slider("at", message("step"), [0, data.steps.length - 1], (value) => String(data.steps[value])),
  ], () => {
    const run = data.runs[state.run], step = data.steps[state.at], outputs = run.translations[state.at];
    const rows = data.sentences.map(({ source, right, trained }, n) => [
      [source, trained ? "" : el("small", {}, ` ${message("unseen")}`)], outputs[n] || "∅", right.includes(outputs[n]) ? `✓ ${message("right")}` : `✗ ${message("wrong")}`]);
    return [
      caption(message("losses")), chart("losses", 150), caption(message("rates")), chart("rates", 80),
      table(["sentence", "translation", "verdict"].map((key) => message(key)), rows, { numbers: 3 }),
      readout(message("facts", { run: message(state.run), n: step, loss: number(run.losses[step - 1]), rate: brief(run.rates[step - 1]) }))];
  });
});
