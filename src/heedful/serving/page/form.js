// What tools are put together from: a head, a text to type, examples to click, the question and its answer side by
// side, an answer to copy, shares as bars, and a look inside.

import { Refused } from "./api.js";
import { clear, el, svg } from "./look/dom.js";
import { complaint } from "./speech.js";

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
  const look = inside(context);
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

// One question at a time: the button that asks, the one that stops, and what went wrong, beside the form.
// `act(signal)` asks and shows the answer. Asking again ends what still runs. What was typed is never touched.
function asking({ speech }, word, act) {
  let running = null;
  const end = () => running?.abort();
  const go = speech.say("button", word, {}, { type: "submit", class: "go" });
  const stop = speech.say("button", "stop", {}, { type: "button", class: "plain", hidden: true, onclick: end });
  const status = el("p", { class: "status soft", role: "status" });
  const trouble = el("div", { class: "trouble" });
  const row = el("div", { class: "acts" }, go, stop, status);

  function busy(is) {
    stop.hidden = !is;
    row.classList.toggle("busy", is);
    if (is) status.replaceChildren(speech.say("span", "working"));
    else clear(status);
  }

  async function run() {
    end();
    const ticket = (running = new AbortController());
    clear(trouble);
    busy(true);
    try {
      await act(ticket.signal);
    } catch (error) {
      if (error instanceof Refused) trouble.append(complaint(speech, error));
      else if (error.name !== "AbortError") {
        trouble.append(complaint(speech, new Refused("refusedPage", error.message)));
        throw error;
      }
    } finally {
      if (running === ticket) {
        running = null;
        busy(false);
      }
    }
  }

  // Enter in a one-line field asks; in a text it takes Ctrl or ⌘ with it.
  function listen(form) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      run();
    });
    form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        run();
      }
    });
    return form;
  }

  return { row, trouble, run, end, listen };
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

// Look inside the answer: the page that `heedful look` writes, here in a frame that can reach nothing, to open, to save.
const MAY = "allow-scripts allow-downloads";

// `offer` takes what can be looked at: {label, name, body} each, where body is what the route wants to know.
function inside(context) {
  const { api, served, speech, state } = context;
  let offered = [];
  let address = null; // of the page in the frame
  const which = el("select", { "data-say-aria-label": "whichSentence" });
  const output = el("div", { class: "shown" });
  const form = asking(context, "look", open);
  const root = form.listen(el("form", { class: "inside", hidden: true },
    el("div", { class: "offer" }, el("div", {}, speech.say("h2", "lookTitle"), speech.say("p", "lookWhy", {}, { class: "soft" })),
      el("div", { class: "choice" }, which, form.row)),
    form.trouble, output));

  function close() {
    clear(output);
    if (address) URL.revokeObjectURL(address);
    address = null;
  }

  async function open(signal) {
    const { name, body } = offered[which.selectedIndex];
    const page = await api.look(name, { ...body, language: speech.language() }, signal);
    close();
    address = URL.createObjectURL(new Blob([page], { type: "text/html;charset=utf-8" }));
    const hash = `#language=${speech.language()}&theme=${state.get("theme")}`;
    const frame = el("iframe", { src: address + hash, sandbox: MAY, "data-say-title": "lookTitle", title: speech.t("lookTitle") });
    output.append(
      el("div", { class: "links" },
        speech.say("a", "openTab", {}, { href: address + hash, target: "_blank", rel: "noopener" }),
        speech.say("a", "saveFile", {}, { href: address, download: `look-${name}.html` })),
      frame);
    output.scrollIntoView({ behavior: "smooth", block: "nearest" });
  }

  function offer(list) {
    form.end();
    close();
    clear(form.trouble);
    offered = served.look ? list : [];
    root.hidden = !offered.length;
    clear(which).append(...offered.map((item) => el("option", {}, item.label)));
    which.hidden = offered.length < 2;
    which.selectedIndex = 0;
  }

  return { root, offer };
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
