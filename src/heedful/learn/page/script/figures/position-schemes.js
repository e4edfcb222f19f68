// Five schemes side by side: what each makes of every pair of query and key position.
import { svg } from "../../lens/dom.js";
import { lineChart } from "../../lens/drawing/chart.js";
import { matrix, row, shares, signed } from "../../lens/drawing/matrix.js";
import { number, resize } from "../../lens/drawing/text.js";
import { controls, controlsOf, gridOf, readout } from "../controls.js";

const GAP = 36;

export function draw(root, data, message, state, redraw) {
  state.scheme ??= "sinusoidal";
  const width = Math.min(root.clientWidth, 760), beside = width >= 560;
  const source = gridOf(data.maps[state.scheme]), whole = state.scheme === "relative", middle = source.rows / 2;
  const size = Math.min(300, beside ? width * 0.45 : width), unit = size / source.columns;
  const text = (value) => (whole ? String(value) : number(value));
  const facts = readout(message(`${state.scheme}.text`));
  const look = (query, key) => (facts.textContent =
    message("cell", { query, key, distance: String(key - query).replace("-", "−"), value: text(source.at(query, key)) }));
  const block = matrix({
    name: message("map"), source, unit: [unit, unit], color: whole ? shares(source) : signed(source),
    watch: { look, leave: () => (facts.textContent = message(`${state.scheme}.text`)), start: [middle, middle] },
  });
  const points = row(source, middle).map((value, key) => [key - middle, value]);
  const wide = beside ? width - size - GAP : width;
  const chart = lineChart({ series: [{ name: message(state.scheme), points }], width: wide, high: beside ? size - 26 : 150, xLabel: message("distance"), name: message("chart", { n: middle }), dots: true });
  chart.node.setAttribute("transform", beside ? `translate(${size + GAP} ${block.top - 6})` : `translate(0 ${block.top + block.height + 14})`);
  const high = beside ? block.top + size + 20 : block.top + block.height + chart.height + 14;
  const drawing = svg("svg", { role: "group", "aria-label": message("name") }, svg("g", { transform: `translate(0 ${block.top})` }, block.node), chart.node);
  const names = Object.keys(data.maps).map((scheme) => [scheme, message(scheme)]);
  root.append(controls(controlsOf(state, redraw).either("scheme", message("scheme"), names)), resize(drawing, width, high), facts);
}
