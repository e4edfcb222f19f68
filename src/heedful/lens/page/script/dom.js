// Elements without markup: text is always text, whatever it holds.

const SVG = "http://www.w3.org/2000/svg";

const isAbsent = (value) => value === null || value === undefined || value === false;

// Attributes, listeners (onclick: go) and styles of a node that is there; absent ones stay as they are.
export function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (isAbsent(value)) continue;
    if (name.startsWith("on") && typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (name === "style" && typeof value === "object") Object.entries(value).forEach((rule) => node.style.setProperty(...rule));
    else node.setAttribute(name, value === true ? "" : value);
  }
  return node;
}

function fill(node, attributes, children) {
  set(node, attributes).append(...children.flat(Infinity).filter((child) => !isAbsent(child)));
  return node;
}

// el("button", { class: "quiet", onclick: go, "aria-label": "Next" }, "›"): null and false leave out.
export const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
// The same for SVG.
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// Take everything out of a node.
export function clear(node) {
  node.replaceChildren();
  return node;
}

// Calls back with a node's width, once it has one and whenever it changes. It waits for the next frame, because a
// browser complains of an observer that changes what it observes.
export function onWidth(node, callback) {
  let lastWidth = 0;
  new ResizeObserver(() => requestAnimationFrame(() => {
    const width = Math.floor(node.clientWidth);
    if (!width || width === lastWidth) return;
    lastWidth = width;
    callback(width);
  })).observe(node);
}

// A list with its name before it: [value, text] to choose from, `choose(value)` is told; `key` keeps its focus.
export function dropdown(name, options, chosen, choose, key) {
  const select = el("select", { "data-keep": key, "aria-label": name, onchange: () => choose(options[select.selectedIndex][0]) },
    options.map(([, text]) => el("option", {}, text)));
  select.selectedIndex = options.findIndex(([value]) => value === chosen);
  return el("label", { class: "pick" }, el("span", {}, name), select);
}

// Names side by side, one of them pressed: [value, text, attributes] to choose from, `choose(value)` is told.
export function either(name, options, chosen, choose) {
  return el("div", { class: "either", role: "group", "aria-label": name }, options.map(([value, text, attributes]) => el("button", {
    type: "button", "aria-pressed": String(value === chosen), "data-keep": value, onclick: () => choose(value), ...attributes,
  }, text)));
}

// Calls `fill`, which puts other nodes into a root; what had the focus (by its data-keep) has it again.
export function refill(root, fill) {
  const key = root.contains(document.activeElement) ? document.activeElement.dataset.keep : undefined;
  fill();
  if (key) root.querySelector(`[data-keep="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

export const replace = (root, nodes) => refill(root, () => root.replaceChildren(...nodes));

// How far the arrow keys go: [down, right].
export const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

// Keys that a node takes for itself: `handle(key, event)` says false of those it leaves to the page.
export function onKeys(node, handle) {
  node.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || handle(event.key, event) === false) return;
    event.preventDefault();
    event.stopPropagation();
  });
}

// Calls back when the pointer comes upon a node and when it leaves.
export const onHover = (node, enter, leave) => set(node, { onpointerenter: enter, onpointerleave: leave });

// Which of `rows` × `columns` equal cells of a node the pointer is in: [row, column], the nearest where it is outside.
export function cellUnder(event, node, rows, columns) {
  const box = node.getBoundingClientRect();
  const place = (share, count) => Math.min(count - 1, Math.max(0, Math.floor(share * count)));
  return [place((event.clientY - box.top) / box.height, rows), place((event.clientX - box.left) / box.width, columns)];
}
