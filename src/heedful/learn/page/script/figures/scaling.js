// Weights of one query and means over many, as d_k grows: scores undivided, divided by √d_k, and by d_k.
import { hue } from "../../lens/color.js";
import { el, svg } from "../../lens/dom.js";
import { brief, label, number, resize } from "../../lens/drawing/text.js";
import { figure, live, namedChart, readout } from "../controls.js";

const WAYS = ["none", "root", "full"], MEASURES = ["largest", "variance", "entropy", "gradient"];
const HIGH = 92, HEAD = 24;

export const scaledScores = figure(760, { at: (data) => data.widths.indexOf(64), measure: "largest" }, ({ data, message, state, width, named }) => {
  // Of each way, the eight weights of one query as bars that together fill the height once.
  function weights() {
    const gap = width < 480 ? 14 : 36, wide = (width - 2 * gap) / WAYS.length, bar = wide / data.keys;
    const rows = svg("svg", { role: "img", "aria-label": message("weights", { d: data.widths[state.at] }) }, WAYS.map((way, n) => {
      const shares = data.measures[way][state.at].weights;
      return svg("g", { transform: `translate(${n * (wide + gap)} 0)` },
        label(message(way), 0, 13, { size: 13, weight: 600, fill: "var(--ink)" }),
        svg("rect", { y: HEAD, width: wide, height: HIGH, fill: "var(--tint)", rx: 4 }),
        shares.map((share, k) => svg("rect", { x: k * bar + 1.5, y: HEAD + (1 - share) * HIGH, width: bar - 3, height: Math.max(1, share * HIGH), fill: hue(n), rx: 1.5 },
          svg("title", {}, message("weight", { n: k + 1, weight: number(share) })))),
        label(message("most", { weight: number(Math.max(...shares), 2) }), 0, HEAD + HIGH + 16, { size: 12 }));
    }));
    return resize(rows, width, HEAD + HIGH + 32);
  }

  function curves() {
    const log = state.measure === "variance"; // from 1/1,024 to 1,024: by powers of ten
    const values = (way) => data.measures[way].map((measured) => (log ? Math.log10(measured.variance) : measured[state.measure]));
    return namedChart({
      series: WAYS.map((way) => ({ name: message(way), points: values(way).map((value, x) => [x, value]) })),
      width, high: 150, xNames: data.widths.map(String), xLabel: "d_k", name: message(`${state.measure}.name`),
      range: { largest: [0, 1], variance: [-3.2, 3.2], entropy: [0, Math.log2(data.keys)] }[state.measure],
      more: ({ x, y }) => [
        svg("path", { d: `M${x(state.at)} 6V156`, stroke: "var(--soft)", "stroke-width": 1, "stroke-dasharray": "2 3" }),
        WAYS.map((way, n) => svg("circle", { cx: x(state.at), cy: y(values(way)[state.at]), r: 4.5, fill: hue(n), stroke: "var(--card)", "stroke-width": 1.5 }))],
    });
  }

  return live(state, ({ slider, either }) => [
    slider("at", "d_k", [0, data.widths.length - 1], (at) => String(data.widths[at])),
    either("measure", message("measure"), named(MEASURES)),
  ], () => {
    const value = (way) => brief(data.measures[way][state.at][state.measure]);
    return [weights(), curves(), readout(el("b", {}, message(`${state.measure}.name`)), " ", message(`${state.measure}.text`, data),
      " ", message("values", { d: data.widths[state.at], none: value("none"), root: value("root"), full: value("full") }))];
  });
});
