// Which neurons of the feed-forward answered each token, and how many stayed silent.
import { hue, shade } from "../../colour.js";
import { svg } from "../../dom.js";
import { plane } from "./grid.js";
import { matrix } from "./matrix.js";
import { label, percent } from "./text.js";

const BARS = 96;

export function neurons(hidden, zeros, room, { t, note, tokens, look }) {
  const source = plane(hidden);
  const side = 76;
  const high = Math.min(18, Math.max(1.5, 420 / source.rows));
  const wide = Math.max(0.5, (room - side - BARS - 18) / source.columns);
  const block = matrix({
    name: "φ(x·W₁)", source, unit: [wide, high], rows: tokens, colour: (value) => shade(value / 255),
    watch: {
      look: (row, column, box) => {
        note.show(box, `${tokens[row]} · ${t("neuron")} ${column}: ${percent(source.at(row, column) / 255)}`);
        look(row);
      },
      leave: () => {
        note.hide();
        look(null);
      },
    },
  });
  const node = svg("g", {}, svg("g", { transform: `translate(${block.left} ${block.top})` }, block.node));
  if (zeros) node.append(silence(zeros, block, source.columns * wide, high, t));
  return { node, height: block.top + block.height + 4 };
}

function silence(zeros, block, width, high, t) {
  const start = block.left + width + 18;
  const title = label(t("silent"), 0, -8, { weight: 600, fill: "var(--ink)" });
  const node = svg("g", { transform: `translate(${start} ${block.top})` }, title);
  zeros.data.forEach((share, n) => {
    const bar = { y: n * high + 0.12 * high, height: high * 0.76 };
    const long = BARS - 38;
    const body = svg("rect", { ...bar, width: long * share, fill: hue(1), "data-token": n, class: "figure-bar" });
    node.append(svg("rect", { ...bar, width: long, fill: "var(--line)", opacity: 0.5 }), body);
    if (high >= 11) node.append(label(percent(share), long + 6, (n + 0.5) * high + 4, { size: 11 }));
  });
  return node;
}
