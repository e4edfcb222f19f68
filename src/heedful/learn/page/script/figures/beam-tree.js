// The prefixes a beam search compares, as a tree; the answer with the best score for a length penalty is marked.
import { shade, ink } from "../../lens/color.js";
import { el, svg } from "../../lens/dom.js";
import { table } from "../../lens/drawing/stage.js";
import { label, number, percent, resize, widthOf } from "../../lens/drawing/text.js";
import { live, readout } from "../controls.js";

const SIZE = 13, ROW = 46, HIGH = 26, LEAST = 92;

export function draw(root, data, message, state) {
  state.tree ??= 0;
  state.beam ??= 1;
  state.alpha ??= 10; // tenths

  function tree() {
    const nodes = data.trees[state.tree].nodes[state.beam], alpha = state.alpha / 10;
    const deep = nodes.map((node, n) => (node.depth = node.parent < 0 ? 0 : nodes[node.parent].depth + 1, n));
    const path = (n) => (n < 0 ? [] : [...path(nodes[n].parent), n]);
    const answers = deep.filter((n) => nodes[n].outcome === "ended")
      .map((n) => ({ n, words: path(n).slice(0, -1).map((at) => nodes[at].word).join(" "), score: nodes[n].total / (nodes[n].depth + 1) ** alpha }))
      .sort((a, b) => b.score - a.score);
    const best = new Set(path(answers[0].n));
    const columns = Math.max(...nodes.map(({ depth }) => depth)) + 1;
    const step = Math.max(LEAST, (Math.min(root.clientWidth, 760) - 8) / columns), width = step * columns + 8;
    // A prefix stands beside its first continuation; each leaf has a row of its own.
    let rows = 0;
    const place = (n) => {
      const following = deep.filter((at) => nodes[at].parent === n).map(place);
      nodes[n].row = following.length ? following[0] : rows++;
      return nodes[n].row;
    };
    deep.filter((n) => nodes[n].parent < 0).forEach(place);
    const x = (n) => 4 + nodes[n].depth * step, y = (n) => 18 + nodes[n].row * ROW;
    const wide = (n) => Math.min(step - 14, widthOf(named(n), SIZE) + 18);
    const named = (n) => (nodes[n].word === "</s>" ? message("end") : nodes[n].word);
    const drawing = svg("svg", { role: "img", style: { "max-width": "none" }, "aria-label": message("name", { beam: data.beams[state.beam] }) });
    for (const n of deep) {
      const { parent, outcome, logprob, total } = nodes[n], gone = outcome.endsWith("below the beam");
      const paper = gone ? shade(0) : shade(0.1 + 0.5 * Math.exp(total)), mark = best.has(n);
      const from = parent < 0 ? null : [x(parent) + wide(parent), y(parent) + HIGH / 2];
      const to = [x(n), y(n) + HIGH / 2];
      drawing.append(svg("g", { opacity: gone ? 0.75 : 1 },
        from && svg("path", { d: `M${from}C${from[0] + 12} ${from[1]} ${to[0] - 12} ${to[1]} ${to}`, fill: "none",
          stroke: mark ? "var(--accent-2)" : "var(--soft)", "stroke-width": mark ? 2.4 : 1.2, "stroke-dasharray": gone ? "3 3" : null }),
        svg("rect", { x: x(n), y: y(n), width: wide(n), height: HIGH, rx: 6, fill: paper, "stroke-dasharray": gone ? "3 3" : null,
          stroke: mark ? "var(--accent-2)" : "var(--line)", "stroke-width": mark ? 2.4 : 1 }, svg("title", {}, message("total", { share: percent(Math.exp(total)) }))),
        label(named(n), x(n) + wide(n) / 2, y(n) + 18, { size: SIZE, anchor: "middle", fill: ink(paper) }),
        label(percent(Math.exp(logprob)), x(n) + 2, y(n) - 4, { size: 10.5 })));
    }
      const rank = ({ words, n, score }) => [words, percent(Math.exp(nodes[n].total)), String(nodes[n].depth + 1), number(score)];
    return [
      el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": message("tree") }, resize(drawing, width, rows * ROW + 4)),
      table(["answer", "probability", "length", "score"].map((key) => message(key)), answers.map(rank)),
      readout(message("facts", { answer: answers[0].words, alpha: alpha.toFixed(1) }))];
  }
  live(root, state, ({ dropdown, either, slider }) => [
    dropdown("tree", message("sentence"), data.trees.map(({ source }, n) => [n, source])),
    el("div", { class: "pick" }, el("span", {}, message("beam")), either("beam", message("beam"), data.beams.map((beam, n) => [n, String(beam)]))),
    slider("alpha", message("alpha"), [0, 15], (value) => (value / 10).toFixed(1)),
  ], tree);
}
