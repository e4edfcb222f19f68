// Which attention and head the reader chose, and its weights.
import { attentionOf as byId } from "../../choice.js";
import { averaged } from "./measure.js";

const KINDS = ["encoder.self", "decoder.self", "decoder.cross"];

export const kindOf = (attention) => `${attention.stack}.${attention.kind}`;

/** The kinds this model has, in the order in which a sentence passes them. */
export function kindsOf(doc) {
  return KINDS.filter((kind) => doc.attentions.some((attention) => kindOf(attention) === kind));
}

export function ofKind(doc, kind) {
  return doc.attentions.filter((attention) => kindOf(attention) === kind).sort((a, b) => a.layer - b.layer);
}

export function attentionOf({ doc, state }) {
  return byId(doc, state.get("attention"));
}

/** The head asked for, or the last there is: layers of one model may differ in heads. */
export function headOf(attention, head) {
  return head === "mean" ? head : Math.min(head, attention.heads.length - 1);
}

/** The attention and head that all views share. */
export function chosen(context) {
  const attention = attentionOf(context);
  return { attention, head: headOf(attention, context.state.get("head")) };
}

/** What it is compared with: the reader's choice if that reads the same tokens, else the next head. */
export function comparedWith(context) {
  const { attention, head } = chosen(context), asked = context.state.get("compare");
  const other = byId(context.doc, asked?.attention);
  if (other && kindOf(other) === kindOf(attention)) return { attention: other, head: headOf(other, asked.head) };
  return { attention, head: head === "mean" ? 0 : (head + 1) % attention.heads.length };
}

const means = new WeakMap();

/** The weights (queries × keys) of a head, or the mean of the layer's heads. */
export function weightsOf({ arrays }, { attention, head }) {
  if (head !== "mean") return arrays.get(attention.heads[head].weights);
  if (!means.has(attention)) {
    means.set(attention, Promise.all(attention.heads.map((one) => arrays.get(one.weights))).then(averaged));
  }
  return means.get(attention);
}

/** Runs `draw` with what `load` promises, unless a later call has overtaken it. */
export function latest(draw) {
  let turn = 0;
  return async (promise) => {
    const mine = ++turn, value = await promise;
    if (mine === turn) draw(value);
  };
}
