// Controls of the attention views: tabs for the kind, lists for a second head.
import { clear, el } from "../../dom.js";
import { attentionOf as byId, headsOf } from "../../choice.js";
import { chosen, kindOf, kindsOf, ofKind } from "./chosen.js";

function list(label, options, value, choose) {
  const select = el("select", { onchange: () => choose(options[select.selectedIndex][0]) },
    options.map(([key, text]) => el("option", { value: key, selected: key === value }, text)));
  return el("label", {}, el("span", {}, label), select);
}

/** Lists for the layer and head of a view's own choice: `get()` gives both, `set(attention, head)` keeps them. */
export function picker({ doc, state, t }, { get, set }) {
  const row = el("div", { class: "picks" });
  const draw = () => {
    const { attention, head } = get(), layers = ofKind(doc, kindOf(attention));
    const heads = headsOf(attention).map((one) => [one, one === "mean" ? t("mean") : String(one)]);
    const focused = [...row.querySelectorAll("select")].indexOf(document.activeElement);
    clear(row).append(
      list(t("layer"), layers.map((one) => [one.id, String(one.layer)]), attention.id, (id) => set(byId(doc, id), head)),
      list(t("head"), heads, head, (number) => set(attention, number)));
    row.querySelectorAll("select")[focused]?.focus();
  };
  state.on(["attention", "head", "compare", "language"], draw);
  draw();
  return row;
}

/** One button for each kind of attention; none where there is only one. */
export function kindTabs(context) {
  const { doc, state } = context, kinds = kindsOf(doc);
  if (kinds.length < 2) return null;
  const choose = (kind) => {
    const layers = ofKind(doc, kind), { attention } = chosen(context);
    state.set({ attention: (layers.find((one) => one.layer === attention.layer) ?? layers[0]).id });
  };
  const buttons = kinds.map((kind) => el("button", { type: "button", onclick: () => choose(kind) }));
  const row = el("div", { class: "tabs", role: "group" }, buttons);
  const name = () => {
    row.setAttribute("aria-label", context.t("attention"));
    buttons.forEach((button, place) => {
      button.textContent = context.t(kinds[place]);
      button.setAttribute("aria-pressed", String(kinds[place] === kindOf(chosen(context).attention)));
    });
  };
  state.on(["attention", "language"], name);
  name();
  return row;
}
