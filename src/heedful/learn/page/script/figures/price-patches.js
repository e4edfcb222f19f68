// A series of prices and the patches it is cut into.
import { hue } from "../../lens/color.js";
import { svg } from "../../lens/dom.js";
import { lineChart } from "../../lens/drawing/chart.js";
import { label, resize } from "../../lens/drawing/text.js";
import { live, readout } from "../controls.js";

const ROW = 11;

export function draw(root, data, message, state) {
  state.length ??= 6;
  state.stride ??= 3;
  const width = Math.min(root.clientWidth, 700), days = data.prices.length, range = [data.lengths[0], data.lengths.at(-1)];
  let most = state.length, strides;
  live(root, state, ({ slider }) => {
    strides = () => slider("stride", message("stride"), [1, most]);
    return [slider("length", message("length"), range), strides()];
  }, () => {
    if (most !== state.length) { // a stride beyond the length would leave days out
      most = state.length;
      state.stride = Math.min(state.stride, most);
      root.querySelector(".slider:last-child").replaceWith(strides());
    }
    const { stride } = state;
    const { patches, days: used } = data.counts[`${state.length},${stride}`];
    const chart = lineChart({ series: [{ name: message("price"), points: data.prices.map((price, day) => [day + 1, price]) }],
      width, high: 120, domain: [0.5, days + 0.5], xLabel: message("day"), name: message("prices") });
    const first = days - used, top = chart.height + 8, overlap = Math.ceil(state.length / stride);
    const drawing = svg("svg", { role: "img", "aria-label": message("name", { n: patches }) }, chart.node);
    for (let n = 0; n < patches; n += 1) {
      const from = first + n * stride + 0.5, y = top + (n % overlap) * ROW * 1.5;
      const [left, right] = [chart.x(from), chart.x(from + state.length)];
      drawing.append(svg("rect", { x: left + 1, y, width: right - left - 2, height: ROW, rx: 3, fill: hue(n % 2 ? 5 : 0) }),
        label(String(n + 1), (left + right) / 2, y + ROW - 2, { size: 9.5, anchor: "middle", fill: "var(--card)", weight: 700 }));
    }
    if (first) drawing.append(svg("rect", { x: chart.x(0.5), y: 6, width: chart.x(first + 0.5) - chart.x(0.5), height: 120, fill: "var(--soft)", opacity: 0.18 }));
    return [resize(drawing, width, top + overlap * ROW * 1.5 + 4),
      readout(message("facts", { days, length: state.length, stride, n: patches }), first ? ` ${message("dropped", { n: first })}` : "")];
  });
}
