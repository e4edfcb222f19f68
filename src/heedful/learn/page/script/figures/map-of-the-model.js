// The paper's figure 1, whole or one layer of each stack: a block tells its shapes and opens its chapter.
import { el } from "../../lens/dom.js";
import { drawStacks } from "../../lens/drawing/stacks.js";
import { chapterLink, controls, controlsOf, readout } from "../controls.js";

// From the foot: each block, its chapter, and how dark it is.
const ENCODER = [
  ["source_embedding", "02", 0.16], ["encoder_positions", "03", 0.05], ["encoder_self_attention", "04", 0.42],
  ["encoder_self_attention_norm", "07", 0.05], ["encoder_feed_forward", "07", 0.28], ["encoder_feed_forward_norm", "07", 0.05],
];
const DECODER = [
  ["target_embedding", "02", 0.16], ["decoder_positions", "03", 0.05], ["decoder_self_attention", "08", 0.42],
  ["decoder_self_attention_norm", "07", 0.05], ["decoder_cross_attention", "09", 0.42],
  ["decoder_cross_attention_norm", "07", 0.05], ["decoder_feed_forward", "07", 0.28], ["decoder_feed_forward_norm", "07", 0.05],
];
const OUTPUT = [["head", "09", 0.16], ["softmax", "09", 0.05]];
const LAYERS = { encoder: "n_encoder_layers", decoder: "n_decoder_layers" };
const written = (n) => n.toLocaleString("en-US");
const times = (sizes) => sizes.map(written).join(" × ");
const count = (n) => n < 1e5 ? written(n)
  : n.toLocaleString(document.documentElement.lang, { notation: "compact", maximumSignificantDigits: 3 });

export function draw(root, data, message, state, redraw) {
  state.view ??= "layer";
  const width = Math.min(root.clientWidth, 760);
  const shapes = { ...data.shapes, softmax: data.shapes.head };
  const facts = readout();

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
  facts.append(message("hint", { n: count(data.total) }));
  root.append(controls(controlsOf(state, redraw).either("view", message("zoom"), ["whole", "layer"].map((view) => [view, message(view)]))), drawing, facts);
}
