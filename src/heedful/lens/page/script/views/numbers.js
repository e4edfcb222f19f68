// The way through attention, in numbers: a whole sentence as matrices, then one pair of tokens.
import { ink } from "../colour.js";
import { el } from "../dom.js";
import { attentionOf, headOf, kindOf } from "./attention/chosen.js";
import { tokensAt } from "./attention/sides.js";
import { kindName, shared } from "./attention/words.js";
import { drawn } from "./figures/drawn.js";
import { shares } from "./figures/matrix.js";
import { en, ko } from "./figures/numbers_words.js";
import { pairOf } from "./figures/pair.js";
import { pathOf } from "./figures/path.js";
import { way } from "./figures/way.js";
import { visible } from "./generation/words.js";

export const name = "numbers";

export const words = { en: { ...shared.en, ...en }, ko: { ...shared.ko, ...ko } };

const MANY = 48; // tokens, of which one is chosen from a list

// A recurrent model has neither layers nor these numbers; of any other they may have been left out, which is said.
export function fits(doc) {
  return doc.attentions.length > 0 && (doc.layers.length > 0 || doc.attentions.some((attention) => attention.numbers));
}

// Which layers have numbers, to be chosen with a click.
function elsewhere(context) {
  const { doc, state, t } = context;
  const there = doc.attentions.filter((attention) => attention.numbers);
  if (there.length === 0) return [el("p", { class: "figure-note" }, t("none"))];
  const offer = (attention) => el("button",
    { type: "button", onclick: () => state.set({ attention: attention.id }) },
    `${kindName(context, kindOf(attention))} · ${t("layerName", attention)}`);
  return [el("p", { class: "figure-note" }, t("missing")), el("div", { class: "figure-offers" }, there.map(offer))];
}

// One token of a row of chips; from a long text, out of a list.
function chips({ name, title, texts, chosen, choose, paint }) {
  const chip = (text, n) => el("label", { style: paint?.(n) },
    el("input", { type: "radio", name, checked: n === chosen, "data-keep": `${name}-${n}`, onchange: () => choose(n) }),
    text);
  return el("fieldset", { class: "figure-chips" }, el("legend", {}, title), texts.map(chip));
}

function list({ name, title, texts, chosen, choose }) {
  const options = texts.map((text, n) => el("option", { selected: n === chosen }, `${n} · ${text}`));
  const select = el("select", { "data-keep": name, onchange: () => choose(select.selectedIndex) }, options);
  return el("label", { class: "pick" }, el("span", {}, title), select);
}

// Which token asks and which is looked at: the latter stand on the colour of their share.
function chooser({ state, t }, { pair, tokens, path }) {
  const colour = shares(path.weights);
  const paint = (n) => {
    const background = colour(path.weights.at(pair.query, n));
    return { background, color: ink(background) };
  };
  const one = (place, texts, look) => ({
    name: `pair-${place}`, title: t(place), texts, chosen: pair[place],
    choose: (n) => state.set({ pair: { ...pair, [place]: n } }), ...look,
  });
  const both = [one("query", tokens.queries), one("key", tokens.keys, { paint })];
  return el("div", { class: "figure-choice" }, both.map((row) => (row.texts.length > MANY ? list : chips)(row)));
}

export function mount(root, context) {
  const { doc, arrays, state, t } = context;
  drawn(root, state, ["attention", "head", "pair"], async (width, note) => {
    const attention = attentionOf(context);
    if (!attention.numbers) return elsewhere(context);
    const asked = headOf(attention, state.get("head"));
    const head = asked === "mean" ? 0 : asked;
    const path = await pathOf(arrays, attention, head, Boolean(doc.digits));
    const pair = state.get("pair");
    const { rows, columns } = tokensAt(doc, attention);
    const texts = (tokens) => tokens.map((token) => visible(token.text));
    const tokens = { queries: texts(rows), keys: texts(columns) };
    const all = { context, width, attention, head, path, pair, note, tokens };
    return [
      asked === "mean" ? el("p", { class: "figure-note" }, t("oneHead", { head })) : "",
      way(all),
      el("h3", {}, t("pair")), el("p", { class: "figure-note" }, t("choose")), chooser(context, all), ...pairOf(all),
    ];
  });
}
