// Activations of this text in the run of another one, on a page that a server shows: what brings the answer back.
// The page around this one asks the server.
import { dropdown, el } from "../dom.js";
import { createLegend, createMap, SCALES } from "../drawing/map.js";
import { redrawn } from "../drawing/stage.js";
import { number, percent, visible } from "../drawing/text.js";
import { phraseTranslator, section } from "../i18n.js";

export const name = "patching";
export const fits = (doc) => Boolean(doc.served && doc.lens && doc.generation) && window.parent !== window && doc.layers.length > 0;

const PARTS = ["layer", "self_attention", "cross_attention", "feed_forward"];
const LEAST = 1e-6; // a smaller difference between the two texts is none

// The parts of the stack's layers that can be exchanged: the stream, and each sublayer.
function partsOf(doc, stack) {
  const { norms } = doc.layers.find((layer) => layer.stack === stack);
  return PARTS.filter((part) => part === "layer" || norms.some(({ name }) => name === part));
}

export function mount(root, context) {
  const { doc, state, t, signal, messages } = context, result = doc.patching;
  const stacks = [...new Set(doc.layers.map(({ stack }) => stack))];
  const choice = { ...(result ?? { stack: stacks[0], part: "layer" }) };
  const rows = doc.layers.filter(({ stack }) => stack === choice.stack).map(({ layer }) => layer);
  const translate = phraseTranslator(section(messages, "patching"), state);
  let text = result?.input ?? doc.question, refused = "";

  const fresh = { step: undefined, token: undefined, against: undefined }; // the server chooses what is measured
  function ask(changes) {
    const { step, token, against, stack, part } = Object.assign(choice, changes);
    if (result || changes === fresh) parent.postMessage({ patch: { input: text, step, token, against, stack, part } }, "*");
    else again();
  }
  addEventListener("message", ({ source, data }) => {
    if (source !== window.parent || typeof data?.refused !== "string") return;
    refused = data.refused;
    again();
  }, { signal });

  // What is exchanged, and what is measured.
  const spell = (id) => visible(result.candidates.find((each) => each.id === id).text);
  const pick = (key, options, value) => dropdown(t(key), options, value, (chosen) => ask({ [key]: chosen }), key);
  const place = () => [
    stacks.length > 1 && dropdown(t("stack"), stacks.map((stack) => [stack, t(stack)]), choice.stack, (stack) => ask({ stack, part: "layer" }), "stack"),
    pick("part", partsOf(doc, choice.stack).map((part) => [part, t(part)]), choice.part),
  ];
  function measure() {
    const steps = doc.written.map((token, step) => [step, `${step + 1} · ${visible(token)}`]).slice(result.first_step);
    const tokens = result.candidates.map(({ id }) => [id, spell(id)]);
    return [
      dropdown(t("step"), steps, result.step, (step) => ask({ ...fresh, step }), "step"),
      dropdown(t("token"), tokens, result.token, (token) => ask({ token, against: token === result.against ? null : result.against }), "token"),
      pick("against", [[null, t("none")], ...tokens.filter(([id]) => id !== result.token)], result.against),
    ];
  }

  const legend = createLegend(SCALES.difference), said = el("p", { class: "readout said", "aria-live": "polite" });
  const map = result && createMap(root, { onCell: (cell) => (said.textContent = cell ? told(cell) : t("rest")), onPick: () => {} });
  const difference = result && result.clean - result.corrupted;
  const shares = result && result.effects.map((row) => row.map((effect) => effect / difference));
  const columns = result && result.tokens.map((other, n) => {
    const mine = visible(doc.sequences[choice.stack === "encoder" ? "source" : "target"][n].text);
    return { text: mine, other: visible(other) };
  });
  function told(cell) {
    const { text: token, other } = columns[cell.key];
    return t(token === other ? "cell.same" : "cell", { layer: rows[cell.query], token, other, share: `${number(100 * shares[cell.query][cell.key], 0)}%` });
  }

  function draw() {
    const data = shares.flat(), most = Math.max(1, ...data.map(Math.abs));
    map.draw({
      rows: rows.map((layer) => ({ text: t("layerName", { layer }) })), columns, hidden: () => false, digits: true,
      panels: [{ map: { shape: [rows.length, columns.length], data }, scale: SCALES.difference, most }],
      label: t("label"), hint: t("label"),
    });
    legend.draw(`−${number(100 * most, 0)}%`, `${number(100 * most, 0)}%`);
    return [map.node, legend.node, said];
  }

  function outcome() {
    const about = ({ id, clean, corrupted }) => t("measured", { token: spell(id), clean: percent(clean), corrupted: percent(corrupted) });
    const deep = t("logprobs", { clean: number(result.clean, 2), corrupted: number(result.corrupted, 2) });
    const measured = [result.token, result.against].map((id) => result.candidates.find((each) => each.id === id)).filter(Boolean);
    return [
      el("div", { class: "picks" }, measure()),
      ...measured.map((each) => el("p", { class: "readout" }, about(each))),
      state.get("level") === "deep" && el("p", { class: "readout numbers" }, deep),
      ...(Math.abs(difference) < LEAST ? [el("p", { class: "readout" }, t("nothing"))] : draw()),
    ];
  }

  root.classList.add("attention");
  const again = redrawn(root, state, [], () => {
    const field = el("textarea", {
      rows: 2, dir: "auto", spellcheck: "false", "data-keep": "second", "aria-label": t("second"), oninput: () => (text = field.value),
    }, text);
    const go = el("button", { type: "button", "data-keep": "go", onclick: () => text.trim() && ask(fresh) }, t("go"));
    return [
      el("div", { class: "asks-second" }, el("p", { class: "figure-note" }, t("second")), field, el("div", { class: "picks" }, place(), go)),
      refused && el("p", { class: "failure", role: "alert" }, t("refused", { reason: translate(refused) ?? refused })),
      ...(result ? outcome() : []),
    ].filter(Boolean);
  });
}
