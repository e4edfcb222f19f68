// What the pages share around their contents, those of a server too: the brand, the sign for the theme, the memory.
import { el, svg } from "./dom.js";

// Many lines that meet in one: what attention does.
export function brand() {
  const lines = [3, 7.5, 12, 16.5, 21].map((y, row) => svg("path", {
    d: `M2 ${y}C12 ${y} 12 12 20 12`, fill: "none", stroke: "currentColor", "stroke-linecap": "round",
    "stroke-width": row === 1 ? 2.4 : 1, opacity: row === 1 ? 1 : 0.55,
  }));
  const dot = svg("circle", { cx: 20, cy: 12, r: 2.6, fill: "currentColor" });
  return el("span", { class: "brand" },
    svg("svg", { viewBox: "0 0 24 24", width: 22, height: 22, "aria-hidden": "true" }, lines, dot), "Heedful");
}

export function themeIcon() {
  return svg("svg", { viewBox: "0 0 20 20", width: 18, height: 18, "aria-hidden": "true" },
    svg("circle", { cx: 10, cy: 10, r: 7.25, fill: "none", stroke: "currentColor", "stroke-width": 1.5 }),
    svg("path", { d: "M10 4.5a5.5 5.5 0 0 1 0 11z", fill: "currentColor" }));
}

// A page from a file, or a browser that keeps nothing, may refuse.
export function stored(key) {
  try {
    return localStorage.getItem(`heedful.${key}`);
  } catch {
    return null;
  }
}

export function store(key, value) {
  try {
    localStorage.setItem(`heedful.${key}`, value);
  } catch {
    // Not remembered: the page works all the same.
  }
}
