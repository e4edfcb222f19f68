// What every view of a writing model asks of the document. Row i of the decoder predicted written[i]; the state's step
// is the row of the moment.
import { joined, visible } from "../drawing/text.js";

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

// The beam's nodes as a tree: pure functions, no page.

// { byId, children, columns, chosen }: columns[step] holds that step's nodes, survivors first, each by its score;
// chosen[step] is the node on the way to the answer.
export function treeOf({ nodes }) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const children = new Map(nodes.map((node) => [node.id, []]));
  const columns = [];
  const chosen = [];
  for (const node of nodes) {
    if (node.parent !== null) children.get(node.parent).push(node);
    (columns[node.step] ??= []).push(node);
    if (node.fate === "chosen") chosen[node.step] = node;
  }
  const order = (a, b) => (a.fate === "pruned") - (b.fate === "pruned") || b.score - a.score;
  for (const list of [...columns, ...children.values()]) list?.sort(order);
  return { byId, children, columns, chosen };
}

// The nodes from the first word to this one.
export function wayTo(tree, node) {
  const way = [];
  for (let at = node; at && at.parent !== null; at = tree.byId.get(at.parent)) way.unshift(at);
  return way;
}

export const textOf = (tree, node) => visible(joined(wayTo(tree, node).map((item) => item.text)));

// Where a branch got to: the best of what was kept after it.
export function furthest(tree, node) {
  const next = tree.children.get(node.id).find((child) => child.fate !== "pruned");
  return next ? furthest(tree, next) : node;
}

// The sibling of the chosen node at this step that wrote `text`, of this probability, instead; or null.
export function instead(tree, step, text, share) {
  const parent = tree.chosen[step - 1];
  const alike = (node) => node.text === text && Math.abs(Math.exp(node.logprob - parent.logprob) / share - 1) < 0.01;
  return (parent && tree.children.get(parent.id).find((node) => node.fate !== "chosen" && alike(node))) ?? null;
}

// 1 for the most probable of its step.
const rankOf = (tree, node) => 1 + tree.columns[node.step].filter((other) => other.logprob > node.logprob).length;
const greedier = (tree) => (node) => tree.children.get(node.parent).some((sibling) => sibling.logprob > node.logprob);

// What the search did, as facts that the page puts into a sentence.
export function storyOf(tree) {
  const way = tree.chosen.slice(1);
  const first = way[0];
  const leader = tree.columns[1]?.reduce((best, node) => (node.logprob > best.logprob ? node : best));
  const worst = way.reduce((low, node) => (rankOf(tree, node) > rankOf(tree, low) ? node : low), first);
  const ends = [...tree.byId.values()].filter((node) => node.fate === "finished" || node === way.at(-1));
  const likeliest = ends.reduce((best, node) => (node.logprob > best.logprob ? node : best), way.at(-1));
  return {
    upset: Boolean(first && rankOf(tree, first) > 1),
    first, leader, worst, worstRank: worst ? rankOf(tree, worst) : 1,
    winner: way.at(-1), likeliest, likeliestText: textOf(tree, likeliest),
    greedy: !way.some(greedier(tree)),
    ends: ends.length,
    pruned: [...tree.byId.values()].filter((node) => node.fate === "pruned").length,
  };
}

// What the length penalty divides a logprob by: its value, its formula, and the formula with numbers.
export function penaltyOf({ penalty, length_penalty: alpha }, n) {
  if (penalty === "power") return { value: n ** alpha, formula: "n^α", filled: `${n}^${alpha}` };
  return { value: ((5 + n) / 6) ** alpha, formula: "((5 + n) / 6)^α", filled: `((5 + ${n}) / 6)^${alpha}` };
}
