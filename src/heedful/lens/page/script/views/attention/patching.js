// What the image and the series share: their tokens are patches, after `first` that are none, and one of them looks.
import { el } from "../../dom.js";
import { rowOf } from "./measure.js";

/** The token that looks: the pinned one, else `otherwise`; and a way to choose another. */
export function looker({ doc, state }, otherwise) {
  return {
    from() {
      const pinned = state.get("pinned");
      return pinned?.sequence === "source" && doc.sequences.source[pinned.index] ? pinned.index : otherwise;
    },
    choose: (index) => state.set({ pinned: { sequence: "source", index } }),
  };
}

/** What a token gives to the patches, which of them most, and what is left for the tokens before them. */
export function sharesOf(weights, from, first) {
  const row = [...rowOf(weights, from)], patches = row.slice(first);
  const own = row.slice(0, first).reduce((sum, share) => sum + share, 0);
  return { patches, own, best: first + patches.indexOf(Math.max(...patches)) };
}

/** A list with its name before it. */
export function list(name, texts, chosen, choose, key) {
  const select = el("select", { "data-keep": key, onchange: () => choose(select.selectedIndex) },
    texts.map((text) => el("option", {}, text)));
  select.selectedIndex = chosen;
  return el("label", { class: "pick" }, el("span", {}, name), select);
}
