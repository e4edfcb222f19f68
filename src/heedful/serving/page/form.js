// What tools are put together from: a head, a text to type, examples to click, the question and its answer side by
// side, an answer to copy, shares as bars, and a look inside.

import { asking } from "./asking.js";
import { inside } from "./inside.js";
import { clear, el, svg } from "./look/dom.js";

let count = 0;
export const newId = (name) => `${name}-${(count += 1)}`;

// The tool's title and, quietly, the model it asks.
function head({ speech }, task, models) {
  const facts = models.length > 1
    ? [el("b", {}, models.map((model) => model.name).join(", "))]
    : [el("b", {}, models[0].name), el("span", {}, models[0].family),
      speech.say("span", "parameters", { n: models[0].parameters })];
  return el("header", { class: "head" },
    speech.say("h1", `${task}.title`), speech.say("p", `${task}.lead`, {}, { class: "lead" }),
    el("p", { class: "facts" }, facts));
}

// The card that every tool is: the question in one half, the answer in the other; examples and the look below.
export function layout(root, context, task, verb, ask, { question, foot, answers, tries, top, heading = "answer", halves = "halves" }) {
  const { models, speech } = context;
  const form = asking(context, verb, ask);
  const look = inside(context, newId("live"));
  root.append(
    head(context, task, models),
    form.listen(el("form", { class: "card" }, top,
      el("div", { class: halves },
        el("div", { class: "half" }, question, el("div", { class: "foot" }, form.row, foot), form.trouble),
        el("div", { class: "half answers" }, speech.say("h2", heading, {}, { class: "quiet" }), answers)))),
    tries?.root ?? "", look.root);
  return { run: form.run, look: look.offer };
}

// A text that grows with what is typed, and says when it comes near the limit.
export function textBox({ speech, served }, key, attributes = {}) {
  const id = newId("text");
  const left = el("span", { class: "left soft", "aria-live": "polite" });
  const input = el("textarea", {
    id, rows: 4, spellcheck: "false", dir: "auto", "data-say-placeholder": `${key}.hint`,
    placeholder: speech.t(`${key}.hint`), ...attributes,
  });
  function fit() {
    const length = [...input.value].length;
    left.textContent = length > 0.8 * served.max_characters
      ? `${speech.number(length)} / ${speech.number(served.max_characters)}` : "";
    left.classList.toggle("over", length > served.max_characters);
    input.style.setProperty("height", "auto");
    if (input.scrollHeight) input.style.setProperty("height", `${input.scrollHeight + 2}px`);
  }
  input.addEventListener("input", fit);
  const root = el("div", { class: "text" },
    speech.say("label", `${key}.label`, {}, { for: id }), input, left);
  const put = (value) => {
    input.value = value;
    fit();
  };
  return { root, input, put, fit };
}

// Something to begin with; each is a button with its own text. Those in the reader's language come first.
export function examples({ speech }, list, choose, named = (item) => item) {
  const root = el("div", { class: "examples" });
  const isForeign = (item) => /[가-힣]/.test(item) !== (speech.language() === "ko");
  function offer(given) {
    clear(root);
    if (!given.length) return;
    root.append(speech.say("span", "examples", {}, { class: "soft" }));
    root.append(...given.toSorted((a, b) => isForeign(a) - isForeign(b)).map((item) =>
      el("button", { type: "button", class: "chip", dir: "auto", onclick: () => choose(item) }, named(item))));
  }
  offer(list);
  return { root, offer };
}

// Below an answer, once there is one: a button that copies it and says so.
export function copyRow({ speech }, text) {
  const button = speech.say("button", "copy", {}, { type: "button" });
  const say = (key) => (button.textContent = speech.t((button.dataset.say = key)));
  button.addEventListener("click", async () => {
    say((await copied(text())) ? "copied" : "copyFailed");
    setTimeout(() => say("copy"), 1600);
  });
  return el("div", { class: "acts", hidden: true }, button);
}

// Browsers give the clipboard to secure pages only; a server in the house is often none.
async function copied(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  const box = el("textarea", { class: "aside", "aria-hidden": "true" });
  box.value = text;
  document.body.append(box);
  box.select();
  const done = document.execCommand("copy");
  box.remove();
  return done;
}

// A number to slide, and what it stands at.
export function slider({ speech }, key, { min, max, step, value }) {
  const id = newId("slider");
  const output = el("output", { for: id });
  const input = el("input", { type: "range", id, min, max, step, value });
  const update = () => (output.textContent = speech.number(Number(input.value)));
  input.addEventListener("input", update);
  update();
  return { root: el("div", { class: "slider" }, speech.say("label", key, {}, { for: id }), input, output), value: () => Number(input.value) };
}

// A button that chooses a file and forgets it once it is taken.
export function fileButton({ speech }, word, accept, take) {
  const id = newId("file");
  const input = el("input", { type: "file", accept, id, class: "aside" });
  input.addEventListener("change", () => {
    if (input.files[0]) take(input.files[0]);
    input.value = "";
  });
  return [input, speech.say("label", word, {}, { for: id, class: "small" })];
}

// A line drawing on a button.
export function icon(path) {
  return svg("svg", { viewBox: "0 0 20 20", width: 18, height: 18, "aria-hidden": "true" },
    svg("path", { d: path, fill: "none", stroke: "currentColor", "stroke-width": 1.5, "stroke-linecap": "round", "stroke-linejoin": "round" }));
}

// Shares as bars; those that hardly count are behind a word.
const FIRST = 8;

// [{label, probability or score}, …], the largest first; scores are no shares, and are written, not drawn.
export function bars({ speech }, root, sorted, { scores = false } = {}) {
  const text = (value) => scores ? speech.number(value, { maximumSignificantDigits: 4 })
    : speech.number(value, { style: "percent", maximumFractionDigits: value > 0.0995 || value === 0 ? 0 : 1 });
  const row = ({ label, probability, score, value = probability ?? score }, place) => el("li", { class: place ? null : "first" },
    el("span", { class: "label", dir: "auto" }, label), el("span", { class: "value" }, text(value)),
    !scores && el("span", { class: "track", "aria-hidden": "true" },
      el("i", { style: { width: `${100 * Math.min(1, Math.max(0, value))}%` } })));
  const list = el("ol", { class: "bars" }, sorted.slice(0, FIRST).map(row));
  clear(root).append(list);
  if (sorted.length <= FIRST) return;
  const rest = speech.say("button", "showAll", { n: sorted.length }, { type: "button" });
  rest.addEventListener("click", () => {
    list.append(...sorted.slice(FIRST).map((item, place) => row(item, place + FIRST)));
    rest.remove();
  });
  root.append(rest);
}

// A tool that asks a model about the texts in its boxes. `show(answer, input)` puts what the model says on the page;
// `label(texts)` names an example, and what can be looked into.
export function textTool(root, context, { task, verb, boxes, show, answers, foot, label = (texts) => texts.join(" · ") }) {
  const { api, model } = context;

  async function ask(signal) {
    const empty = boxes.find((box) => !box.input.value.trim());
    if (empty) return empty.input.focus();
    const texts = boxes.map((box) => box.input.value);
    const input = texts.length > 1 ? texts : texts[0];
    const [answer] = await api.predict(model.name, [input], signal);
    show(answer, input);
    form.look([{ label: label(texts), name: model.name, body: { input } }]);
  }

  const fill = (texts) => boxes.forEach((box, place) => box.put(texts[place] ?? ""));
  const tries = examples(context, model.examples, (item) => (fill(item), form.run()), label);
  const form = layout(root, context, task, verb, ask, { question: boxes.map((box) => box.root), foot, answers, tries });
}
