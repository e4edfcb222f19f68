// What is left of tokens and of the gradient at each depth, with and without bypass and norm.
import { el } from "../../lens/dom.js";
import { brief } from "../../lens/drawing/text.js";
import { controls, controlsOf, namedChart, readout } from "../controls.js";

const WIRINGS = ["bare", "norm", "post", "pre"], MEASURES = ["gradient", "likeness", "size"];

export function draw(root, data, message, state, redraw) {
  state.depth ??= 24;
  state.measure ??= "gradient";
  const { either } = controlsOf(state, redraw), traces = data.traces[state.depth];
  // The gradient is read where it ends up, at the first layer; the others at the last.
  const value = (wiring) => {
    const values = traces[wiring][state.measure];
    return state.measure === "gradient" ? `${values[0] <= -12 ? "≤ " : ""}${brief(10 ** values[0])}` : brief(values.at(-1));
  };
  root.append(
    controls(either("depth", message("layers"), data.depths.map((depth) => [depth, message("deep", { n: depth })])),
      either("measure", message("measure"), MEASURES.map((measure) => [measure, message(measure)]))),
    namedChart({
      series: WIRINGS.map((wiring) => ({ name: message(wiring), points: traces[wiring][state.measure].map((value, at) => [at, value]) })),
      width: Math.min(root.clientWidth, 760), high: 200, xLabel: message("depth"), name: message(`${state.measure}.name`),
      range: { gradient: [-12, 2], likeness: [0, 1.02] }[state.measure],
    }),
    readout(el("b", {}, message(`${state.measure}.name`)), " ", message(`${state.measure}.text`), " ",
      WIRINGS.map((wiring) => `${message(wiring)}: ${value(wiring)}`).join(" · ")));
}
