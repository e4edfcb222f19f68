// Models from the same parts, side by side: their blocks, and for the chosen one who may see whom.
import { ink, shade, shadeBytes } from "../../lens/color.js";
import { el, onKeys, svg } from "../../lens/dom.js";
import { equation, matrix } from "../../lens/drawing/matrix.js";
import { label } from "../../lens/drawing/text.js";
import { gridOf, readout, sized } from "../controls.js";

const HIGH = 22, STEP = 27, WIDE = 68, FOOT = 24;
const COLORS = { embedding: 0.1, self_attention: 0.45, cross_attention: 0.75, feed_forward: 0.25, head: 0.1 };
const written = (sizes) => sizes.map((n) => n.toLocaleString("en-US")).join(" × ");

export function draw(root, data, message, state, redraw) {
  state.chosen ??= "T5";
  const width = Math.min(root.clientWidth, 800);
  const columns = Math.max(2, Math.min(7, Math.floor(width / 168))), wide = width / columns;
  const most = Math.max(...data.models.flatMap(({ stacks }) => Object.values(stacks).map((blocks) => blocks.length))) + 2;
  const high = most * STEP + FOOT + 26;

  function card(model, n) {
    const stacks = Object.entries(model.stacks), left = (n % columns) * wide, top = Math.floor(n / columns) * high;
    const chosen = model.name === state.chosen, inside = stacks.length * (WIDE + 6) - 6, start = (wide - inside) / 2;
    const node = svg("g", { transform: `translate(${left} ${top})`, tabindex: 0, role: "button", "data-keep": model.name, style: { cursor: "pointer" },
      "aria-pressed": String(chosen), "aria-label": `${message(model.name)}: ${message(model.class)}`, onclick: () => choose(model.name) },
      svg("rect", { x: 2, y: 2, width: wide - 6, height: high - 8, rx: 9, fill: "var(--tint)", stroke: chosen ? "var(--accent-2)" : "var(--line)", "stroke-width": chosen ? 2.5 : 1 }),
      label(message(model.name), wide / 2 - 1, 21, { size: 13, weight: 650, anchor: "middle", fill: "var(--ink)" }));
    stacks.forEach(([stack, blocks], column) => {
      const last = column === stacks.length - 1, x = start + column * (WIDE + 6);
      ["embedding", ...blocks, ...(last ? ["head"] : [])].forEach((kind, row) => {
        const y = high - FOOT - (row + 1) * STEP, paper = shade(COLORS[kind]);
        node.append(svg("rect", { x, y, width: WIDE, height: HIGH, rx: 5, fill: paper, stroke: "var(--line)" }),
          label(message(kind), x + WIDE / 2, y + 15, { size: 11, anchor: "middle", fill: ink(paper) }));
      });
      node.append(label(message(`${model.name}.${stack}`), x + WIDE / 2, high - FOOT + 10, { size: 11, anchor: "middle" }));
    });
    if (stacks.length > 1) { // the memory, from the encoder's top to the decoder's cross-attention
      const y = high - FOOT - 3 * STEP + HIGH / 2, x = start + WIDE;
      node.append(svg("path", { d: `M${x} ${y}h6`, stroke: "var(--accent)", "stroke-width": 2.5 }));
    }
    onKeys(node, (key) => (key === "Enter" || key === " " ? choose(model.name) : false));
    return node;
  }

  function detail(model) {
    const unit = (rows) => Math.max(7, Math.min(20, 110 / Math.max(rows.length, rows[0].length)));
    const cellText = readout(message("hint"));
    const maps = model.sees.map(({ stack, kind, rows }) => [null, matrix({
      name: message(`${stack}.${kind}`), source: gridOf(rows), unit: [unit(rows), unit(rows)], color: (value) => shadeBytes(value * 0.55),
      watch: { look: (row, column) => { cellText.textContent = message(rows[row][column] ? "sees" : "blind", { query: row + 1, key: column + 1 }); },
        leave: () => { cellText.textContent = message("hint"); } },
    })]);
    const drawn = equation(maps, width);
    return [
      readout(el("b", {}, message(model.name)), ` · ${message(model.class)}. ${message(`${model.name}.text`)} `,
        message("shapes", { inputs: model.inputs.map(written).join(message("and")), output: written(model.output), layers: Object.values(model.layers).join(" + "), parameters: model.parameters.toLocaleString("en-US") })),
      sized(message("maps"), width, drawn.height + 16, svg("g", { transform: "translate(0 12)" }, drawn.node)), cellText,
    ];
  }
  const rows = Math.ceil(data.models.length / columns);
  function choose(name) {
    state.chosen = name;
    redraw();
  }
  root.append(sized(message("name"), width, rows * high, data.models.map(card)), ...detail(data.models.find(({ name }) => name === state.chosen)));
}
