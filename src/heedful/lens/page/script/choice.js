// Which attention, head and pair are chosen when the page opens, and how they stay together afterwards.

export const attentionOf = (doc, id) => doc.attentions.find((attention) => attention.id === id);
// What can be chosen of a layer: the mean, then each head; of one head there is no mean.
export const headsOf = ({ heads }) => (heads.length > 1 ? ["mean", ...heads.keys()] : [0]);
// The head asked for, or the nearest there is: layers of one model may differ in heads.
export const nearestHead = (attention, head) => headsOf(attention).includes(head) ? head : clip(head, attention.heads.length);
export const kindOf = (attention) => `${attention.stack}.${attention.kind}`;

// Attentions of one kind, from the first layer to the last.
export function ofKind(doc, kind) {
  return doc.attentions.filter((attention) => kindOf(attention) === kind).sort((a, b) => a.layer - b.layer);
}

// The attention of another kind in the same layer, or in the first where there is none.
export function sameLayer(doc, kind, { layer }) {
  const layers = ofKind(doc, kind);
  return layers.find((item) => item.layer === layer) ?? layers[0];
}

// Where a translation opens: its last cross-attention; anything else: its last layer.
function opening(doc) {
  const cross = doc.attentions.filter((attention) => attention.kind === "cross");
  return (cross.length ? cross : doc.attentions).at(-1);
}

// The row that wrote the last word: what only ends a sentence says little.
function tellingRow({ written }, rows) {
  const last = written?.findLastIndex((text) => /\p{L}/u.test(text)) ?? -1;
  return last < 0 ? rows - 2 : last;
}

export function firstChoice(doc) {
  const attention = opening(doc);
  const rows = doc.sequences.target?.length ?? doc.sequences.source?.length ?? 1;
  const firstStep = doc.kind === "writing" ? (doc.prompt ?? 1) - 1 : 0;
  return {
    attention: attention?.id ?? null,
    head: attention ? headsOf(attention)[0] : 0, // of a single head nearly all may go to one token
    compare: null,
    view: null, // the one that was gone to
    step: Math.max(firstStep, tellingRow(doc, rows), 0),
    token: null,
    pinned: null,
    pair: { query: Math.min(1, rows - 1), key: 0 },
  };
}

// Head, pair and step stay within what there is.
export function reconciler(doc) {
  return (next) => {
    const fixed = {};
    const attention = attentionOf(doc, next.attention);
    if (attention) {
      fixed.head = nearestHead(attention, next.head);
      const [queries, keys] = [doc.sequences[attention.queries].length, doc.sequences[attention.keys].length];
      fixed.pair = { query: clip(next.pair.query, queries), key: clip(next.pair.key, keys) };
    }
    if (doc.sequences.target) fixed.step = clip(next.step, doc.sequences.target.length);
    return fixed;
  };
}

const clip = (index, size) => Math.min(Math.max(Number(index) || 0, 0), Math.max(size - 1, 0));
