// The candidates of a step and what can be said of them: pure functions, no page.
import { furthest, instead, textOf } from "./branches.js";
import { firstRow, stepAt, textBefore } from "./rows.js";
import { PART, joined, tail, visible } from "./words.js";

// { list, written, rest }: the likeliest, the written one among them even where it is not likely, and all others' share.
export function candidatesOf(doc, row) {
  const step = stepAt(doc, row);
  if (!step) return { list: [], written: null, rest: 0 };
  const list = step.top.map(([text, share]) => ({ text, share, written: false }));
  const share = Math.exp(step.logprob);
  const alike = list.filter((candidate) => Math.abs(candidate.share - share) <= 1e-4 * share); // texts can be alike too
  const found = alike.find((candidate) => candidate.text === step.token) ?? alike[0];
  const written = found ?? { text: step.token, share };
  written.written = true;
  if (!found) list.push(written);
  const rest = 1 - list.reduce((sum, candidate) => sum + candidate.share, 0);
  return { list, written, rest: rest > 1e-6 ? rest : 0 };
}

// Bits of the shown shares, scaled to sum to 1, and the most they could have.
export function entropyOf(list) {
  const sum = list.reduce((total, candidate) => total + candidate.share, 0);
  const bits = list.reduce((total, { share }) => total - (share > 0 ? (share / sum) * Math.log2(share / sum) : 0), 0);
  return { bits, most: Math.log2(list.length) };
}

// A probability from one in a million to 1 on a logarithmic scale from 0 to 1.
export function logShare(share) {
  return Math.max(0, 1 + Math.log10(Math.max(share, 1e-12)) / 6);
}

// The few likeliest, and among them the one that was written.
export function fewest(list, count) {
  const few = list.slice(0, count);
  return few.some((candidate) => candidate.written) ? few : [...few.slice(0, -1), list.find((candidate) => candidate.written)];
}

// What an alternative would have meant: what the beam made of it, or how the text would read.
export function meaningOf(doc, tree, row, { text, share }) {
  const node = tree && instead(tree, row - firstRow(doc) + 1, text, share);
  if (node?.fate === "pruned") return { key: "pruned", text: "" };
  const end = node && furthest(tree, node);
  if (node) return { key: end === node ? "once" : "kept", text: textOf(tree, end) };
  if (visible(text) === PART) return { key: "part", text: "" };
  return { key: "instead", text: joined([tail(textBefore(doc, row)), text]) };
}
