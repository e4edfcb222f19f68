// Forecast: numbers in, the steps that follow out.

import { Refused } from "./api.js";
import { asking } from "./asking.js";
import { inside } from "./inside.js";
import { el } from "./look/dom.js";
import { lineChart } from "./line.js";
import { numbersOf } from "./numbers.js";
import { copyButton, examples, head, newId, textBox } from "./parts.js";

// Series of our own making, long enough for the model: they rise, swing and turn.
const SHAPES = {
  season: (step) => 100 + 0.4 * step + 9 * Math.sin((2 * Math.PI * step) / 12),
  trend: (step) => 40 + 0.8 * step + 3 * Math.sin(step / 2.3) + 2 * Math.sin(step * 1.7),
  swing: (step) => 60 + 20 * Math.sin((2 * Math.PI * step) / 20) * Math.exp(-step / 200),
};

function written(shape, { context, columns }) {
  const rows = Array.from({ length: context }, (_, step) =>
    Array.from({ length: Math.max(1, columns.length) }, (_, place) => (SHAPES[shape](step) * (1 + place / 20)).toFixed(2)));
  return columns.length > 1 ? [columns.join(","), ...rows.map((row) => row.join(","))].join("\n") : rows.join("\n");
}

export function mount(root, context) {
  const { api, model, models, speech, state } = context;
  const { series } = model;
  const text = textBox(context, "forecasting", { rows: 8, class: "numbers", inputmode: "text" });
  const answer = el("div", { class: "answer", "aria-live": "polite" });
  const said = el("p", { class: "soft note" });
  const look = inside(context);
  let known = null;
  const tools = el("div", { class: "acts", hidden: true }, copyButton(context, () => known[1].join("\n")));
  const id = newId("file");
  const file = el("input", { type: "file", accept: ".csv,.tsv,.txt,text/*", id, class: "aside" });

  const draw = () => known && lineChart(context, answer, ...known);
  async function ask(signal) {
    const found = numbersOf(text.input.value, series.columns);
    if (!found) throw new Refused("noNumbers");
    const { forecast } = await api.predict(model.name, found.series, signal);
    known = [found.column.slice(-series.context), forecast.map((row) => [row].flat()[0])];
    draw();
    said.replaceChildren(found.name && el("b", {}, `${found.name} · `) || "",
      speech.say("span", found.column.length > series.context ? "newestRead" : "valuesRead", { n: found.column.length, used: series.context }));
    tools.hidden = false;
    look.offer([{ label: found.name, name: model.name, body: { input: found.series.slice(-series.context) } }]);
  }

  const form = asking(context, "forecast", ask);
  file.addEventListener("change", async () => {
    if (file.files[0]) text.put((await file.files[0].text()).trimEnd());
    file.value = "";
    form.run();
  });
  state.on("language", draw);
  const tries = examples(context, Object.keys(SHAPES), (one) => (text.put(written(one, series)), form.run()), (one) => speech.say("span", one));
  root.append(
    head(context, "forecasting", models),
    form.listen(el("form", { class: "card" },
      el("div", { class: "halves uneven" },
        el("div", { class: "half" }, text.root,
          speech.say("p", "seriesNeeds", { context: series.context, horizon: series.horizon }, { class: "soft note" }),
          el("div", { class: "foot" }, form.row, el("div", { class: "acts" }, file, speech.say("label", "chooseTable", {}, { for: id, class: "small" }))), form.trouble),
        el("div", { class: "half answers" }, speech.say("h2", "answer", {}, { class: "quiet" }), answer, said, tools)))),
    tries.root, look.root);
}
