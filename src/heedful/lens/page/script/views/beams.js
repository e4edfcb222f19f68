// The beam tree: what was followed, what was dropped, what won, and how its score was made.
import { clear, el, onKeys, set, svg } from "../dom.js";
import { fitted, label, marked, number, resize, spelled, tail, visible, widthOf } from "../drawing/text.js";
import { firstRow, penaltyOf, storyOf, textOf, treeOf, wayTo } from "../generation/answer.js";

export const name = "beams";
export const fits = (doc) => Boolean(doc.written && doc.generation?.beam?.nodes.length > 1);

export function mount(root, { doc, state, t }) {
  const { beam } = doc.generation;
  const tree = treeOf(beam);
  const last = tree.columns.length - 1;
  const sentence = el("p", { class: "readout story" });
  const box = el("div", { class: "tree", tabindex: 0, role: "region" });
  const legend = el("ul", { class: "fates" });
  const details = el("dl", { class: "hypothesis", "aria-live": "polite" });
  const drawing = treePicture(tree, { choose: (node) => pick(node), watch: (node) => look(node) });
  let selected = null, seen = null; // seen: under the pointer
  root.append(sentence, legend, box, details);
  box.append(drawing.picture);

  const now = () => Math.min(last, Math.max(1, state.get("step") - firstRow(doc) + 1));
  const facts = storyOf(tree);

  function draw() {
    const deep = state.get("level") === "deep", node = seen ?? selected, from = box.scrollLeft;
    set(drawing.picture, { "aria-label": t("label", { steps: last, story: storyText(facts, t) }) });
    drawing.draw({ from, to: from + box.clientWidth, now: now(), shown: node, deep });
    detail(node, deep);
  }

  function detail(node, deep) {
    const entry = (key, text, look) => [el("dt", {}, t(key)), el("dd", { class: look }, text)];
    const text = node.step ? tail(textOf(tree, node), 240) : t("nothing");
    clear(details).append(...entry("text", text), ...entry("fate", t(node.fate)));
    if (!deep) return;
    const { value, formula, filled } = penaltyOf(beam, node.step);
    const sum = node.score * value;
    const divided = [`${formula} = ${filled} = ${number(value)}`, el("small", {}, t("length"))];
    details.append(
      ...entry("logprob", number(node.logprob), "formula"), ...entry("penalty", divided, "formula"),
      ...entry("score", `logprob / ${formula} = ${number(sum)} / ${number(value)} = ${number(node.score)}`, "formula"),
    );
    if (Math.abs(sum - node.logprob) > 1e-3) details.append(el("dt"), el("dd", {}, t("rules", { sum: number(sum) })));
  }

  function look(node) {
    if (node === seen) return;
    seen = node;
    draw();
  }

  function pick(node) {
    [selected, seen] = [node, null];
    state.set({ step: node.step - 1 + firstRow(doc) });
    draw();
  }

  function follow() {
    if (selected?.step !== now()) selected = tree.chosen[now()] ?? tree.columns[now()][0];
    draw();
    const x = drawing.columnAt(now());
    const [left, right] = [box.scrollLeft + 70, box.scrollLeft + box.clientWidth - 180];
    if (x < left || x > right) box.scrollLeft = x - box.clientWidth * 0.4;
  }

  function name() {
    sentence.textContent = storyText(facts, t);
    set(box, { "aria-label": t("box") });
    clear(legend).append(...FATES.map((fate) => el("li", {}, sample(fate), t(fate))));
    legend.firstChild.after(el("li", {}, sample("chosen", true), t("end")));
    follow();
  }

  const moves = {
    ArrowUp: (column, lane) => column[lane - 1],
    ArrowDown: (column, lane) => column[lane + 1],
    ArrowLeft: () => selected.step > 1 && tree.byId.get(selected.parent),
    ArrowRight: () => tree.children.get(selected.id)[0],
  };
  onKeys(box, (key) => {
    if (!(key in moves)) return false;
    const column = tree.columns[selected.step];
    const node = moves[key](column, column.indexOf(selected));
    if (node) pick(node);
  });
  if (!drawing.whole) box.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  new ResizeObserver(() => draw()).observe(box);
  state.on(["step"], follow);
  state.on(["level", "language"], name);
  name();
}

