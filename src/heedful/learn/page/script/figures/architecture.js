// The paper's figure 1, whole or one layer of each stack: a block tells its shapes and opens its chapter.
import { el } from "../../lens/dom.js";
import { drawStacks } from "../../lens/drawing/stacks.js";
import { chapterLink, controls, figure, times, written } from "../controls.js";

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
