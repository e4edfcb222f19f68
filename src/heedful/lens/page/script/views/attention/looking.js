// What the token view shows: everything about one token, or, at rest, where each token looks most.
import { sidesOf } from "./sides.js";
import { columnOf, largest, rowOf, strongest } from "./measure.js";

export const DRAWN = 12;
const ALL_AT_REST = 40;

/** A token's row as one who looks and column as one looked at; null for a token of another sequence. */
export function lookOf({ weights, attention, doc }, { sequence, index }) {
  const { queries, keys } = sidesOf(doc, attention);
  const out = sequence === queries && index < weights.shape[0] ? rowOf(weights, index) : null;
  const into = sequence === keys && index < weights.shape[1] ? columnOf(weights, index) : null;
  return out || into ? { out, into } : null;
}

/** The strongest links from and to one token, and the shares that shade all others. */
export function focused({ attention, doc }, active, { out, into }) {
  const { queries, keys } = sidesOf(doc, attention);
  const toward = (sequence, values) => values && { sequence, values, most: largest(values) };
  const links = (side, make) => {
    const drawn = side ? strongest(side.values, DRAWN) : [];
    return drawn.map((index) => {
      const weight = side.values[index], other = { sequence: side.sequence, index };
      return { weight, share: weight / side.most, ...make(other) };
    });
  };
  const outward = toward(keys, out), inward = toward(queries, into);
  return {
    active, out: outward, into: inward,
    links: [
      ...links(outward, (other) => ({ from: active, to: other, side: -1 })),
      ...links(inward, (other) => ({ from: other, to: active, side: 1 })),
    ],
  };
}

/** Each token's strongest link, of a long input only the strongest of these, and how much each is looked at. */
export function atRest({ weights, attention, doc, received }) {
  const { queries, keys } = sidesOf(doc, attention);
  const best = Array.from({ length: weights.shape[0] }, (_, query) => {
    const row = rowOf(weights, query), [key] = strongest(row, 1);
    const from = { sequence: queries, index: query }, to = { sequence: keys, index: key };
    return { from, to, weight: row[key], side: -1 };
  });
  const some = best.length > ALL_AT_REST;
  const kept = some ? strongest(best.map((one) => one.weight), DRAWN).map((place) => best[place]) : best;
  const most = largest(kept.map((one) => one.weight));
  const links = kept.map((one) => ({ ...one, share: (0.5 * one.weight) / most }));
  const into = { sequence: keys, values: received, most: largest(received) };
  return { active: null, links, some, out: null, into };
}
