// A strip of all steps: how probable the written token was at each. A click or a drag goes there.
import { shade } from "../../colour.js";
import { svg } from "../../dom.js";
import { label, percent } from "../figures/text.js";
import { currentRow, stepAt } from "./rows.js";
import { visible } from "./words.js";

const HIGH = 44;
const HEAD = 18;

export function certaintyStrip({ doc, state, t }) {
  const shares = doc.written.map((_, row) => Math.exp(stepAt(doc, row)?.logprob ?? -Infinity));

  // A group whose upper edge lies at y.
  function draw(width, y) {
    const now = currentRow(doc, state);
    const wide = Math.min(width / shares.length, 64);
    const gap = wide > 6 ? 2 : 0;
    const all = wide * shares.length;
    const bars = svg("g", { transform: `translate(0 ${y + HEAD + 6})` });
    bars.append(svg("line", { x1: 0, x2: all, y1: HIGH + 0.5, y2: HIGH + 0.5, stroke: "var(--line)" }));
    shares.forEach((share, row) => {
      const high = Math.max(1, HIGH * share);
      const look = row === now ? "var(--accent)" : shade(0.25 + 0.5 * share);
      const bar = { x: row * wide, y: HIGH - high, width: Math.max(0.6, wide - gap), height: high, fill: look };
      bars.append(svg("rect", bar));
    });
    const middle = (now + 0.5) * wide - gap / 2;
    bars.append(svg("path", { d: `M${middle} ${HIGH + 3}l5 8h-10z`, fill: "var(--accent)" }));
    const touch = { fill: "transparent", style: { cursor: "pointer", "touch-action": "pan-y" } };
    const ground = svg("rect", { x: 0, y: -4, width: all, height: HIGH + 18, ...touch });
    const said = `${now + 1}: ${visible(doc.written[now])} ${percent(shares[now])}`;
    bars.append(ground);
    listen(ground);
    return svg("g", { role: "img", "aria-label": `${t("strip")}. ${said}` }, label(t("strip"), 0, y + 10), bars);
  }

  function listen(ground) {
    const go = (event) => {
      const box = ground.getBoundingClientRect();
      const row = Math.floor(((event.clientX - box.left) / box.width) * shares.length);
      state.set({ step: Math.min(shares.length - 1, Math.max(0, row)) });
    };
    ground.addEventListener("pointerdown", go);
    ground.addEventListener("pointermove", (event) => event.buttons && go(event));
  }

  return { draw, height: HEAD + HIGH + 22 };
}
