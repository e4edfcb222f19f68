// Tools for models that mark parts of a text: the answer to a question, or the entities of a text.

import { textBox, textTool } from "./form.js";
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
