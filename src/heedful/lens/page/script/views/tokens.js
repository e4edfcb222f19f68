// The tokens themselves: point at one to see what it looks at and what looks at it.
import { columnOf, columnSums, largest, rowOf, strongest } from "../attention/measure.js";
import { chosen, crossVariant, sidesOf, tokensOf, weightsOf, writes } from "../attention/selection.js";
import { createChips } from "../attention/sentence.js";
import { hue } from "../color.js";
import { clear, el } from "../dom.js";
import { latest } from "../drawing/stage.js";
import { isGiven } from "../generation/answer.js";

export const name = "tokens";
export const fits = (doc) => doc.attentions.length > 0;
export const variant = crossVariant;

export function mount(root, context) {
  const { doc, state, t } = context;
  const story = el("div", { class: "story", "aria-live": "polite" });
  const chips = createChips(context);
  let current = null;
  root.classList.add("attention");
  root.append(chips.node, story);

  const follow = () => {
    if (!current) return;
    const active = state.get("token") ?? state.get("pinned");
    const seen = active && lookOf(current, active);
    const view = seen ? focused(current, active, seen) : atRest(current);
    const drawn = chips.show(view);
    const lines = seen ? describe(context, current, active, seen, drawn) : [el("p", { class: "soft" }, restWords(t, view, drawn))];
    clear(story).append(...lines);
  };
  const draw = latest((weights) => {
    const { attention } = chosen(context);
    current = { weights, attention, doc, received: columnSums(weights) };
    chips.draw(attention);
    follow();
  });
  const load = () => draw(weightsOf(context, chosen(context)));
  chips.onResize(follow);
  state.on(["attention", "head", "language", "level", "theme"], load);
  state.on(["token", "pinned"], follow);
  return load();
}

function restWords(t, { some, links }, drawn) {
  if (!drawn) return t("restShade");
  return some ? t("restSome", { drawn: links.length }) : t("restLinks");
}

function describe({ doc, state, t }, { attention, received: sums, weights }, active, { out, into }, drawn) {
  const deep = state.get("level") === "deep", token = tokensOf(doc, active.sequence)[active.index].text;
  const { queries, keys } = sidesOf(doc, attention), cross = writes(doc, attention) ? ".cross" : "";
  const list = (values, sequence) => {
    const named = strongest(values, deep ? 5 : 3).map((place) => {
      const self = sequence === active.sequence && place === active.index;
      const name = self ? t("itself") : t("quote", { text: tokensOf(doc, sequence)[place].text });
      return deep ? `${name} ${values[place].toFixed(4)}` : `${name} (${Math.round(values[place] * 100)}%)`;
    });
    return deep || named.length < 2 ? named.join(", ") : named.slice(0, -1).join(", ") + t("and") + named.at(-1);
  };
  const line = (number, text) => el("p", {}, el("i", { class: "swatch", style: { background: hue(number) } }), text);
  const lines = [];
  if (out) lines.push(line(0, t(`out${cross}`, { token, list: list(out, keys) })));
  else lines.push(line(0, t("outNone", { token })));
  if (into && largest(into) > 0) {
    const evenly = (weights.shape[0] / weights.shape[1]).toFixed(2);
    const gets = deep ? ` ${t("gets", { sum: sums[active.index].toFixed(4), even: evenly })}` : "";
    lines.push(line(1, t(`into${cross}`, { token, list: list(into, queries) }) + gets));
  } else lines.push(line(1, t(into ? "intoLast" : "intoNone", { token })));
  const notes = [];
  const next = active.sequence === "target" && doc.written?.[active.index];
  if (next) notes.push(t(isGiven(doc, active.index) ? "readsGiven" : "reads", { token, next }));
  if (active.sequence === "written") notes.push(t("before", { token, read: doc.sequences.target[active.index].text }));
  const all = Math.max(out ? out.length : 0, into ? into.length : 0);
  if (drawn && all > DRAWN) notes.push(t("some", { drawn: DRAWN }));
  if (notes.length) lines.push(el("p", { class: "soft" }, notes.join(" ")));
  return lines;
}

// What the token view shows: everything about one token, or, at rest, where each token looks most.

const DRAWN = 12, ALL_AT_REST = 40;

/** A token's row as one who looks and column as one looked at; null for a token of another sequence. */
function lookOf({ weights, attention, doc }, { sequence, index }) {
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
function atRest({ weights, attention, doc, received }) {
  const { queries, keys } = sidesOf(doc, attention);
  const best = Array.from({ length: weights.shape[0] }, (_, query) => {
    const row = rowOf(weights, query), [key] = strongest(row, 1);
    const from = { sequence: queries, index: query }, to = { sequence: keys, index: key };
    return { from, to, weight: row[key], side: -1 };
  });
  const some = best.length > ALL_AT_REST;
  const strongestLinks = some ? strongest(best.map((item) => item.weight), DRAWN).map((place) => best[place]) : best;
  const most = largest(strongestLinks.map((item) => item.weight));
  const links = strongestLinks.map((item) => ({ ...item, share: (0.5 * item.weight) / most }));
  const into = { sequence: keys, values: received, most: largest(received) };
  return { active: null, links, some, out: null, into };
}
