// One step of the decoder after another: where it looks, and the words it could write next, at a temperature.
import { shade, ink, hue } from "../../lens/color.js";
import { svg } from "../../lens/dom.js";
import { bars } from "../../lens/drawing/chart.js";
import { label, percent, resize, wrapWords } from "../../lens/drawing/text.js";
import { caption, controls, controlsOf, live, readout } from "../controls.js";

const MOST = 6, SIZE = 14, LINE = 46;

export function draw(root, data, message, state, redraw) {
  state.sentence ??= 0;
  state.step ??= 0;
  state.temperature ??= 10; // tenths
  const width = Math.min(root.clientWidth, 640), sentence = data.sentences[state.sentence], last = sentence.written.length;
  const visible = (word) => ({ "</s>": message("end"), "<s>": message("start") })[word] ?? word;

  // Words in boxes, each with a text below; `fill(n)` colors the nth.
  function boxes(words, fill, below, name) {
    const { boxes: placed, lines } = wrapWords(words, width, { size: SIZE, padding: 10, gap: 6, narrowest: 44 });
    const node = svg("svg", { role: "img", "aria-label": name }, placed.map((box, n) => {
      const paper = fill(n), top = box.line * LINE, middle = box.x + box.width / 2;
      return svg("g", {}, svg("rect", { x: box.x, y: top, width: box.width, height: 28, rx: 6, fill: paper, stroke: "var(--line)" }),
        label(box.text, middle, top + 19, { size: SIZE, anchor: "middle", fill: ink(paper) }),
        label(below(n), middle, top + 41, { size: 11, anchor: "middle" }));
    }));
    return resize(node, width, lines * LINE);
  }

  const other = controlsOf(state, () => { state.step = 0; redraw(); });
  root.append(controls(other.dropdown("sentence", message("sentence"), data.sentences.map(({ source }, n) => [n, source.slice(0, -1).join(" ")]))));
  live(root, state, ({ slider }) => [
    slider("step", message("step"), [0, last], (value) => `${value + 1} / ${last + 1}`),
    slider("temperature", message("temperature"), [1, 30], (value) => (value / 10).toFixed(1)),
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
  });
}
