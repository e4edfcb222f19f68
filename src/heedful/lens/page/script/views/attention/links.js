// Curves between chips: as wide as the weight they stand for.
import { svg } from "../../dom.js";

const WIDEST = 9, ARC = 84;

/** A curve from one chip to another; `side` is -1 to leave above, 1 below, for chips of one line. */
function curve(from, to, side) {
  const shift = side * 4, a = from.middle + shift, b = to.middle + shift;
  if (from.y === to.y) {
    const y = from.y + (side < 0 ? 0 : from.height);
    if (from === to) return `M${a - 9},${y}C${a - 24},${y + side * 46} ${a + 24},${y + side * 46} ${a + 9},${y}`;
    const h = y + side * Math.min(ARC, 18 + Math.abs(a - b) * 0.3);
    return `M${a},${y}C${a},${h} ${b},${h} ${b},${y}`;
  }
  const down = to.y > from.y, start = from.y + (down ? from.height : 0), end = to.y + (down ? 0 : from.height);
  const half = (start + end) / 2;
  return `M${a},${start}C${a},${half} ${b},${half} ${b},${end}`;
}

/** One curve: `share` of the strongest gives its width, `weight` its title. */
export function link({ from, to, side, share, colour, weight }) {
  const width = Math.max(0.8, WIDEST * share).toFixed(2), strength = (0.25 + 0.6 * share).toFixed(2);
  return svg(
    "path",
    { d: curve(from, to, side), fill: "none", stroke: colour, "stroke-width": width, "stroke-opacity": strength, "stroke-linecap": "round" },
    svg("title", {}, weight.toFixed(4)),
  );
}
