// The tokens themselves: point at one to see what it looks at and what looks at it.
import { clear, el } from "../dom.js";
import { hue } from "../colour.js";
import { chosen, latest, weightsOf } from "./attention/chosen.js";
import { createChips } from "./attention/sentence.js";
import { atRest, DRAWN, focused, lookOf } from "./attention/looking.js";
import { columnSums, largest, strongest } from "./attention/measure.js";
import { crossVariant, sidesOf, tokensOf, writes } from "./attention/sides.js";
import { shared } from "./attention/words.js";
import { isGiven } from "./generation/rows.js";

export const name = "tokens";

export const words = {
  en: {
    ...shared.en,
    title: "What looks at what",
    simple: "The model reads its input in pieces, the tokens. Point at one to see what it looks at and what looks at it. Click to keep it.",
    deep: "Row (what a token looks at) and column (what looks at it) of the chosen head's weights. A view of what was mixed, not an explanation.",
    "simple.cross": "Above stands what the model reads, below the answer. Point at a token below to see what was mixed in for it, at one above to see for what it was looked at. Click to keep it.",
    "deep.cross": "Each token below stands for the row that predicts it; that row has read the tokens before it. Row (what was looked at) and column (for what) of the chosen head's weights. A view of what was mixed, not an explanation.",
    label: "Tokens and the attention between them",
    restLinks: "Each line leads from a token to the one it looks at most. The bar in a chip shows how much it is looked at in all.",
    restSome: "Only the {drawn} strongest links are drawn. The bar in a chip shows how much it is looked at in all.",
    restShade: "The bar in a token shows how much it is looked at in all. Tap one to see more.",
    out: "“{token}” looks most at {list}.", into: "“{token}” is looked at most by {list}.",
    outCross: "For “{token}” the model looks most at {list}.", intoCross: "“{token}” is looked at most for {list}.",
    outNone: "“{token}” is of the input: in cross-attention it looks at nothing.",
    intoNone: "Nothing looks at “{token}” here: in cross-attention the output looks, the input is looked at.",
    intoLast: "No other token looks at “{token}”.", itself: "itself", quote: "“{text}”", and: " and ", some: "Only the {drawn} strongest links each way are drawn; the shading shows all.",
    reads: "Having read “{token}”, the model wrote “{next}”.", readsGiven: "After “{token}” came “{next}”, which was given to the model.",
    before: "The row that predicts “{token}” has last read “{read}”.", gets: "In all it receives {sum} (average {even}).",
  },
  ko: {
    ...shared.ko,
    title: "무엇이 무엇을 보는가",
    simple: "모델은 입력을 토큰(token)이라는 조각으로 나누어 읽습니다. 토큰을 가리키면 그 토큰이 보는 곳과 그 토큰을 보는 곳이 나타나고, 누르면 고정됩니다.",
    deep: "고른 헤드의 가중치 가운데 한 행(그 토큰이 보는 곳)과 한 열(그 토큰을 보는 곳)입니다. 무엇이 섞였는지를 보여 줄 뿐, 설명은 아닙니다.",
    "simple.cross": "위는 모델이 읽는 원문, 아래는 답입니다. 아래 토큰을 가리키면 그 차례에 무엇을 섞었는지, 위 토큰을 가리키면 어느 차례에 그것을 보았는지 나타납니다. 누르면 고정됩니다.",
    "deep.cross": "아래 토큰은 그 토큰을 예측하는 행을 뜻하며, 그 행은 그 앞의 토큰까지 읽었습니다. 고른 헤드의 가중치 가운데 한 행(그때 본 곳)과 한 열(그곳을 본 때)입니다. 무엇이 섞였는지를 보여 줄 뿐, 설명은 아닙니다.",
    label: "토큰과 그 사이의 어텐션",
    restLinks: "선은 각 토큰에서 가장 많이 보는 토큰으로 이어집니다. 칩 안의 막대는 모두 합해 얼마나 주목받는지를 나타냅니다.",
    restSome: "가장 강한 연결 {drawn}개만 그렸습니다. 칩 안의 막대는 모두 합해 얼마나 주목받는지를 나타냅니다.",
    restShade: "토큰 안의 막대는 모두 합해 얼마나 주목받는지를 나타냅니다. 눌러서 자세히 보세요.",
    out: "‘{token}’: 가장 많이 보는 토큰은 {list}입니다.", into: "‘{token}’: 이 토큰을 가장 많이 보는 토큰은 {list}입니다.",
    outCross: "‘{token}’ 차례에 가장 많이 본 토큰은 {list}입니다.", intoCross: "‘{token}’: 이 토큰을 가장 많이 본 차례는 {list}입니다.",
    outNone: "‘{token}’: 입력 토큰이라 교차 어텐션에서는 아무것도 보지 않습니다.",
    intoNone: "‘{token}’: 교차 어텐션에서는 출력이 입력을 보므로, 이 토큰을 보는 것은 없습니다.",
    intoLast: "‘{token}’: 이 토큰을 보는 다른 토큰은 없습니다.", itself: "자기 자신", quote: "‘{text}’", and: ", ", some: "방향마다 가장 강한 연결 {drawn}개만 선으로 그렸습니다. 음영은 모두 나타냅니다.",
    reads: "‘{token}’까지 읽고 ‘{next}’ 토큰을 썼습니다.", readsGiven: "‘{token}’ 다음은 모델에게 주어진 ‘{next}’ 토큰입니다.",
    before: "‘{token}’ 토큰을 예측하는 행이 마지막으로 읽은 것은 ‘{read}’ 토큰입니다.", gets: "모두 합해 {sum}만큼 주목받습니다(평균 {even}).",
  },
};

export function fits(doc) {
  return doc.attentions.length > 0;
}

export const variant = crossVariant;

export function mount(root, context) {
  const { doc, state, t } = context;
  const story = el("div", { class: "story", "aria-live": "polite" });
  const chips = createChips(context);
  let shown = null;
  root.classList.add("attention");
  root.append(chips.node, story);

  const follow = () => {
    if (!shown) return;
    const active = state.get("token") ?? state.get("pinned");
    const seen = active && lookOf(shown, active);
    const view = seen ? focused(shown, active, seen) : atRest(shown);
    const drawn = chips.show(view);
    const lines = seen ? told(context, shown, active, seen, drawn) : [el("p", { class: "soft" }, restWords(t, view, drawn))];
    clear(story).append(...lines);
  };
  const draw = latest((weights) => {
    const { attention } = chosen(context);
    shown = { weights, attention, doc, received: columnSums(weights) };
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

function told({ doc, state, t }, { attention, received: sums, weights }, active, { out, into }, drawn) {
  const deep = state.get("level") === "deep", token = tokensOf(doc, active.sequence)[active.index].text;
  const { queries, keys } = sidesOf(doc, attention), cross = writes(doc, attention) ? "Cross" : "";
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
