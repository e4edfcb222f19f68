// Continue a text: it comes word by word, and can be stopped.

import { asking } from "./asking.js";
import { inside } from "./inside.js";
import { clear, el } from "./look/dom.js";
import { copyButton, examples, head, slider, textBox } from "./parts.js";

const [USUAL, MOST] = [64, 400]; // tokens to ask for; a look shows no more

export function mount(root, context) {
  const { api, model, models, served, speech } = context;
  const text = textBox(context, "language_model");
  const given = el("span", { class: "soft" });
  const written = el("span", {});
  const answer = el("p", { class: "answer long", dir: "auto" }, given, written);
  const tools = el("div", { class: "acts", hidden: true }, copyButton(context, () => answer.textContent));
  const look = inside(context);
  const most = Math.min(MOST, served.max_new_tokens);
  const warmth = slider(context, "temperature", { min: 0, max: 1.5, step: 0.1, value: model.temperature });
  const usual = Math.min(USUAL, most, (model.context ?? Infinity) / 2); // so that a look can show all of it
  const length = slider(context, "length", { min: Math.min(8, most), max: most, step: 8, value: usual });

  async function ask(signal) {
    const prompt = text.input.value;
    const asked = { temperature: warmth.value(), max_tokens: length.value(), seed: Math.floor(Math.random() * 2 ** 31) };
    look.offer([]);
    given.textContent = prompt;
    clear(written);
    tools.hidden = false;
    let pieces = 0;
    answer.classList.add("writing");
    try {
      for await (const event of api.complete({ model: model.name, prompt, ...asked }, signal)) {
        written.append(event.choices?.[0]?.text ?? "");
        pieces += 1;
      }
    } finally {
      answer.classList.remove("writing");
      written.normalize();
      // After a stop, about as much as was written until then.
      if (pieces) offer(prompt, signal.aborted ? { ...asked, max_tokens: pieces } : asked);
    }
  }

  // The same seed gives the same words again.
  function offer(input, { temperature, max_tokens, seed }) {
    look.offer([{ label: input, name: model.name, body: { input, temperature, seed, max_new_tokens: max_tokens } }]);
  }

  const form = asking(context, "continue", ask);
  const tries = examples(context, model.examples.map(([first]) => first), (one) => (text.put(one), form.run()));
  root.append(
    head(context, "language_model", models),
    form.listen(el("form", { class: "card" },
      el("div", { class: "halves" },
        el("div", { class: "half" }, text.root, el("div", { class: "sliders" }, warmth.root, length.root),
          el("div", { class: "foot" }, form.row), form.trouble),
        el("div", { class: "half answers" }, speech.say("h2", "answer", {}, { class: "quiet" }), answer, tools)))),
    tries.root, look.root);
}