// What the search did here, from the nodes alone.
function storyText(story, t) {
  const { worst, worstRank: rank, ends, pruned } = story;
  const lead = rank > 1 ? t("behind", { step: worst.step, word: visible(worst.text), rank }) : t("led");
  return [
    story.upset ? t("upset", { leader: visible(story.leader.text), winner: visible(story.first.text) }) : lead,
    t(story.greedy ? "greedy" : "detour"),
    story.likeliest !== story.winner && t("lengths", { text: story.likeliestText }),
    t(ends > 1 ? "counts" : "countsOne", { pruned, ends }),
  ].filter(Boolean).join(" ");
}

// The signs of a branch's fate: told apart by shape and line, so that no color is needed.

const FATES = ["chosen", "kept", "finished", "pruned"];

const LINES = {
  chosen: { stroke: "var(--accent)", "stroke-width": 3.2 },
  pruned: { "stroke-width": 1, "stroke-dasharray": "2 4", opacity: 0.6 },
};

function line(fate, d, look) {
  const plain = { fill: "none", stroke: "var(--soft)", "stroke-width": 1.3, "stroke-linecap": "round" };
  return svg("path", { d, ...plain, ...LINES[fate], ...look });
}

// The sign with its middle at the origin. `end`: the answer ends here.
function mark(fate, end) {
  const accent = { fill: "var(--accent)", stroke: "var(--accent)", "stroke-width": 1.5 };
  const plain = { fill: "var(--paper)", stroke: "var(--soft)", "stroke-width": 1.6 };
  if (fate === "chosen" && end) return svg("g", {}, square(6.5, { ...plain, stroke: "var(--accent)" }), square(3.5, accent));
  if (fate === "chosen") return svg("circle", { r: 5.5, ...accent });
  if (fate === "finished") return svg("g", {}, square(5.5, plain), square(2, { fill: "var(--soft)" }));
  if (fate === "kept") return svg("circle", { r: 4.5, ...plain });
  const cross = "M-3.5 -3.5L3.5 3.5M3.5 -3.5L-3.5 3.5";
  return svg("path", { d: cross, stroke: "var(--soft)", "stroke-width": 1.5, "stroke-linecap": "round" });
}

// A line and its sign, for a legend.
function sample(fate, end) {
  const sign = svg("g", { transform: "translate(30 8)" }, mark(fate, end));
  return svg("svg", { width: 40, height: 16, "aria-hidden": "true" }, line(fate, "M1 8H23"), sign);
}

const square = (half, look) => svg("rect", { x: -half, y: -half, width: 2 * half, height: 2 * half, rx: 1, ...look });

// Draws a beam's tree: steps from left to right, in each step the candidates by their score.

const COLUMN = { simple: 122, deep: 156 }; // the narrowest; a short tree takes the width there is
const WIDEST = 190, LANE = 28, TOP = 40;
const LETTERS = 74; // room for a token's text
const ALL_AT_ONCE = 1500; // a larger tree is drawn only where it is seen

