// Tools for models that mark parts of a text: the answer to a question, or the entities of a text.

import { asking, examples, inside, layout, textBox } from "./form.js";
import { clear, el } from "./look/dom.js";

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
  const { api, model, speech } = context;
  const boxes = [textBox(context, "question", { rows: 1 }), textBox(context, "passage", { rows: 5 })];
  const answer = el("p", { class: "answer", dir: "auto", "aria-live": "polite" });
  const look = inside(context);

  async function ask(signal) {
    const empty = boxes.find((box) => !box.input.value.trim());
    if (empty) return empty.input.focus();
    const input = boxes.map((box) => box.input.value);
    const found = await api.predict(model.name, input, signal);
    const note = () => el("small", {}, ` ${percent(speech, found.probability)} `);
    clear(answer).append(...(found.start === null ? [speech.say("em", "noAnswer")] : marked(input[1], [found], note)));
    look.offer([{ label: input[0], name: model.name, body: { input } }]);
  }

  const form = asking(context, "find", ask);
  const fill = (texts) => boxes.forEach((box, place) => box.put(texts[place] ?? ""));
  const tries = examples(context, model.examples, (one) => (fill(one), form.run()), (one) => one[0]);
  layout(root, context, "question-answering", form, {
    question: boxes.map((box) => box.root), answers: answer, below: [tries, look],
  });
}

// Mark the entities of a text, or the tag of each of its words.
export function tagText(root, context) {
  const { api, model, speech } = context;
  const text = textBox(context, "tagging");
  const answer = el("p", { class: "answer", dir: "auto", "aria-live": "polite" });
  const look = inside(context);

  async function ask(signal) {
    const input = text.input.value;
    if (!input.trim()) return text.input.focus();
    const { spans } = await api.predict(model.name, input, signal);
    const note = (span) => el("small", { title: percent(speech, span.probability) }, ` ${span.label} `);
    clear(answer).append(...(spans.length ? marked(input, spans, note) : [speech.say("em", "noSpans")]));
    look.offer([{ label: input, name: model.name, body: { input } }]);
  }

  const form = asking(context, "tag", ask);
  const tries = examples(context, model.examples.map(([first]) => first), (one) => (text.put(one), form.run()));
  layout(root, context, "tagging", form, { question: text.root, answers: answer, below: [tries, look] });
}
