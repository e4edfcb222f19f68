// Draws a view, and draws it again when its width or the state it follows changes.
import { el, onWidth, replace, set, svg } from "../dom.js";
import { label, paragraph, resize } from "./text.js";

function failed(error) {
  console.error(error);
  return [el("p", { class: "failure" }, error.message)];
}

// Runs `draw` with what it is promised, unless a later call has overtaken it.
export function latest(draw) {
  let turn = 0;
  return async (promise) => {
    const ticket = ++turn, value = await promise;
    if (ticket === turn) draw(value);
  };
}

// `draw(width, note)` gives the nodes (or a promise of them); the last one asked for wins. Gives a function that
// draws again.
export function redrawn(root, state, keys, draw) {
  const stage = el("div", { class: "figure-stage waiting" });
  root.append(stage);
  const note = tooltip(root);
  root.style.position = "relative";
  let width = 0;
  const show = latest((nodes) => {
    const unfolded = stage.querySelector("details[open]") !== null;
    note.hide();
    replace(stage, nodes);
    stage.classList.remove("waiting");
    if (unfolded) stage.querySelector("details")?.setAttribute("open", "");
  });
  const again = () => show(Promise.resolve().then(() => draw(width, note)).catch(failed));

  state.on([...keys, "language", "level", "theme"], again);
  onWidth(stage, (wide) => ((width = wide), again()));
  return again;
}

// A small note beside what is looked at; spoken to those who listen.

export function tooltip(root) {
  const node = el("output", { class: "figure-tip", "aria-live": "polite", hidden: true });
  root.append(node);
  return {
    node,
    show(box, text) {
      const frame = root.getBoundingClientRect();
      node.textContent = text;
      node.hidden = false;
      const room = frame.width - node.offsetWidth;
      const left = box.left + box.width / 2 - frame.left - node.offsetWidth / 2;
      const top = box.top - frame.top - node.offsetHeight - 6;
      set(node, { style: { left: `${Math.max(0, Math.min(room, left))}px`, top: `${top}px` } });
    },
    hide: () => (node.hidden = true),
    // What `cells` is told, so that `told(row, column)` stands beside the cell under the pointer.
    over(describe) {
      return { look: (row, column, box) => this.show(box, describe(row, column)), leave: this.hide };
    },
  };
}

// Steps one below the other: what happens in words, and beside it (on a phone: below it) what it looks like.

const WORDS = 236, GUTTER = 34;
const APART = 28; // between words and drawing
const GAP = 34;

function numbered(index, y) {
  const ring = { cx: 11, cy: y - 5, r: 10.5, fill: "var(--paper)", stroke: "var(--line)", "stroke-width": 1.2 };
  return [svg("circle", ring), label(index + 1, 11, y - 0.8, { anchor: "middle", weight: 600, fill: "var(--ink)" })];
}

// Gives a function for the words of a step: its title, and its sentence for the reading level with `more` behind it.
export const stepText = ({ t, state }, facts) => (key, ...more) => ({
  title: t(`${key}.title`, facts), text: [`${key}.${state.get("level")}`, ...more].map((word) => t(word, facts)).join(" "),
});

// `steps`: { title, text, draw(width) → { node, height } }.
export function stepFigure(width, steps, name) {
  const beside = width >= 760;
  const words = beside ? WORDS : width - GUTTER;
  const room = beside ? width - GUTTER - WORDS - APART : width;
  const rail = svg("path", { stroke: "var(--line)", "stroke-width": 1.2, fill: "none" });
  const node = svg("svg", { role: "group", "aria-label": name }, rail);
  let y = 0, last = 0;
  steps.forEach((step, index) => {
    const foot = y + 17;
    node.append(...numbered(index, foot));
    last = foot;
    const title = paragraph(step.title, GUTTER, foot, words, { size: 14, weight: 600, fill: "var(--ink)" });
    const text = paragraph(step.text, GUTTER, foot + title.height + 1, words);
    const textHeight = 17 + title.height + text.height - 8;
    const drawing = step.draw(room);
    const [x, top] = beside ? [GUTTER + WORDS + APART, y + 4] : [0, y + textHeight + 8];
    node.append(title.node, text.node, svg("g", { transform: `translate(${x} ${top})` }, drawing.node));
    y += (beside ? Math.max(textHeight, drawing.height + 4) : textHeight + 8 + drawing.height) + GAP;
  });
  if (beside) rail.setAttribute("d", `M11 12V${last - 5}`);
  return resize(node, width, Math.ceil(y - GAP + 8));
}

// A table in a box that scrolls; its first column names the rows, the columns from `numbers` on are set to the right.
export function table(heads, rows, { numbers = 1, ...attributes } = {}) {
  const look = (n) => (n >= numbers ? "number" : null);
  const cell = (text, n) => el(n ? "td" : "th", { scope: n ? null : "row", class: look(n), dir: "auto" }, text);
  return el("div", { class: "scroll", ...attributes }, el("table", {},
    el("thead", {}, el("tr", {}, heads.map((head, n) => el("th", { scope: "col", class: look(n) }, head)))),
    el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map(cell))))));
}
