// Pairs of dimensions as clock hands: PE(pos), PE(pos + k), and what the matrix of k alone makes of PE(pos).
import { hue } from "../../lens/color.js";
import { svg } from "../../lens/dom.js";
import { brief, label, resize } from "../../lens/drawing/text.js";
import { dot, live, readout } from "../controls.js";

export function draw(root, data, message, state) {
  state.pos ??= 3;
  state.k ??= 5;
  const width = Math.min(root.clientWidth, 720), across = width < 480 ? 4 : 8;
  const unit = width / across, radius = Math.min(38, unit / 2 - 7), high = 2 * radius + 52;

  // Noon is sine 0 and cosine 1, so a hand turns as on a clock.
  function clock(pair, n, now, later, turned) {
    const [x, y] = [(n % across) * unit + unit / 2, Math.floor(n / across) * high + radius + 4];
    const at = ([sine, cosine]) => [x + radius * sine, y - radius * cosine];
    const hand = (to, look) => svg("path", { d: `M${x} ${y}L${at(to).join(" ")}`, "stroke-linecap": "round", ...look });
    const [cx, cy] = at(turned);
    return svg("g", {},
      svg("circle", { cx: x, cy: y, r: radius, fill: "none", stroke: "var(--line)", "stroke-width": 1.5 }),
      hand(now, { stroke: "var(--soft)", "stroke-width": 1.6, "stroke-dasharray": "3 3" }),
      hand(later, { stroke: hue(0), "stroke-width": 3 }),
      svg("circle", { cx, cy, r: 5, fill: "none", stroke: hue(1), "stroke-width": 2 }),
      label(`${2 * pair}, ${2 * pair + 1}`, x, y + radius + 18, { anchor: "middle", weight: 600, fill: "var(--ink)" }),
      label(`${brief(data.degrees[n])}°`, x, y + radius + 34, { anchor: "middle", size: 11 }));
  }

  live(root, state, ({ slider }) => [
    slider("pos", message("pos"), [0, data.positions]), slider("k", message("k"), [0, data.shifts.length - 1]),
  ], () => {
    const { pos, k } = state, [now, later] = [data.hands[pos], data.hands[pos + k]];
    const turned = data.shifts[k].map((matrix, n) => matrix.map((line) => dot(line, now[n])));
    const apart = Math.max(...turned.flatMap((hand, n) => hand.map((value, side) => Math.abs(value - later[n][side]))));
    const words = message("distance", { pos, k, sum: pos + k, apart: apart < 5e-5 ? "0.0000" : apart.toFixed(4) });
    const clocks = data.pairs.map((pair, n) => clock(pair, n, now[n], later[n], turned[n]));
    return [resize(svg("svg", { role: "img", "aria-label": words }, clocks), width, high * Math.ceil(clocks.length / across)), readout(words)];
  });
}
