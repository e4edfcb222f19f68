// Where *it* looks in each head of a trained model, what the model answers, and what it answers without a head.
import { bars } from "../../lens/drawing/chart.js";
import { grid, shares } from "../../lens/drawing/matrix.js";
import { percent } from "../../lens/drawing/text.js";
import { caption, controls, controlsOf, gridOf, map, readout } from "../controls.js";

const NOUNS = ["animal", "street"], LEFT = 64;

export function draw(root, data, message, state, redraw) {
  state.model ??= 0;
  state.adjective ??= data.adjectives[0];
  const width = Math.min(root.clientWidth, 760), reading = data.models[state.model][state.adjective];
  const name = (head) => message("head", { layer: Math.floor(head / 4) + 1, n: (head % 4) + 1 });
  const words = data.words.map((word) => (word === "…" ? state.adjective : word));
  const { off } = state, whole = off === undefined, chances = whole ? reading.whole : reading.without[off], facts = readout();
  const say = (key, head, at) => facts.replaceChildren(message(key, { head: name(head), word: words[at], weight: percent(reading.weights[head][at]) }));
  const leave = () => (whole ? facts.replaceChildren(message("hint")) : say("off", off, reading.weights[off].indexOf(Math.max(...reading.weights[off]))));
  const choose = (head) => { state.off = off === head ? undefined : head; redraw(); };
  const { either } = controlsOf(state, () => { state.off = undefined; redraw(); });
  leave();
  root.append(
    controls(either("adjective", message("adjective"), data.adjectives.map((word) => [word, `… too ${word}`])),
      either("model", message("starts"), data.models.map((_, n) => [n, message("start", { n: n + 1 })]))),
    map(width, {
      name: message("from"), source: gridOf(reading.weights), unit: [Math.min(48, (width - LEFT) / words.length), 24], color: shares(grid(1, 1, () => 1)),
      rows: reading.weights.map((_, head) => name(head)), columns: words, mark: whole ? undefined : [off, data.it],
      watch: { look: (head, at) => say("weight", head, at), leave, choose },
    }),
    caption(message(whole ? "answers" : "answersOff", { head: whole ? "" : name(off) })),
    bars(NOUNS.map((noun, n) => ({
      name: noun, share: chances[n], text: percent(chances[n]), note: whole ? "" : message("whole", { share: percent(reading.whole[n]) }),
    })), width, message("answers")), facts);
}