function treePicture(tree, { choose, watch }) {
  const last = tree.columns.length - 1;
  const height = TOP + Math.max(...tree.columns.slice(1).map((column) => column.length)) * LANE + 4;
  const picture = svg("svg", { role: "img", height, onpointerleave: () => watch(null) });
  const whole = tree.byId.size <= ALL_AT_ONCE;
  let column = COLUMN.simple, places = null;
  let measured = null; // the level the places were made for

  const columnAt = (step) => 58 + (step - 1) * column;

  // `from`, `to`: what is seen, in pixels; `now`: the step; `shown`: the node looked at.
  function draw({ from, to, now, shown, deep }) {
    const narrowest = deep ? COLUMN.deep : COLUMN.simple;
    const wide = Math.max(narrowest, Math.min(WIDEST, Math.floor((to - from - 40) / last)));
    if (wide !== column || deep !== measured) {
      [column, measured] = [wide, deep];
      places = placed(tree, columnAt, deep);
    }
    const lit = new Set(wayTo(tree, shown));
    const first = whole ? 1 : Math.max(1, Math.floor(from / column) - 1);
    const end = whole ? last : Math.min(last, Math.ceil(to / column) + 1);
    resize(clear(picture), columnAt(last) + column - 24, height);
    const band = { fill: "var(--accent)", opacity: 0.09, rx: 8 };
    picture.append(svg("rect", { x: columnAt(now) - 14, y: 4, width: column - 12, height: height - 8, ...band }));
    const lines = Object.fromEntries(FATES.toReversed().map((fate) => [fate, svg("g")]));
    const marks = svg("g");
    const start = places.get(tree.columns[0][0].id);
    if (first === 1) marks.append(svg("circle", { cx: start.right, cy: start.y, r: 4.5, fill: "var(--ink)" }));
    for (let step = first; step <= end; step += 1) {
      const look = step === now ? { fill: "var(--accent)", weight: 650 } : {};
      marks.append(label(step, columnAt(step), 22, { anchor: "middle", ...look }));
      for (const node of tree.columns[step]) {
        lines[node.fate].append(edge(node, lit));
        marks.append(sign(node, shown, deep));
      }
    }
    picture.append(...Object.values(lines), marks);
  }

  function edge(node, lit) {
    const [a, b] = [places.get(node.parent), places.get(node.id)];
    const bend = Math.max(14, (b.left - a.right) * 0.5);
    const d = `M${a.right} ${a.y}C${a.right + bend} ${a.y} ${b.left - bend} ${b.y} ${b.left} ${b.y}`;
    const stands = lit.has(node) && node.fate !== "chosen";
    return line(node.fate, d, stands && { stroke: "var(--ink)", "stroke-width": 2.2, opacity: 1 });
  }

  function sign(node, shown, deep) {
    const { x, y, right } = places.get(node.id);
    const chosen = node.fate === "chosen", bold = chosen ? { fill: "var(--ink)", weight: 650 } : {};
    const frame = { x: -11, y: -12, width: right - x + 11, height: 24, rx: 7, "stroke-width": 1.4 };
    const look = node === shown ? { fill: "var(--paper)", stroke: "var(--ink)" } : { fill: "transparent" };
    return svg("g", {
      transform: `translate(${x} ${y})`, style: { cursor: "pointer" },
      onpointerenter: () => watch(node), onclick: () => choose(node),
    },
    svg("rect", { ...frame, ...look }), mark(node.fate, chosen && tree.children.get(node.id).length === 0),
    label(marked(shortText(node)), 12, 4.5, { size: 13, ...bold }),
    deep && label(number(node.score, 2), right - x - 5, 4, { size: 10, anchor: "end" }));
  }

  return { picture, draw, whole, columnAt };
}

const shortText = (node) => fitted(spelled(node.text), LETTERS, 13);

// { x: the sign's middle, left and right: where lines end and begin, y } of every node.
function placed(tree, columnAt, deep) {
  const places = new Map();
  const middle = TOP + (tree.columns[1].filter((node) => node.fate !== "pruned").length * LANE) / 2;
  places.set(tree.columns[0][0].id, { right: 20, y: middle });
  tree.columns.slice(1).forEach((column, step) => column.forEach((node, lane) => {
    const x = columnAt(step + 1);
    const wide = widthOf(shortText(node), 13, node.fate === "chosen" ? 650 : 400) + (deep ? 36 : 0);
    places.set(node.id, { x, left: x - 9, right: x + 18 + wide, y: TOP + (lane + 0.5) * LANE });
  }));
  return places;
}
