// Four trained heads, each a map and a switch; the scores of the four questions follow the switches.
import { shade } from "../../lens/color.js";
import { onKeys, svg } from "../../lens/dom.js";
import { bars } from "../../lens/drawing/chart.js";
import { label, percent } from "../../lens/drawing/text.js";
import { readout, sized } from "../controls.js";

const QUESTIONS = ["before", "after", "first", "last"], LEFT = 18, TOP = 40;

export function draw(root, data, message, state, redraw) {
  state.on ??= 15; // a bit for each head
  const { letters } = data, width = Math.min(root.clientWidth, 760), across = width < 560 ? 2 : 4;
  const wide = (width - (across - 1) * 18) / across, side = (wide - LEFT) / letters.length, high = TOP + letters.length * side;
  const isOn = (head) => Boolean(state.on >> head & 1);
  const name = (n, x, y, anchor) => label(letters[n], x, y, { size: 11, anchor });

  function map(weights, head) {
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
  // Which question the last switch has changed most.
  function moved() {
    if (state.changed === undefined) return message("hint", { n: letters.length });
    const [before, after] = [data.scores[state.on ^ (1 << state.changed)], data.scores[state.on]];
    const most = QUESTIONS.map((_, n) => n).sort((a, b) => Math.abs(after[b] - before[b]) - Math.abs(after[a] - before[a]))[0];
    return message("moved", { n: state.changed + 1, state: message(isOn(state.changed) ? "turnedOn" : "turnedOff"),
      question: message(QUESTIONS[most]), from: percent(before[most]), to: percent(after[most]) });
  }
  const share = data.scores[state.on];
  root.append(
    sized(message("maps"), width, Math.ceil(data.maps.length / across) * (high + 24), data.maps.map(map)),
    bars(QUESTIONS.map((name, n) => ({
      name: message(name), share: share[n], text: percent(share[n]), note: message("single", { share: percent(data.single_scores[n]) }),
    })), width, message("scores")),
    readout(moved()));
}
