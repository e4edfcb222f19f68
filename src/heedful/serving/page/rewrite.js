// Rewrite: a text is answered with another, whatever the model was taught to do.

import { asking } from "./asking.js";
import { inside } from "./inside.js";
import { el } from "./look/dom.js";
import { copyButton, examples, head, textBox } from "./parts.js";

export function mount(root, context) {
  const { api, model, models, speech } = context;
  const text = textBox(context, "text-to-text");
  const answer = el("p", { class: "answer", dir: "auto", "aria-live": "polite" });
  const tools = el("div", { class: "acts", hidden: true }, copyButton(context, () => answer.textContent));
  const look = inside(context);

  async function ask(signal) {
    const input = text.input.value;
    if (!input.trim()) return text.input.focus();
    answer.textContent = (await api.predict(model.name, input, signal)).text;
    tools.hidden = false;
    look.offer([{ label: input, name: model.name, body: { input } }]);
  }

  const form = asking(context, "rewrite", ask);
  const tries = examples(context, model.examples.map(([first]) => first), (one) => (text.put(one), form.run()));
  root.append(
    head(context, "text-to-text", models),
    form.listen(el("form", { class: "card" },
      el("div", { class: "halves" },
        el("div", { class: "half" }, text.root, el("div", { class: "foot" }, form.row), form.trouble),
        el("div", { class: "half answers" }, speech.say("h2", "answer", {}, { class: "quiet" }), answer, tools)))),
    tries.root, look.root);
}
