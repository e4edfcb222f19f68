// The same sentence through three builds with the same weights; the one of torch is called in several ways.
import { el, svg } from "../../lens/dom.js";
import { equation, matrix, signed } from "../../lens/drawing/matrix.js";
import { number } from "../../lens/drawing/text.js";
import { controls, figure, gridOf, readout, sized } from "../controls.js";

export const threeBuilds = figure(780, { call: "right" }, ({ data, message, state, width, facts, tell, named, dropdown }) => {
  const features = data.yours[0].length, color = signed(gridOf(data.yours));
  const unit = width < 560 ? Math.min(16, (width - 40) / features) : Math.min(14, (width - 150) / 3 / features);
  const builds = { yours: data.yours, torch: data.torch[state.call], heedful: data.heedful };
  const difference = data.difference[state.call], right = difference < 1e-9;
  const leave = () => tell("hint");
  const look = (row, column) => tell("cell", {
    token: row + 1, feature: column + 1, ...Object.fromEntries(Object.entries(builds).map(([name, rows]) => [name, number(rows[row][column])])),
  });
  const block = (name, numbers, rows) => matrix({ name: message(name), source: gridOf(numbers), unit: [unit, 26], color, watch: { look, leave }, rows });
  const tokens = builds.yours.map((_, n) => String(n + 1)), sign = right ? "=" : "≠";
  const row = equation([[null, block("yours", builds.yours, tokens)], [sign, block("torch", builds.torch)], [sign, block("heedful", builds.heedful)]], width);
  // What torch gives minus what your classes give.
  const gap = builds.torch.map((values, row) => values.map((value, column) => value - builds.yours[row][column]));
  const below = equation([[null, block("difference", gap, tokens)]], width);
  leave();
  return [
    controls(dropdown("call", message("call"), named(Object.keys(data.torch)))),
    sized(message("name"), width, row.height + below.height + 32, row.node, svg("g", { transform: `translate(0 ${row.height + 26})` }, below.node)),
    readout(el("b", {}, `${message(state.call)}: `), message(`${state.call}.text`), " ",
      message("facts", { difference: right ? difference.toExponential() : String(difference) })), facts];
});
