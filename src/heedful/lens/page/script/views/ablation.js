// Heads turned off, on a page that a server shows: what becomes of the answer. The page around this one asks the server.
import { headName, kindName, kindsOf } from "../attention/selection.js";
import { ofKind } from "../choice.js";
import { el } from "../dom.js";
import { redrawn } from "../drawing/stage.js";
import { number, percent } from "../drawing/text.js";

export const name = "ablation";
export const fits = (doc) => Boolean(doc.served) && window.parent !== window && doc.layers.length > 0;

const NAMES = { "encoder.self": "encoder", "decoder.self": "decoder", "decoder.cross": "cross" }; // as the server names them

export function mount(root, context) {
  const { doc, state, t } = context;
  const off = new Set(doc.ablation?.heads);
  const ask = () => parent.postMessage({ heads: [...off] }, "*");
  const toggle = (head) => () => {
    if (!off.delete(head)) off.add(head);
    ask();
  };
  const deep = () => state.get("level") === "deep";
  const share = (logprob) => (deep() ? `ln P = ${number(logprob, 2)}` : percent(Math.exp(logprob)));
  const change = ({ label, before, after }) => el("p", { class: "readout" }, t("change", { label, before: share(before), after: share(after) }));

  redrawn(root, state, [], () => [
    ...(off.size && doc.ablation?.changes.length ? doc.ablation.changes.map(change) : [el("p", { class: "readout" }, t(off.size ? "unchanged" : "hint"))]),
    el("div", { class: "picks" }, el("button", {
      type: "button", "data-keep": "all-on", disabled: !off.size, onclick: () => (off.clear(), ask()),
    }, t("allOn"))),
    ...kindsOf(doc).flatMap((kind) => ofKind(doc, kind).map((attention) => el("fieldset", { class: "figure-chips" },
      el("legend", {}, `${kindName(context, kind)} · ${t("layerName", attention)}`),
      attention.heads.map((_, head) => {
        const id = `${NAMES[kind]}.${attention.layer}.${head}`;
        return el("label", {}, el("input", {
          type: "checkbox", checked: off.has(id), "data-keep": id, onchange: toggle(id),
          "aria-label": t("off", { name: `${kindName(context, kind)}, ${headName(context, { attention, head })}` }),
        }), String(head));
      })))),
  ]);
}
