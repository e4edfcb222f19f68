// What every view of a writing model asks of the document. Row i of the decoder predicted written[i]; the state's step
// is the row of the moment.

// The rows before it only read what was given.
export const firstRow = (doc) => Math.max(0, (doc.prompt ?? 1) - 1);

// Whether what this row predicted was there already: a text to go on from, or a person's answer.
export const isGiven = (doc, row) => Boolean(doc.given) || row < firstRow(doc);
// For the words above a view: "given" where a person wrote the answer.
export const givenVariant = (doc) => (doc.given ? "given" : "");


export function stepAt(doc, row) {
  const steps = doc.generation?.steps ?? [];
  return steps[row - (doc.written.length - steps.length)] ?? null;
}

// What stands before the token of this row: cut from the text where that is possible, else put together from tokens.
export function textBefore(doc, row) {
  const read = doc.sequences.target.slice(0, row + 1).filter((token) => !token.special);
  return cut(doc, read) ?? glued(read);
}

const bare = (text) => text.replace(/[\s␣]/g, ""); // ␣ is a space that is a token of its own

function cut(doc, read) {
  const letters = bare(spelling(read));
  for (const text of [doc.answer ?? "", `${doc.question} ${doc.answer}`]) {
    if (!bare(text).startsWith(letters)) continue;
    let end = 0;
    for (let seen = 0; seen < letters.length; end += 1) seen += bare(text[end]).length;
    return text.slice(0, end);
  }
  return null;
}

// What the tokens add up to: a letter is there once it is complete.
const spelling = (tokens) => tokens.map(({ text, part }) => (part ? text.replace(/◌$/, "") : text)).join("");

// Tokens of one word are written together.
function glued(read) {
  const space = (token, place) => (place && (token.word === null || token.word !== read[place - 1].word) ? " " : "");
  return read.map((token, place) => space(token, place) + spelling([token])).join("").trim();
}
