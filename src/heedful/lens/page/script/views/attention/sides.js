// What stands at the rows and columns of an attention. A decoder's row reads one token and predicts the next: in
// cross-attention it looks for what it is about to write, so there it goes by that word; else by the token it has read.

const made = new WeakMap();

/** Rows that are named by what they write: the sequence "written". */
export function writes({ written }, { kind }) {
  return kind === "cross" && Boolean(written);
}

/** The names of the sequences of an attention. */
export function sidesOf(doc, attention) {
  return { queries: writes(doc, attention) ? "written" : attention.queries, keys: attention.keys };
}

/** The tokens of a sequence; those written are the ones read, one later, and the last. */
export function tokensOf(doc, sequence) {
  if (sequence !== "written") return doc.sequences[sequence];
  if (!made.has(doc)) {
    const last = { piece: "", word: null, special: doc.written.at(-1) === "■", part: doc.written.at(-1).endsWith("◌") };
    made.set(doc, doc.written.map((text, row) => ({ ...(doc.sequences.target[row + 1] ?? last), text })));
  }
  return made.get(doc);
}

/** The tokens at the rows and at the columns. */
export function tokensAt(doc, attention) {
  const { queries, keys } = sidesOf(doc, attention);
  return { rows: tokensOf(doc, queries), columns: tokensOf(doc, keys) };
}

/** For the words above a view: "cross" where its rows are named by what they write. */
export function crossVariant(doc, state) {
  const attention = doc.attentions.find((one) => one.id === state.get("attention"));
  return attention && writes(doc, attention) ? "cross" : "";
}
