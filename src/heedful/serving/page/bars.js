// Shares as bars; those that hardly count are behind a word.

import { clear, el } from "./look/dom.js";

const FIRST = 8;

// [{label, probability or score}, …], the largest first; scores are no shares, and are written, not drawn.
export function bars({ speech }, root, sorted, { scores = false } = {}) {
  const text = (value) => scores ? speech.number(value, { maximumSignificantDigits: 4 })
    : speech.number(value, { style: "percent", maximumFractionDigits: value > 0.0995 || value === 0 ? 0 : 1 });
  const row = ({ label, probability, score }, place) => line(label, probability ?? score, place);
  const line = (label, value, place) => el("li", { class: place ? null : "first" },
    el("span", { class: "label", dir: "auto" }, label), el("span", { class: "value" }, text(value)),
    !scores && el("span", { class: "track", "aria-hidden": "true" },
      el("i", { style: { width: `${100 * Math.min(1, Math.max(0, value))}%` } })));
  const list = el("ol", { class: "bars" }, sorted.slice(0, FIRST).map(row));
  clear(root).append(list);
  if (sorted.length <= FIRST) return;
  const rest = speech.say("button", "showAll", { n: sorted.length }, { type: "button", class: "small" });
  rest.addEventListener("click", () => {
    list.append(...sorted.slice(FIRST).map((one, place) => row(one, place + FIRST)));
    rest.remove();
  });
  root.append(rest);
}
