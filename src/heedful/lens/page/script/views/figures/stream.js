// How long each token's vector is on its way through a layer.
import { hue } from "../../colour.js";
import { svg } from "../../dom.js";
import { extent, line, rules, scale, ticks } from "./chart.js";
import { brief, label, widthOf } from "./text.js";

const HIGH = 190;
const SIDE = 36;

export function stream(residual, parts, room, { t, note, tokens, look: told, deep }) {
  const wide = Math.min(560, room - SIDE - 20);
  const range = extent([...residual.data]);
  const x = scale([0, parts.length - 1], [SIDE + 14, SIDE + wide - 14]);
  const y = scale(range, [HIGH + 6, 6]);
  const node = svg("g", { role: "img", "aria-label": t("stream.title") }, rules(ticks(range, 4), y, SIDE, wide));
  const points = (length) => parts.map((_, part) => [x(part), y(length(part))]);
  const faint = Math.max(0.12, Math.min(0.55, 8 / tokens.length));
  tokens.forEach((text, n) => {
    const look = { stroke: hue(0), "stroke-width": 1.2, opacity: faint, "data-token": n, class: "figure-line" };
    const way = line(points((part) => residual.at(n, part)), look);
    way.addEventListener("pointerenter", (event) => {
      const lengths = parts.map((_, part) => brief(residual.at(n, part))).join(" → ");
      note.show({ left: event.clientX, width: 0, top: event.clientY }, `${text}: ${lengths}`);
      told(n);
    });
    way.addEventListener("pointerleave", () => {
      note.hide();
      told(null);
    });
    node.append(way);
  });
  const mean = (part) => tokens.reduce((sum, _, n) => sum + residual.at(n, part), 0) / tokens.length;
  node.append(line(points(mean), { stroke: "var(--ink)", "stroke-width": 3, "pointer-events": "none" }));
  const crowded = parts.some((part) => widthOf(part, 12) > wide / parts.length - 4); // then every second stands lower
  parts.forEach((part, n) => {
    const anchor = n === 0 ? "start" : n === parts.length - 1 ? "end" : "middle";
    const at = n === 0 ? SIDE : n === parts.length - 1 ? SIDE + wide : x(n);
    node.append(label(part, at, HIGH + 26 + (crowded && n % 2 ? 16 : 0), { anchor }));
    node.append(svg("circle", { cx: x(n), cy: y(mean(n)), r: 4.5, fill: "var(--ink)", "pointer-events": "none" }));
    const bold = { anchor: "middle", weight: 600, fill: "var(--ink)" };
    if (deep) node.append(label(brief(mean(n)), x(n), y(mean(n)) - 10, bold));
  });
  return { node, height: HIGH + (crowded ? 48 : 32) };
}
