// Fill gaps: the model guesses the words that are missing.

import { asking } from "./asking.js";
import { bars } from "./bars.js";
import { inside } from "./inside.js";
import { clear, el } from "./look/dom.js";
import { copyButton, examples, head, textBox } from "./parts.js";

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

export function mount(root, context) {
  const { api, model, models, speech } = context;
  const text = textBox(context, "masked");
  const answer = el("p", { class: "answer", dir: "auto", "aria-live": "polite" });
  const guesses = el("div", { class: "guesses" });
  const tools = el("div", { class: "acts", hidden: true }, copyButton(context, () => answer.textContent));
  const look = inside(context);
  const insert = speech.say("button", "insertGap", { mask: model.mask }, { type: "button", class: "small" });
  insert.addEventListener("click", () => {
    const { selectionStart, selectionEnd } = text.input;
    text.input.setRangeText(model.mask, selectionStart, selectionEnd, "end");
    text.fit();
    text.input.focus();
  });

  async function ask(signal) {
    const input = text.input.value;
    if (!input.trim()) return text.input.focus();
    const { gaps } = await api.predict(model.name, input, signal);
    clear(answer).append(...filled(input, model.mask, gaps));
    clear(guesses).append(...gaps.map((gap) => {
      const list = el("div", {});
      bars(context, list, gap.map(({ text, probability }) => ({ label: text.trim(), probability })));
      return list;
    }));
    tools.hidden = false;
    look.offer([{ label: input, name: model.name, body: { input } }]);
  }

  const form = asking(context, "fill", ask);
  const tries = examples(context, model.examples.map(([first]) => first), (one) => (text.put(one), form.run()));
  root.append(
    head(context, "masked", models),
    form.listen(el("form", { class: "card" },
      el("div", { class: "halves" },
        el("div", { class: "half" }, text.root, el("div", { class: "foot" }, form.row, insert), form.trouble),
        el("div", { class: "half answers" }, speech.say("h2", "answer", {}, { class: "quiet" }), answer, guesses, tools)))),
    tries.root, look.root);
}
