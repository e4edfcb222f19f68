// The signs of a branch's fate: told apart by shape and line, so that no colour is needed.
import { svg } from "../../dom.js";

export const FATES = ["chosen", "kept", "finished", "pruned"];

const LINES = {
  chosen: { stroke: "var(--accent)", "stroke-width": 3.2 },
  kept: { stroke: "var(--soft)", "stroke-width": 1.3 },
  finished: { stroke: "var(--soft)", "stroke-width": 1.3 },
  pruned: { stroke: "var(--soft)", "stroke-width": 1, "stroke-dasharray": "2 4", opacity: 0.6 },
};

export function line(fate, d, look = {}) {
  return svg("path", { d, fill: "none", "stroke-linecap": "round", ...LINES[fate], ...look });
}

// The sign with its middle at the origin. `end`: the answer ends here.
export function mark(fate, end = false) {
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
export function sample(fate, end) {
  const sign = svg("g", { transform: "translate(30 8)" }, mark(fate, end));
  return svg("svg", { width: 40, height: 16, "aria-hidden": "true" }, line(fate, "M1 8H23"), sign);
}

function square(half, look) {
  return svg("rect", { x: -half, y: -half, width: 2 * half, height: 2 * half, rx: 1, ...look });
}
