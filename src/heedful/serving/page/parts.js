// What most tools are put together from: a head, a text to type, examples to click, an answer to copy.

import { clear, el, svg } from "./look/dom.js";

let count = 0;
export const newId = (name) => `${name}-${(count += 1)}`;

// The tool's title and, quietly, the model it asks.
export function head({ speech }, task, models) {
  const facts = models.length > 1
    ? [el("b", {}, models.map((model) => model.name).join(", "))]
    : [el("b", {}, models[0].name), el("span", {}, models[0].family),
      speech.say("span", "parameters", { n: models[0].parameters })];
  return el("header", { class: "head" },
    speech.say("h1", `${task}.title`), speech.say("p", `${task}.lead`, {}, { class: "lead" }),
    el("p", { class: "facts" }, facts));
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

// Something to begin with; each is a button with its own text.
export function examples({ speech }, list, choose, named = (one) => one) {
  const root = el("div", { class: "examples" });
  function offer(given) {
    clear(root);
    if (!given.length) return;
    root.append(speech.say("span", "examples", {}, { class: "soft" }));
    root.append(...given.map((one) => el("button", { type: "button", class: "chip", dir: "auto", onclick: () => choose(one) }, named(one))));
  }
  offer(list);
  return { root, offer };
}

// A button that copies a text and says so.
export function copyButton({ speech }, text) {
  const button = speech.say("button", "copy", {}, { type: "button", class: "small" });
  button.addEventListener("click", async () => {
    const done = await copied(text());
    button.dataset.say = done ? "copied" : "copyFailed";
    button.textContent = speech.t(button.dataset.say);
    setTimeout(() => {
      button.dataset.say = "copy";
      button.textContent = speech.t("copy");
    }, 1600);
  });
  return button;
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
  const shown = el("output", { for: id });
  const input = el("input", { type: "range", id, min, max, step, value });
  const tell = () => (shown.textContent = speech.number(Number(input.value)));
  input.addEventListener("input", tell);
  tell();
  return { root: el("div", { class: "slider" }, speech.say("label", key, {}, { for: id }), input, shown), value: () => Number(input.value) };
}

// A line drawing on a button.
export function icon(path) {
  return svg("svg", { viewBox: "0 0 20 20", width: 18, height: 18, "aria-hidden": "true" },
    svg("path", { d: path, fill: "none", stroke: "currentColor", "stroke-width": 1.5, "stroke-linecap": "round", "stroke-linejoin": "round" }));
}
