// Heads: four of a trained model, each a map and a switch; and where *it* looks, with the answers without a head.
import { shade } from "../../lens/color.js";
import { onKeys, svg } from "../../lens/dom.js";
import { bars } from "../../lens/drawing/chart.js";
import { grid, shares } from "../../lens/drawing/matrix.js";
import { label, percent } from "../../lens/drawing/text.js";
import { caption, controls, controlsOf, figure, gridOf, map, sized } from "../controls.js";

const QUESTIONS = ["before", "after", "first", "last"], LEFT = 18, TOP = 40;

// The scores of the four questions follow the switches, a bit for each head.
export const headsAtWork = figure(760, { on: 15 }, ({ data, message, state, redraw, width, facts, tell }) => {
  const { letters } = data, across = width < 560 ? 2 : 4;
  const wide = (width - (across - 1) * 18) / across, side = (wide - LEFT) / letters.length, high = TOP + letters.length * side;
  const isOn = (head) => Boolean(state.on >> head & 1);
  const name = (n, x, y, anchor) => label(letters[n], x, y, { size: 11, anchor });

  function switchOf(weights, head) {
    const title = message(isOn(head) ? "on" : "off", { n: head + 1 });
    const cells = weights.map((row, q) => row.map((weight, k) => svg("rect", {
      x: LEFT + k * side, y: TOP + q * side, width: side - 1, height: side - 1, rx: 1, fill: shade(weight),
    }, svg("title", {}, message("weight", { from: letters[q], q: q + 1, to: letters[k], k: k + 1, weight: percent(weight) })))));
    const node = svg("g", {
      tabindex: 0, role: "switch", "aria-checked": String(isOn(head)), "aria-label": title, "data-head": head, "data-keep": `head ${head}`,
      transform: `translate(${(head % across) * (wide + 18) + 5} ${Math.floor(head / across) * (high + 24) + 6})`, style: { cursor: "pointer" }, onclick: () => flip(head),
    }, svg("rect", { x: -5, y: -5, width: wide + 8, height: high + 9, rx: 8, fill: "transparent", stroke: "var(--line)" }),
    label(title, LEFT, 12, { size: 13, weight: 600, fill: "var(--ink)" }),
    svg("g", { opacity: isOn(head) ? 1 : 0.15 }, cells, letters.map((_, n) => [
      name(n, LEFT + (n + 0.5) * side, TOP - 5, "middle"), name(n, LEFT - 6, TOP + (n + 0.5) * side + 4, "end")])));
    onKeys(node, (key) => (key === "Enter" || key === " " ? flip(head) : false));
    return node;
  }
  function flip(head) {
    state.on ^= 1 << head;
    state.changed = head;
    redraw();
  }
  const share = data.scores[state.on];
  if (state.changed === undefined) tell("hint", { n: letters.length });
  else { // which question the last switch has changed most
    const before = data.scores[state.on ^ (1 << state.changed)], moves = share.map((value, n) => Math.abs(value - before[n]));
    const most = moves.indexOf(Math.max(...moves));
    tell("moved", { n: state.changed + 1, state: message(isOn(state.changed) ? "turnedOn" : "turnedOff"),
      question: message(QUESTIONS[most]), from: percent(before[most]), to: percent(share[most]) });
  }
  return [
    sized(message("maps"), width, Math.ceil(data.maps.length / across) * (high + 24), data.maps.map(switchOf)),
    bars(QUESTIONS.map((name, n) => ({
      name: message(name), share: share[n], text: percent(share[n]), note: message("single", { share: percent(data.single_scores[n]) }),
    })), width, message("scores")),
    facts];
});

const NOUNS = ["animal", "street"], BESIDE = 64;

export const whatItRefersTo = figure(760, { model: 0, adjective: (data) => data.adjectives[0] }, ({ data, message, state, redraw, width, facts, tell }) => {
  const reading = data.models[state.model][state.adjective], words = data.words.map((word) => (word === "…" ? state.adjective : word));
  const name = (head) => message("head", { layer: Math.floor(head / 4) + 1, n: (head % 4) + 1 });
  const { off } = state, whole = off === undefined, chances = whole ? reading.whole : reading.without[off];
  const say = (key, head, at) => tell(key, { head: name(head), word: words[at], weight: percent(reading.weights[head][at]) });
  const leave = () => (whole ? tell("hint") : say("off", off, reading.weights[off].indexOf(Math.max(...reading.weights[off]))));
  const choose = (head) => { state.off = off === head ? undefined : head; redraw(); };
  const { either } = controlsOf(state, () => { state.off = undefined; redraw(); });
  leave();
  return [
    controls(either("adjective", message("adjective"), data.adjectives.map((word) => [word, `… too ${word}`])),
      either("model", message("starts"), data.models.map((_, n) => [n, message("start", { n: n + 1 })]))),
    map(width, {
      name: message("from"), source: gridOf(reading.weights), unit: [Math.min(48, (width - BESIDE) / words.length), 24], color: shares(grid(1, 1, () => 1)),
      rows: reading.weights.map((_, head) => name(head)), columns: words, mark: whole ? undefined : [off, data.it],
      watch: { look: (head, at) => say("weight", head, at), leave, choose },
    }, BESIDE),
    caption(message(whole ? "answers" : "answersOff", { head: whole ? "" : name(off) })),
    bars(NOUNS.map((noun, n) => ({
      name: noun, share: chances[n], text: percent(chances[n]), note: whole ? "" : message("whole", { share: percent(reading.whole[n]) }),
    })), width, message("answers")), facts];
});
