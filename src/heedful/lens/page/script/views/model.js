// The whole model as a map: from the stacks into a layer, a head and a pair of tokens. A block opens its view.
import { chosen, kindName, tokensAt } from "../attention/selection.js";
import { headsOf, kindOf } from "../choice.js";
import { either, el } from "../dom.js";
import { drawStacks } from "../drawing/stacks.js";
import { redrawn } from "../drawing/stage.js";
import { joined, visible } from "../drawing/text.js";

export const name = "model";
export const fits = (doc) => doc.layers.length > 0;

const WIDEST = 760;
const ATTENTIONS = { self_attention: "self", cross_attention: "cross" };

// The layer of a stack that is shown: the chosen one, or the one of the same number, or the last.
function layerIn(layers, { stack, layer }) {
  return layers.find((each) => each.stack === stack && each.layer === layer) ?? layers.find((each) => each.layer === layer) ?? layers.at(-1);
}

export function mount(root, context) {
  const { doc, state, t, open } = context;
  const fact = Object.fromEntries(doc.model.facts);
  let zoom = "whole";
  const show = (next) => {
    zoom = next;
    again();
  };
  const attentionIn = ({ stack, layer }, kind = "self") => doc.attentions.find((each) => each.stack === stack && each.layer === layer && each.kind === kind);
  // The views follow the attention that is chosen; without one of this kind, they stay.
  const select = (attention, ...views) => {
    if (attention) state.set({ attention: attention.id });
    if (views.length) open(...views);
  };

  function blocksOf(layer, stream) {
    return layer.norms.flatMap(({ name: part }) => {
      const kind = ATTENTIONS[part], attention = kind && attentionIn(layer, kind);
      const key = kind === "self" && attention?.causal ? "masked_attention" : part;
      const block = (id, word, dark, views, facts) => ({
        id: `${layer.stack}.${id}`, name: t(word), dark, shape: stream,
        tell: () => t(`${word}.text`, facts), go: () => select(kind && attention ? attention : attentionIn(layer), ...views),
      });
      const facts = attention && { heads: attention.heads.length, queries: doc.sequences[attention.queries].length, keys: doc.sequences[attention.keys].length };
      const main = {
        ...block(part, key, kind ? 0.42 : 0.28, kind ? ["heads", "head"] : ["layer"], facts), reads: kind === "cross",
        current: Boolean(attention) && attention.id === state.get("attention"),
      };
      const norm = block(`${part}_norm`, layer.order === "post" ? "add_norm" : "norm", 0.05, ["layer"]);
      return layer.order === "post" ? [main, { ...norm, bypass: "post" }] : [norm, { ...main, bypass: "pre" }];
    });
  }

  function stackOf(stack, isLast) {
    const layers = doc.layers.filter((each) => each.stack === stack), { sequence, order } = layers[0];
    const tokens = doc.sequences[sequence], entry = doc.entries?.[sequence], width = fact.d_model ?? entry?.d_model;
    const stream = [tokens.length, width].filter(Boolean), current = chosen(context).attention;
    const block = (place, word, dark, shape, ...views) => ({
      id: `${stack}.${word}`, name: t(word), place, dark, shape, tell: () => t(`${word}.text`), go: () => open(...views),
    });
    const added = entry ? entry.position : ["sinusoidal", "learned"].includes(doc.positions?.scheme);
    const shownLayer = layerIn(layers, current);
    const inside = zoom === "layer" ? blocksOf(shownLayer, stream) : layers.map((layer) => ({
      id: `${stack}.${layer.layer}`, name: t("layerName", layer), dark: 0.3, shape: stream, current: current.stack === stack && current.layer === layer.layer,
      reads: layer.norms.some(({ name: part }) => part === "cross_attention"), tell: () => t("layer.text", { parts: layer.norms.map((part) => t(part.name)).join(", ") }),
      go: () => (select(attentionIn(layer)), show("layer")),
    }));
    const title = zoom === "layer" ? t("oneLayer", { stack: t(stack), layer: shownLayer.layer }) : t("layers", { stack: t(stack), n: layers.length });
    return {
      text: entry ? joined(tokens.map(({ text, word }, n) => (n && word !== tokens[n - 1].word ? " " : "") + text)) : t("patches"),
      length: tokens.length, title,
      blocks: [
        block("below", entry ? "embedding" : "patch_embedding", 0.16, stream, "entry", "image", "series"),
        ...(added ? [block("below", "position", 0.05, stream, entry ? "entry" : "positions")] : []),
        ...inside,
        ...(order === "pre" ? [block("above", "final_norm", 0.05, stream, "layer")] : []),
        ...(isLast ? [block("above", doc.generation ? "vocabulary" : "result", 0.16, [], "next", "classes", "series", "image")] : []),
      ],
    };
  }

  // Where the reader is, from the layer to the pair: each step opens its view.
  function trail() {
    const { attention, head } = chosen(context), { rows, columns } = tokensAt(doc, attention), pair = state.get("pair");
    const step = (text, ...views) => el("button", { type: "button", "data-keep": `trail-${views[0]}`, onclick: () => open(...views) }, text);
    return el("nav", { class: "picks trail", "aria-label": t("trail") },
      step(t("layerName", attention), "layer"), step(kindName(context, kindOf(attention)), "heads", "head"),
      step(head === "mean" ? t("mean") : `${t("head")} ${head}`, "head"),
      step(`${visible(rows[pair.query].text)} → ${visible(columns[pair.key].text)}`, "numbers", "head"));
  }

  const again = redrawn(root, state, ["attention", "head", "pair"], (width) => {
    const { attention, head } = chosen(context);
    const names = ["encoder", "decoder"].filter((stack) => doc.layers.some((each) => each.stack === stack));
    const readout = el("p", { class: "readout", "aria-live": "polite" }, t("hint"));
    const memory = names.length > 1 && t("memory");
    const choose = (item) => (state.set({ head: item }), open("head"));
    const heads = headsOf(attention).map((item) => [item, item === "mean" ? t("mean") : String(item), { "aria-label": item === "mean" ? t("mean") : `${t("head")} ${item}` }]);
    return [
      el("div", { class: "picks" }, either(t("zoom"), [["whole", t("whole")], ["layer", t("one")]], zoom, show)),
      drawStacks(t("title"), Math.min(width, WIDEST), names.map((stack, n) => stackOf(stack, n === names.length - 1)), { readout, memory }),
      readout, trail(),
      zoom === "layer" && heads.length > 1 ? el("div", { class: "picks" }, el("span", {}, t("heads")), either(t("heads"), heads, head, choose)) : "",
    ];
  });
}
