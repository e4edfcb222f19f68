// What every view of a writing model asks of the document. Row i of the decoder predicted written[i].

export function firstRow(doc) {
  return Math.max(0, (doc.prompt ?? 1) - 1); // the rows before it only read what was given
}

export function currentRow(doc, state) {
  const row = state.get("step") ?? firstRow(doc);
  return Math.min(Math.max(row, 0), doc.written.length - 1);
}

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
  const letters = bare(read.map((token) => token.text).join(""));
  for (const text of [doc.answer ?? "", `${doc.question} ${doc.answer}`]) {
    if (!bare(text).startsWith(letters)) continue;
    let end = 0;
    for (let seen = 0; seen < letters.length; end += 1) seen += bare(text[end]).length;
    return text.slice(0, end);
  }
  return null;
}

// Tokens of one word are written together; several that spell one letter each show all of it, and it is written once.
function glued(read) {
  const apart = read.filter((token, place) => {
    const before = read[place - 1];
    return !before || token.text !== before.text || token.word !== before.word || token.piece === before.piece;
  });
  const space = (token, place) => (place && (token.word === null || token.word !== apart[place - 1].word) ? " " : "");
  return apart.map((token, place) => space(token, place) + token.text).join("").trim();
}
