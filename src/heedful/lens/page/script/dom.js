// Elements without markup: text is always text, whatever it holds.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on") && typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (name === "style" && typeof value === "object") style(node, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

function style(node, rules) {
  for (const [name, value] of Object.entries(rules)) node.style.setProperty(name, value);
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
  let known = 0;
  new ResizeObserver(() => requestAnimationFrame(() => {
    const width = Math.floor(node.clientWidth);
    if (!width || width === known) return;
    known = width;
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

// Keys that a node takes for itself: `handle(key, event)` says false of those it leaves to the page.
export function onKeys(node, handle) {
  node.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || handle(event.key, event) === false) return;
    event.preventDefault();
    event.stopPropagation();
  });
}

// Calls back when the pointer comes upon a node and when it leaves.
export function onHover(node, enter, leave) {
  node.addEventListener("pointerenter", enter);
  node.addEventListener("pointerleave", leave);
}
