// All heads at a glance: a small map for each, drawn in idle time, so that the page opens at once.
import { evenly, habit, largest, shrunk } from "../attention/measure.js";
import { chosen, crossVariant, headName, hiddenIn, kindName, kindsOf } from "../attention/selection.js";
import { kindOf, ofKind, sameLayer } from "../choice.js";
import { dropdown, either, el, replace } from "../dom.js";
import { createGallery } from "../drawing/gallery.js";
import { raster, SCALES } from "../drawing/map.js";

const SIDE = 48;

export const name = "heads";
export const fits = (doc) => doc.attentions.flatMap((attention) => attention.heads).length > 1;
export const variant = crossVariant;

export function mount(root, context) {
  const { doc, state, t } = context;
  const small = new Map();
  const picks = el("div", { class: "picks" });
  let order = "place";
  const note = el("p", { class: "soft note" });
  const gallery = createGallery({
    onChoose: ({ attention, head }) => state.set({ attention: attention.id, head }),
    isChosen: ({ attention, head }) => {
      if (attention.id !== chosen(context).attention.id) return "";
      return state.get("head") === "mean" ? "of-mean" : state.get("head") === head ? "chosen" : "";
    },
  });
  root.classList.add("attention");
  root.append(picks, gallery.node, note);

  let turn = 0, drawn = null;
  const paint = async (cells) => {
    const ticket = ++turn;
    for (const cell of cells) {
      if (!small.has(cell.weights)) {
        await idle();
        if (ticket !== turn) return;
        small.set(cell.weights, shrunk(await context.arrays.get(cell.weights), SIDE));
        if (ticket !== turn) return;
      }
      const map = small.get(cell.weights);
      gallery.picture(cell, raster(map, SCALES.weights, largest(map.data), hiddenIn(cell.attention)));
    }
  };
  const draw = () => {
    const { attention } = chosen(context), kind = kindOf(attention), deep = state.get("level") === "deep";
    const cells = cellsOf(context, kind);
    const orders = { place: "byPlace", entropy: "byEntropy", ...(cells[0].distance === null ? {} : { distance: "byDistance" }) };
    const by = deep && order in orders ? order : "place";
    const kinds = kindsOf(doc).map((item) => [item, t(item)]);
    const goTo = (item) => state.set({ attention: sameLayer(doc, item, chosen(context).attention).id });
    const sort = (next) => ((order = next), draw());
    replace(picks, [
      kinds.length > 1 ? either(t("attention"), kinds, kind, goTo) : "",
      deep ? dropdown(t("order"), Object.entries(orders).map(([key, word]) => [key, t(word)]), by, sort, "order") : "",
    ]);
    const sorted = by === "place" ? cells : [...cells].sort((a, b) => a[by] - b[by]);
    for (const cell of cells) {
      const place = { layer: cell.attention.layer, head: cell.head };
      cell.caption = by === "place" ? `${t("head")} ${cell.head}` : t("place", place);
    }
    const inLayer = (item) => ({ title: t("layerName", item), cells: cells.filter((cell) => cell.attention === item) });
    const rows = by === "place" ? ofKind(doc, kind).map(inLayer) : [{ title: "", cells: sorted }];
    gallery.draw(rows, t("label", { kind: kindName(context, kind) }));
    const { queries, keys } = attention;
    const tokens = Math.max(doc.sequences[queries].length, doc.sequences[keys].length);
    note.textContent = [deep ? t("about") : "", tokens > SIDE ? t("shrunk") : ""].join(" ").trim();
    drawn = kind;
    paint(sorted);
  };
  state.on(["level", "language", "theme"], draw);
  state.on(["attention", "head"], () => {
    if (kindOf(chosen(context).attention) === drawn) gallery.mark();
    else draw();
  });
  draw();
}

function idle() {
  return new Promise((resolve) => {
    if (window.requestIdleCallback) requestIdleCallback(resolve, { timeout: 200 });
    else setTimeout(resolve);
  });
}

/** One cell for each head of a kind, with its words for the reading level. */
function cellsOf(context, kind) {
  const { doc, state, t } = context;
  return ofKind(doc, kind).flatMap((attention) => {
    const even = evenly(doc.sequences[attention.queries].length, doc.sequences[attention.keys].length, attention.causal);
    return attention.heads.map((item, head) => {
      const numbers = [
        item.distance === null ? null : t("distance", { value: item.distance.toFixed(2) }),
        t("entropy", { value: item.entropy.toFixed(2) }),
      ].filter(Boolean);
      const habitText = t(habit(item, even)).split("|");
      const [lines, joint] = state.get("level") === "deep" ? [numbers, " · "] : [habitText, " "];
      const label = `${headName(context, { attention, head })}: ${habitText.join(" ")}, ${numbers.join(", ")}`;
      return { attention, head, weights: item.weights, distance: item.distance, entropy: item.entropy, lines, joint, label };
    });
  });
}
