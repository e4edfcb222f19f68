// What figures share: their controls, the text for what is looked at, and maps and charts with their size.
import { dropdown, either, el, replace, svg } from "../lens/dom.js";
import { legend, lineChart, lineLook } from "../lens/drawing/chart.js";
import { grid, matrix } from "../lens/drawing/matrix.js";
import { resize } from "../lens/drawing/text.js";

export const gridOf = (rows) => grid(rows.length, rows[0].length, (row, column) => rows[row][column]);
// The sum of products of two rows.
export const dot = (a, b) => a.reduce((sum, value, n) => sum + value * b[n], 0);

// Whole numbers with their thousands apart, and shapes.
export const written = (n) => n.toLocaleString("en-US");
export const times = (sizes) => sizes.map(written).join(" × ");

export const controls = (...nodes) => el("div", { class: "controls" }, nodes);
export const readout = (...words) => el("p", { class: "readout" }, words);
export const caption = (...words) => el("p", { class: "caption" }, words);

// The link to a chapter in the list of chapters; a page of its own may have none.
export const chapterLink = (number) => document.querySelector(`li[data-chapter="${number}"] a`);

// A slider with its value behind it, as `text(value)`; `change(value)` is told.
export function slider(name, [min, max], value, change, text = String) {
  const output = el("output", {}, text(value));
  const input = el("input", { type: "range", min, max, value, "aria-label": name, "aria-valuetext": text(value), oninput: () => {
    output.textContent = text(Number(input.value));
    input.setAttribute("aria-valuetext", output.textContent);
    change(Number(input.value));
  } });
  return el("label", { class: "slider" }, el("span", {}, name), input, output);
}

// Controls of a state by its keys. Each stores the reader's choice and calls `show`, which may draw them again or not.
export function controlsOf(state, show) {
  const set = (key) => (value) => { state[key] = value; show(key); };
  return {
    either(key, name, options) {
      const node = either(name, options, state[key], (value) => {
        [...node.children].forEach((button, n) => button.setAttribute("aria-pressed", String(options[n][0] === value)));
        set(key)(value);
      });
      return node;
    },
    dropdown: (key, name, options) => dropdown(name, options, state[key], set(key), key),
    slider: (key, name, range, text) => slider(name, range, state[key], set(key), text),
  };
}

// Controls that stay, as a slider must while it is dragged, and below them what `view()` gives, after each choice anew.
export function live(state, panel, view) {
  const body = el("div", {}), show = () => replace(body, view()), above = controls(panel(controlsOf(state, show)));
  show();
  return [above, body];
}

export const indexed = (texts) => texts.map((text, n) => [n, text]);

// A figure at most `most` wide. `initial` has the state that it begins with (a function is called with the data), and
// `paint` gives its nodes from: its data, messages and state, `redraw()`, the controls of its state, a readout `facts`
// with `tell(key, values)` to fill it, and `named(keys)`, the options of controls.
export const figure = (most, initial, paint) => (root, data, message, state, redraw) => {
  for (const [key, value] of Object.entries(initial)) state[key] ??= typeof value === "function" ? value(data) : value;
  const facts = readout(), tell = (key, values) => facts.replaceChildren(message(key, values));
  const named = (keys) => keys.map((key) => [key, message(key)]);
  const width = Math.min(root.clientWidth, most);
  root.append(...paint({ root, data, message, state, redraw, width, facts, tell, named, ...controlsOf(state, redraw) }));
};

// A drawing with a name for screen readers.
export const sized = (name, width, height, ...nodes) => resize(svg("svg", { role: "group", "aria-label": name }, nodes), width, height);

// A matrix with its names, alone in a drawing; its first column stands at least `left` from the edge.
export function map(width, options, left = 0) {
  const block = matrix(options);
  return sized(options.name, width, block.top + block.height + 6,
    svg("g", { transform: `translate(${Math.max(left, block.left)} ${block.top})` }, block.node));
}

// A line chart below the names of its lines, unless a chart above has them; `more(chart)` gives nodes to draw upon it.
export function namedChart({ series, width, more = () => [], isNamed = true, ...options }) {
  const names = isNamed ? legend(series.map(({ name, look }, n) => [name, look ?? lineLook(n)]), 0, width) : { height: -6 };
  const top = names.height + 6;
  const chart = lineChart({ series, width, ...options });
  return sized(options.name, width, top + chart.height, names.node, svg("g", { transform: `translate(0 ${top})` }, chart.node, more(chart)));
}
