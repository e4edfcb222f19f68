// Tools for models that read: classify a text, mark its parts, find an answer in it, fill its gaps, or compare sentences.

import { bars, copyRow, icon, layout, textBox, textTool } from "./form.js";
import { ink, shade } from "./look/color.js";
import { clear, el } from "./look/dom.js";

// Classify a text, or two that belong together.
export function classify(root, context) {
  const { model } = context;
  const answers = el("div", { class: "answer", "aria-live": "polite" });
  textTool(root, context, {
    task: "classification", verb: "classify", answers,
    boxes: model.texts === 2
      ? [textBox(context, "first", { rows: 2 }), textBox(context, "second", { rows: 2 })]
      : [textBox(context, "classification")],
    show: ({ labels }) => bars(context, answers, labels, { scores: model.scores }),
  });
}

const percent = (speech, value) => speech.number(value, { style: "percent", maximumFractionDigits: 1 });

// A text with spans of it marked; a span has the characters from start to end, counted as Python counts them.
function marked(text, spans, note) {
  const letters = [...text];
  const pieces = [];
  let place = 0;
  for (const span of spans) {
    pieces.push(letters.slice(place, span.start).join(""), el("mark", {}, letters.slice(span.start, span.end).join("")), note(span));
    place = span.end;
  }
  return [...pieces, letters.slice(place).join("")];
}

// Find the answer to a question in a text.
export function answerQuestion(root, context) {
  const { speech } = context;
  const answers = el("p", { class: "answer", dir: "auto", "aria-live": "polite" });
  textTool(root, context, {
    task: "question-answering", verb: "find", answers, label: ([question]) => question,
    boxes: [textBox(context, "question", { rows: 1 }), textBox(context, "passage", { rows: 5 })],
    show: (result, [, passage]) => {
      const note = () => el("small", {}, ` ${percent(speech, result.probability)} `);
      clear(answers).append(...(result.start === null ? [speech.say("em", "noAnswer")] : marked(passage, [result], note)));
    },
  });
}

// Mark the entities of a text, or the tag of each of its words.
export function tagText(root, context) {
  const { speech } = context;
  const answers = el("p", { class: "answer", dir: "auto", "aria-live": "polite" });
  textTool(root, context, {
    task: "tagging", verb: "tag", boxes: [textBox(context, "tagging")], answers,
    show: ({ spans }, input) => {
      const note = (span) => el("small", { title: percent(speech, span.probability) }, ` ${span.label} `);
      clear(answers).append(...(spans.length ? marked(input, spans, note) : [speech.say("em", "noSpans")]));
    },
  });
}

// The text with the first guess in each gap, marked. A guess that begins with no space goes on with the word before it.
function filled(text, mask, gaps) {
  const [first, ...rest] = text.split(mask);
  const pieces = [first];
  rest.forEach((kept, place) => {
    const best = gaps[place][0].text;
    if (!/^\s/.test(best)) pieces.push(pieces.pop().trimEnd());
    pieces.push(el("mark", {}, best.trim()), kept);
  });
  return pieces;
}

// Fill gaps: the model guesses the words that are missing.
export function fillGaps(root, context) {
  const { model, speech } = context;
  const text = textBox(context, "masked-lm");
  const answer = el("p", { class: "answer", dir: "auto", "aria-live": "polite" });
  const guesses = el("div", { class: "guesses" });
  const tools = copyRow(context, () => answer.textContent);
  const insert = speech.say("button", "insertGap", { mask: model.mask }, { type: "button" });
  insert.addEventListener("click", () => {
    const { selectionStart, selectionEnd } = text.input;
    text.input.setRangeText(model.mask, selectionStart, selectionEnd, "end");
    text.fit();
    text.input.focus();
  });

  function show({ gaps }, input) {
    clear(answer).append(...filled(input, model.mask, gaps));
    clear(guesses).append(...gaps.map((gap) => {
      const list = el("div", {});
      bars(context, list, gap.map(({ text, probability }) => ({ label: text.trim(), probability })));
      return list;
    }));
    tools.hidden = false;
  }
  textTool(root, context, { task: "masked-lm", verb: "fill", boxes: [text], show, foot: insert, answers: [answer, guesses, tools] });
}

const MOST = 8;
const FEWEST = 2;

const dot = (item, other) => item.reduce((sum, value, place) => sum + value * other[place], 0);
const cosine = (item, other) => dot(item, other) / Math.sqrt(dot(item, item) * dot(other, other) || 1);

// Each with each, as a table: darker is nearer.
function matrix({ speech }, texts, vectors) {
  const written = (value) => speech.number(value, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  const cell = (row, column) => {
    const near = cosine(vectors[row], vectors[column]);
    const color = shade(Math.max(0, near));
    return el("td", { style: { background: color, color: ink(color) } }, written(near));
  };
  return el("div", { class: "scroll" }, el("table", { class: "matrix" },
    el("thead", {}, el("tr", {}, el("td", {}), texts.map((text, place) => el("th", { scope: "col", title: text }, place + 1)))),
    el("tbody", {}, texts.map((text, row) => el("tr", {},
      el("th", { scope: "row" }, el("b", {}, row + 1), el("span", { dir: "auto" }, ` ${text}`)),
      texts.map((_, column) => cell(row, column)))))));
}

function rows({ speech }) {
  const root = el("ol", { class: "lines" });
  const add = speech.say("button", "addLine", {}, { type: "button", onclick: () => put("").focus() });
  const inputs = () => [...root.querySelectorAll("input")];

  function put(text) {
    const input = el("input", { type: "text", dir: "auto", "data-say-aria-label": "sentence", "aria-label": speech.t("sentence") });
    input.value = text;
    const remove = speech.named(el("button", { type: "button", class: "icon" }, icon("M6 6l8 8M14 6l-8 8")), "removeLine");
    const line = el("li", {}, input, remove);
    remove.addEventListener("click", () => {
      if (inputs().length > FEWEST) line.remove();
      else input.value = "";
      add.hidden = false;
      (inputs()[0] ?? add).focus();
    });
    root.append(line);
    add.hidden = inputs().length >= MOST;
    return input;
  }

  function fill(texts) {
    clear(root);
    for (const text of texts) put(text);
    while (inputs().length < FEWEST) put("");
  }
  return { root, add, fill, texts: () => inputs().map((input) => input.value.trim()).filter(Boolean), focus: () => inputs()[0].focus() };
}

// Compare sentences: how near in direction their vectors are.
export function compare(root, context) {
  const { api, model, speech, state } = context;
  const lines = rows(context);
  const answer = el("div", { class: "answer", "aria-live": "polite" });
  let current = null;
  lines.fill(model.examples[0] ?? []);

  const draw = () => current && clear(answer).append(matrix(context, ...current));
  async function ask(signal) {
    const texts = lines.texts();
    if (!texts.length) return lines.focus();
    const results = await api.predict(model.name, texts, signal);
    current = [texts, results.map(({ vector }) => vector)];
    draw();
    form.look(texts.map((input) => ({ label: input, name: model.name, body: { input } })));
  }

  state.on(["theme", "language"], draw);
  const form = layout(root, context, "embedding", "compare", ask, {
    question: [speech.say("h2", "sentences", {}, { class: "quiet" }), lines.root], foot: lines.add, heading: "nearness",
    answers: answer,
  });
}
