// The way through attention, in numbers: a whole sentence as matrices, then one pair of tokens.
import { el } from "../dom.js";
import { attentionOf, headOf, kindOf } from "./attention/chosen.js";
import { kindName, shared } from "./attention/words.js";
import { drawn } from "./figures/drawn.js";
import { en, ko } from "./figures/numbers_words.js";
import { pairOf } from "./figures/pair.js";
import { pathOf } from "./figures/path.js";
import { way } from "./figures/way.js";

export const name = "numbers";

export const words = { en: { ...shared.en, ...en }, ko: { ...shared.ko, ...ko } };

export function fits(doc) {
  return doc.attentions.some((attention) => attention.numbers);
}

// Which layers have numbers, to be chosen with a click.
function elsewhere(context) {
  const { doc, state, t } = context;
  const there = doc.attentions.filter((attention) => attention.numbers);
  if (there.length === 0) return [el("p", { class: "figure-note" }, t("none"))];
  const offer = (attention) => el("button",
    { type: "button", class: "plain", onclick: () => state.set({ attention: attention.id }) },
    `${kindName(context, kindOf(attention))} · ${t("layerName", attention)}`);
  return [el("p", { class: "figure-note" }, t("missing")), el("div", { class: "figure-offers" }, there.map(offer))];
}

function chooser({ state, t }, pair, tokens) {
  const list = (word, names, place) => {
    const choose = () => state.set({ pair: { ...pair, [word]: select.selectedIndex } });
    const select = el("select", { "data-keep": `pair-${word}`, onchange: choose },
      names.map((text, n) => el("option", { value: n }, `${n} · ${text}`)));
    select.selectedIndex = place;
    return el("label", { class: "pick" }, el("span", {}, t(word)), select);
  };
  return el("div", { class: "picks" }, list("query", tokens.queries, pair.query), list("key", tokens.keys, pair.key));
}

export function mount(root, context) {
  const { doc, arrays, state, t } = context;
  drawn(root, state, ["attention", "head", "pair"], async (width, note) => {
    const attention = attentionOf(context);
    if (!attention.numbers) return elsewhere(context);
    const asked = headOf(attention, state.get("head"));
    const head = asked === "mean" ? 0 : asked;
    const path = await pathOf(arrays, attention, head);
    const pair = state.get("pair");
    const texts = (sequence) => doc.sequences[sequence].map((token) => token.text);
    const tokens = { queries: texts(attention.queries), keys: texts(attention.keys) };
    const all = { context, width, attention, head, path, pair, note, tokens };
    return [
      asked === "mean" ? el("p", { class: "figure-note" }, t("oneHead", { head })) : "",
      way(all),
      el("h3", {}, t("pair")), chooser(context, pair, tokens), ...pairOf(all),
    ];
  });
}
