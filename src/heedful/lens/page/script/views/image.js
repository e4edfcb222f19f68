// The image as the model reads it: patches, and what a chosen one looks at.
import { el } from "../dom.js";
import { attentionOf, headOf, weightsOf } from "./attention/chosen.js";
import { headName, shared } from "./attention/words.js";
import { drawn } from "./figures/drawn.js";
import { row } from "./figures/grid.js";
import { patches } from "./figures/patches.js";
import { percent } from "./figures/text.js";

export const name = "image";

export const words = {
  en: {
    ...shared.en,
    title: "Over the image",
    simple: "The model reads the image in patches. Choose one to see which others it looks at: the stronger the colour, the more.",
    deep: "A row of the attention weights laid over the image; a patch's opacity is its weight ÷ the largest.",
    from: "Looks from", patch: "row {row}, column {column}", strength: "Strength", style: "Shown by", tint: "colour", outline: "outline",
    most: "From “{from}” most goes to {to}: {share}.", own: "{share} stays with tokens that are no patches.",
    heads: "All heads of this layer", map: "Attention from {from} over the image",
  },
  ko: {
    ...shared.ko,
    title: "이미지 위의 어텐션",
    simple: "모델은 이미지를 조각으로 나누어 읽습니다. 조각을 하나 고르면 그 조각이 어디를 보는지 나타납니다. 색이 진할수록 많이 봅니다.",
    deep: "어텐션 가중치 한 줄을 이미지에 겹쳤습니다. 조각에 덮인 색의 진하기는 가중치 ÷ 최댓값입니다.",
    from: "보는 쪽", patch: "{row}행 {column}열", strength: "세기", style: "표시", tint: "색", outline: "테두리",
    most: "‘{from}’에서 가장 많이 보는 곳은 {to}, {share}입니다.", own: "{share}는 조각이 아닌 토큰에 머뭅니다.",
    heads: "이 층의 모든 헤드", map: "{from}에서 이미지로 향한 어텐션",
  },
};

export function fits(doc) {
  return doc.image !== null && doc.attentions.length > 0;
}

// Which token's look is shown: the pinned one, or the first (where there is a class token, that).
function lookingFrom({ doc, state }) {
  const pinned = state.get("pinned");
  return pinned?.sequence === "source" && pinned.index < doc.sequences.source.length ? pinned.index : 0;
}

function nameOf({ doc, t }, index) {
  const { prefix, columns } = doc.image;
  if (index < prefix) return doc.sequences.source[index].text;
  const place = index - prefix;
  return t("patch", { row: Math.floor(place / columns) + 1, column: (place % columns) + 1 });
}

function controls(context, from, look, changed) {
  const { doc, state, t } = context;
  const list = (word, texts, chosen, choose) => {
    const select = el("select", { "data-keep": word, onchange: () => choose(select.selectedIndex) },
      texts.map((text) => el("option", {}, text)));
    select.selectedIndex = chosen;
    return el("label", { class: "pick" }, el("span", {}, t(word)), select);
  };
  const names = doc.sequences.source.map((_, index) => nameOf(context, index));
  const styles = ["tint", "outline"];
  const slider = el("input", {
    type: "range", min: 0, max: 1, step: 0.05, value: look.strength, "data-keep": "strength",
    oninput: () => changed({ strength: Number(slider.value) }),
  });
  return el("div", { class: "picks figure-controls" },
    list("from", names, from, (index) => state.set({ pinned: { sequence: "source", index } })),
    list("style", styles.map((style) => t(style)), styles.indexOf(look.style), (index) => changed({ style: styles[index] })),
    el("label", {}, t("strength"), slider));
}

export function mount(root, context) {
  const { doc, state, t } = context;
  const look = { style: "tint", strength: 0.85 };
  const { prefix } = doc.image;
  const again = drawn(root, state, ["attention", "head", "pinned"], async (width, note) => {
    const attention = attentionOf(context);
    const head = headOf(attention, state.get("head"));
    const from = lookingFrom(context);
    const read = async (one) => {
      const weights = await weightsOf(context, { attention, head: one });
      return row({ columns: weights.shape[1], at: (r, c) => weights.data[r * weights.shape[1] + c] }, from);
    };
    const [shares, ...heads] = await Promise.all([head, ...attention.heads.keys()].map(read));
    const places = shares.slice(prefix);
    const best = prefix + places.indexOf(Math.max(...places));
    const said = t("most", { from: nameOf(context, from), to: nameOf(context, best), share: percent(shares[best]) });
    const own = prefix ? t("own", { share: percent(shares.slice(0, prefix).reduce((a, b) => a + b, 0)) }) : "";
    const figure = patches({
      image: doc.image, width, from, head, shares: places, heads: heads.map((one) => one.slice(prefix)), look,
      words: {
        title: headName(context, { attention, head }), map: t("map", { from: nameOf(context, from) }),
        head: t("head"), heads: t("heads"),
      },
      told: (place) => `${nameOf(context, place + prefix)}: ${percent(places[place])}`, note,
      choose: (place) => state.set({ pinned: { sequence: "source", index: place + prefix } }),
      chooseHead: (one) => state.set({ head: one }),
    });
    const change = (changes) => {
      Object.assign(look, changes);
      if (changes.style) again();
      else figure.strengthen(look.strength); // a slider in use must not be replaced
    };
    return [controls(context, from, look, change), figure.node, el("p", { class: "figure-note" }, `${said} ${own}`)];
  });
}
