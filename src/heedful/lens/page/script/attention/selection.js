// Which attention and head the reader chose, and its weights.
import { averaged, peak, rowOf, total } from "./measure.js";
import { attentionOf, headsOf, kindOf, nearestHead, ofKind, sameLayer } from "../choice.js";
import { dropdown, el, replace, set } from "../dom.js";

const KINDS = ["encoder.self", "decoder.self", "decoder.cross"];

/** The kinds this model has, in the order in which a sentence passes them. */
export const kindsOf = (doc) => KINDS.filter((kind) => doc.attentions.some((attention) => kindOf(attention) === kind));

/** The attention and head that all views share. */
export const chosen = ({ doc, state }) => ({ attention: attentionOf(doc, state.get("attention")), head: state.get("head") });

/** What it is compared with: the reader's choice if that reads the same tokens, else the next head. */
export function comparedWith(context) {
  const { attention, head } = chosen(context), choice = context.state.get("compare");
  const other = attentionOf(context.doc, choice?.attention);
  if (other && kindOf(other) === kindOf(attention)) return { attention: other, head: nearestHead(other, choice.head) };
  return { attention, head: head === "mean" ? 0 : (head + 1) % attention.heads.length };
}

const means = new WeakMap();

/** The weights (queries × keys) of a head, or the mean of the layer's heads. */
export function weightsOf({ arrays }, { attention, head }) {
  if (head !== "mean") return arrays.get(attention.heads[head].weights);
  if (!means.has(attention)) {
    means.set(attention, Promise.all(attention.heads.map((item) => arrays.get(item.weights))).then(averaged));
  }
  return means.get(attention);
}


// What stands at the rows and columns of an attention. A decoder's row reads one token and predicts the next: in
// cross-attention it looks for what it is about to write, so there it goes by that word; else by the token it has read.

const outputTokens = new WeakMap();

/** Rows that are named by what they write: the sequence "written". */
export const writes = ({ written }, { kind }) => kind === "cross" && Boolean(written);

/** The names of the sequences of an attention. */
export function sidesOf(doc, attention) {
  return { queries: writes(doc, attention) ? "written" : attention.queries, keys: attention.keys };
}

/** The tokens of a sequence; those written are the ones read, one later, and the last. */
export function tokensOf(doc, sequence) {
  if (sequence !== "written") return doc.sequences[sequence];
  if (!outputTokens.has(doc)) {
    const last = { piece: "", word: null, special: doc.written.at(-1) === "■", part: doc.written.at(-1).endsWith("◌") };
    outputTokens.set(doc, doc.written.map((text, row) => ({ ...(doc.sequences.target[row + 1] ?? last), text })));
  }
  return outputTokens.get(doc);
}

/** The tokens at the rows and at the columns. */
export function tokensAt(doc, attention) {
  const { queries, keys } = sidesOf(doc, attention);
  return { rows: tokensOf(doc, queries), columns: tokensOf(doc, keys) };
}

/** Which cells of an attention are masked: keys that come after their query. */
export const hiddenIn = ({ causal }) => (row, column) => causal && column > row;

/** For the words above a view: "cross" where its rows are named by what they write. */
export function crossVariant(doc, state) {
  const attention = attentionOf(doc, state.get("attention"));
  return attention && writes(doc, attention) ? "cross" : "";
}

/** A kind's name for the reading level. */
export const kindName = ({ state, t }, kind) => t(state.get("level") === "deep" ? `${kind}.deep` : kind);

/** "Layer 2 · Head 5", "Layer 2 · Mean", or of an only head "Layer 2". */
export function headName({ t }, { attention, head }) {
  if (attention.heads.length === 1) return t("layerName", attention);
  return `${t("layerName", attention)} · ${head === "mean" ? t("mean") : `${t("head")} ${head}`}`;
}

/**
 * Lists for a layer and a head, and for the kind of attention where `kinds` are given: `get()` gives attention and head,
 * `choose(attention, head)` keeps them. A list of one is not shown.
 */
export function picker({ doc, state, t }, get, choose, kinds = []) {
  const row = el("div", { class: kinds.length ? "pickers" : "picks", role: "group" });
  const draw = () => {
    const { attention, head } = get(), layers = ofKind(doc, kindOf(attention));
    const heads = headsOf(attention).map((item) => [item, item === "mean" ? t("mean") : String(item)]);
    const lists = [
      dropdown(t("attention"), kinds.map((kind) => [sameLayer(doc, kind, attention), t(kind)]), attention, (item) => choose(item, head), "attention"),
      dropdown(t("layer"), layers.map((item) => [item, String(item.layer)]), attention, (item) => choose(item, head), "layer"),
      dropdown(t("head"), heads, head, (number) => choose(attention, number), "head"),
    ];
    replace(set(row, { "aria-label": t("attention") }), lists.filter((list) => list.querySelector("option + option")));
    row.hidden = !row.childElementCount;
  };
  state.on(["attention", "head", "compare", "language"], draw);
  draw();
  return row;
}

/** The lists of the bar, which all views follow. */
export function pickers(context) {
  const { doc, state } = context;
  if (!doc.attentions.length) return el("div", { class: "pickers" });
  return picker(context, () => chosen(context), (attention, head) => state.set({ attention: attention.id, head }), kindsOf(doc));
}


/** A function that gives the cross-attention and head to show: the page's where that is one, else the last that was. */
export function crossChoice({ doc, state }) {
  const layers = ofKind(doc, "decoder.cross");
  let last = { attention: layers.at(-1), head: headsOf(layers.at(-1))[0] };
  return () => {
    const attention = layers.find((item) => item.id === state.get("attention"));
    if (attention) last = { attention, head: state.get("head") };
    return last;
  };
}

// What the image and the series share: their tokens are patches, after `first` that are none, and one of them looks.

/** The token that looks: the pinned one, else `otherwise`. */
export function lookingToken({ doc, state }, otherwise) {
  const pinned = state.get("pinned");
  return pinned?.sequence === "source" && doc.sequences.source[pinned.index] ? pinned.index : otherwise;
}

/** Lets a token of the source look. */
export const pin = ({ state }, index) => state.set({ pinned: { sequence: "source", index } });

/** What a token gives to the patches, which of them most, and what is left for the tokens before them. */
export function sharesOf(weights, from, first) {
  const row = [...rowOf(weights, from)], patches = row.slice(first);
  return { patches, rest: total(row.slice(0, first)), best: first + peak(patches) };
}
