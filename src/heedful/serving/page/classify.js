// Classify a text, or two that belong together.

import { asking } from "./asking.js";
import { bars } from "./bars.js";
import { inside } from "./inside.js";
import { el } from "./look/dom.js";
import { examples, head, textBox } from "./parts.js";

export function mount(root, context) {
  const { api, model, models, speech } = context;
  const boxes = model.texts === 2
    ? [textBox(context, "first", { rows: 2 }), textBox(context, "second", { rows: 2 })]
    : [textBox(context, "classification")];
  const answer = el("div", { class: "answer", "aria-live": "polite" });
  const look = inside(context);

  async function ask(signal) {
    const texts = boxes.map((box) => box.input.value);
    const empty = boxes.find((box) => !box.input.value.trim());
    if (empty) return empty.input.focus();
    const input = texts.length === 2 ? texts : texts[0];
    const { labels } = await api.predict(model.name, input, signal);
    bars(context, answer, labels, { scores: model.scores });
    look.offer([{ label: texts.join(" · "), name: model.name, body: { input } }]);
  }

  const form = asking(context, "classify", ask);
  const fill = (texts) => boxes.forEach((box, place) => box.put(texts[place] ?? ""));
  const tries = examples(context, model.examples, (one) => (fill(one), form.run()), (one) => one.join(" · "));
  root.append(
    head(context, "classification", models),
    form.listen(el("form", { class: "card" },
      el("div", { class: "halves" },
        el("div", { class: "half" }, boxes.map((box) => box.root), el("div", { class: "foot" }, form.row), form.trouble),
        el("div", { class: "half answers" }, speech.say("h2", "answer", {}, { class: "quiet" }), answer)))),
    tries.root, look.root);
}
