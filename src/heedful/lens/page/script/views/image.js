// The image as the model reads it: patches, and what a chosen one looks at.
import { el } from "../dom.js";
import { chosen, weightsOf } from "./attention/chosen.js";
import { list, looker, sharesOf } from "./attention/patching.js";
import { headName, shared } from "./attention/words.js";
import { drawn } from "./figures/drawn.js";
import { patches } from "./figures/patches.js";
import { percent } from "./figures/text.js";

const STYLES = ["tint", "outline"];

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

function nameOf({ doc, t }, index) {
  const { prefix, columns } = doc.image;
  if (index < prefix) return doc.sequences.source[index].text;
  const place = index - prefix;
  return t("patch", { row: Math.floor(place / columns) + 1, column: (place % columns) + 1 });
}

function controls({ t }, names, { from, choose }, look, changed) {
  const slider = el("input", {
    type: "range", min: 0, max: 1, step: 0.05, value: look.strength, "data-keep": "strength",
    oninput: () => changed({ strength: Number(slider.value) }),
  });
  const styles = STYLES.map((style) => t(style));
  return el("div", { class: "picks figure-controls" },
    list(t("from"), names, from(), choose, "from"),
    list(t("style"), styles, STYLES.indexOf(look.style), (index) => changed({ style: STYLES[index] }), "style"),
    el("label", {}, el("span", {}, t("strength")), slider));
}

export function mount(root, context) {
  const { doc, state, t } = context;
  const look = { style: "tint", strength: 0.85 };
  const { prefix } = doc.image;
  const looking = looker(context, 0); // the class token, where there is one
  const named = (index) => nameOf(context, index);
  const again = drawn(root, state, ["attention", "head", "pinned"], async (width, note) => {
    const { attention, head } = chosen(context);
    const from = looking.from();
    const read = async (one) => sharesOf(await weightsOf(context, { attention, head: one }), from, prefix);
    const [{ patches: shares, own, best }, ...heads] = await Promise.all([head, ...attention.heads.keys()].map(read));
    const share = (place) => percent(shares[place]);
    const figure = patches({
      image: doc.image, width, from, head, shares, heads: heads.map((one) => one.patches), look,
      words: {
        title: headName(context, { attention, head }), map: t("map", { from: named(from) }), head: t("head"), heads: t("heads"),
      },
      told: (place) => `${named(place + prefix)}: ${share(place)}`, note,
      choose: (place) => looking.choose(place + prefix),
      chooseHead: (one) => state.set({ head: one }),
    });
    const change = (changes) => {
      Object.assign(look, changes);
      if (changes.style) again();
      else figure.strengthen(look.strength); // a slider in use must not be replaced
    };
    const said = [t("most", { from: named(from), to: named(best), share: share(best - prefix) })];
    if (prefix) said.push(t("own", { share: percent(own) }));
    const names = doc.sequences.source.map((_, index) => named(index));
    return [controls(context, names, looking, look, change), figure.node, el("p", { class: "figure-note" }, said.join(" "))];
  });
}
