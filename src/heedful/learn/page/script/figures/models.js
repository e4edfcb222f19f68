// Whole models: the paper's figure 1, whole or one layer of each stack; three builds; and the wirings of the families.
import { hue, ink, shade, shadeBytes } from "../../lens/color.js";
import { el, onKeys, svg } from "../../lens/dom.js";
import { lineChart } from "../../lens/drawing/chart.js";
import { equation, matrix, signed } from "../../lens/drawing/matrix.js";
import { drawStacks } from "../../lens/drawing/stacks.js";
import { label, number, resize } from "../../lens/drawing/text.js";
import { chapterLink, controls, figure, gridOf, live, readout, sized, times, written } from "../controls.js";

// From the foot: each block, its chapter, and how dark it is.
const LAYER = [["self_attention", "04", 0.42], ["self_attention_norm", "07", 0.05], ["feed_forward", "07", 0.28], ["feed_forward_norm", "07", 0.05]];
const within = (stack, blocks) => blocks.map(([id, ...more]) => [`${stack}_${id}`, ...more]);
const ENCODER = [["source_embedding", "02", 0.16], ["encoder_positions", "03", 0.05], ...within("encoder", LAYER)];
const DECODER = [
  ["target_embedding", "02", 0.16], ["decoder_positions", "03", 0.05], ["decoder_self_attention", "08", 0.42], ["decoder_self_attention_norm", "07", 0.05],
  ["decoder_cross_attention", "09", 0.42], ["decoder_cross_attention_norm", "07", 0.05], ...within("decoder", LAYER.slice(2)),
];
const OUTPUT = [["head", "09", 0.16], ["softmax", "09", 0.05]];
const LAYERS = { encoder: "n_encoder_layers", decoder: "n_decoder_layers" };
const count = (n) => n < 1e5 ? written(n)
  : n.toLocaleString(document.documentElement.lang, { notation: "compact", maximumSignificantDigits: 3 });

export const mapOfTheModel = figure(760, { view: "layer" }, ({ root, data, message, state, redraw, width, facts, tell, named, either }) => {
  const shapes = { ...data.shapes, softmax: data.shapes.head };

  const block = (place) => ([id, chapter, dark]) => ({
    id, name: message(id), dark, place, shape: shapes[id], bypass: id.endsWith("_norm") && "post", reads: id === "decoder_cross_attention",
    go: () => chapterLink(chapter)?.click(),
    tell() {
      const weights = data.weights[id] ? ` ${message("weights", { shape: times(data.weights[id]) })}` : "";
      const parameters = data.parameters[id] ? ` ${message("parameters", { n: count(data.parameters[id]) })}` : "";
      const link = chapterLink(chapter);
      return [`${message(`${id}.text`, data.settings)} ${message("output", { shape: times(shapes[id]) })}${weights}${parameters} `,
        link ? el("a", { href: link.href }, message("open", { n: Number(chapter) })) : ""];
    },
  });
  const layers = (column) => Array.from({ length: data.settings[LAYERS[column]] }, (_, n) => ({
    id: `${column}.${n + 3}`, name: message(`${column}.layer`, { n: n + 1 }), dark: 0.3, shape: shapes[`${column}_positions`], reads: column === "decoder",
    tell: () => message(`${column}.layer.text`, { n: count(data.layers[column]), shape: times(shapes[`${column}_positions`]) }),
    go: openLayer,
  }));
  const stacks = [["encoder", ENCODER, data.source, []], ["decoder", DECODER, data.target, OUTPUT]].map(([column, blocks, tokens, above]) => ({
    text: tokens.join(" "), length: tokens.length, title: message(`${column}.times`, { n: data.settings[LAYERS[column]] }),
    blocks: [...blocks.slice(0, 2).map(block("below")),
      ...(state.view === "layer" ? blocks.slice(2).map(block()) : layers(column)), ...above.map(block("above"))],
  }));

  function openLayer() {
    state.view = "layer";
    redraw();
    root.querySelector('[data-keep="layer"]').focus();
  }
  const drawing = drawStacks(message("name"), width, stacks, { readout: facts, memory: message("memory", { shape: times(shapes.encoder_feed_forward_norm) }) });
  tell("hint", { n: count(data.total) });
  return [controls(either("view", message("zoom"), named(["whole", "layer"]))), drawing, facts];
});

// The same sentence through three builds with the same weights; the one of torch is called in several ways.
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

const HIGH = 22, STEP = 27, WIDE = 68, FOOT = 24;
const COLORS = { embedding: 0.1, self_attention: 0.45, cross_attention: 0.75, feed_forward: 0.25, head: 0.1 };

// Models from the same parts, side by side, with who may see whom in one of them.
export const wirings = figure(800, { chosen: "T5" }, ({ data, message, state, redraw, width, facts, tell }) => {
  const columns = Math.max(2, Math.min(7, Math.floor(width / 168))), wide = width / columns;
  const most = Math.max(...data.models.flatMap(({ stacks }) => Object.values(stacks).map((blocks) => blocks.length))) + 2;
  const high = most * STEP + FOOT + 26;
  const choose = (name) => { state.chosen = name; redraw(); };

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
    const leave = () => tell("hint");
    const maps = model.sees.map(({ stack, kind, rows }) => [null, matrix({
      name: message(`${stack}.${kind}`), source: gridOf(rows), unit: [unit(rows), unit(rows)], color: (value) => shadeBytes(value * 0.55),
      watch: { look: (row, column) => tell(rows[row][column] ? "sees" : "blind", { query: row + 1, key: column + 1 }), leave },
    })]);
    const drawn = equation(maps, width);
    leave();
    return [
      readout(el("b", {}, message(model.name)), ` · ${message(model.class)}. ${message(`${model.name}.text`)} `,
        message("shapes", { inputs: model.inputs.map(times).join(message("and")), output: times(model.output), layers: Object.values(model.layers).join(" + "), parameters: written(model.parameters) })),
      sized(message("maps"), width, drawn.height + 16, svg("g", { transform: "translate(0 12)" }, drawn.node)), facts,
    ];
  }
  const rows = Math.ceil(data.models.length / columns);
  return [sized(message("name"), width, rows * high, data.models.map(card)), ...detail(data.models.find(({ name }) => name === state.chosen))];
});

const ROW = 11;

// A series of prices, and the patches it is cut into.
export const pricePatches = figure(700, { length: 6, stride: 3 }, ({ root, data, message, state, width }) => {
  const days = data.prices.length, range = [data.lengths[0], data.lengths.at(-1)];
  let most = state.length, strides;
  return live(state, ({ slider }) => {
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
});
