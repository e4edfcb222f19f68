// The two colour scales of the maps, and the strip that explains one.
import { diverging, divergingBytes, shade, shadeBytes } from "../../colour.js";
import { clear, el } from "../../dom.js";

export const SCALES = {
  weights: { colour: shade, bytes: shadeBytes, low: 0 },
  difference: { colour: diverging, bytes: divergingBytes, low: -1 },
};

/** A strip of a scale's colours; `draw(from, to)` puts a number at each end. */
export function createLegend({ colour, low }) {
  const node = el("p", { class: "legend" });
  return {
    node,
    draw(from, to) {
      const stops = Array.from({ length: 17 }, (_, step) => colour(low + (step / 16) * (1 - low)));
      const strip = el("span", { class: "strip", style: { background: `linear-gradient(90deg,${stops.join(",")})` } });
      clear(node).append(el("span", {}, from), strip, el("span", {}, to));
    },
  };
}
