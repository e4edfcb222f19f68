// Which cross-attention is shown, and lists to choose it: the page's choice where that is one, else the last that was.
import { clear, el } from "../../dom.js";
import { headsOf } from "../../choice.js";
import { ofKind } from "../attention/chosen.js";

// A function that gives { attention, head }; at first the mean of the last layer.
export function crossChoice({ doc, state }) {
  const layers = ofKind(doc, "decoder.cross");
  let kept = { attention: layers.at(-1), head: headsOf(layers.at(-1))[0] };
  return () => {
    const attention = layers.find((one) => one.id === state.get("attention"));
    if (attention) kept = { attention, head: state.get("head") };
    return kept;
  };
}

// Lists of layers and heads; a choice here is the page's choice.
export function crossLists({ doc, state, t }, choice) {
  const [layers, heads] = [el("select", {}), el("select", {})];
  const node = el("div", { class: "picks" });
  const numeral = (value) => (value === "mean" ? value : Number(value));
  const set = () => state.set({ attention: layers.value, head: numeral(heads.value) });
  layers.addEventListener("change", set);
  heads.addEventListener("change", set);

  function draw() {
    const { attention, head } = choice();
    const option = (value, text) => el("option", { value }, text);
    clear(layers).append(...ofKind(doc, "decoder.cross").map((one) => option(one.id, one.layer)));
    clear(heads).append(...headsOf(attention).map((one) => option(one, one === "mean" ? t("mean") : one)));
    layers.value = attention.id;
    heads.value = String(head);
    const named = (text, select) => el("label", { class: "pick" }, el("span", {}, text), select);
    if (!node.childElementCount) node.append(named("", layers), named("", heads));
    for (const [place, select] of [layers, heads].entries()) {
      node.children[place].firstChild.textContent = t(place ? "head" : "layer");
      node.children[place].hidden = select.options.length < 2;
    }
    node.hidden = node.querySelector("label:not([hidden])") === null;
  }
  state.on(["attention", "head", "language"], draw);
  draw();
  return node;
}
