// Losses and learning rates of three trainings, and what the model translates at a chosen step.
import { el, svg } from "../../lens/dom.js";
import { lineLook } from "../../lens/drawing/chart.js";
import { table } from "../../lens/drawing/stage.js";
import { brief, number } from "../../lens/drawing/text.js";
import { caption, figure, live, namedChart, readout } from "../controls.js";

export const trainingRun = figure(700, { run: "warmup", at: 4 }, ({ data, message, state, width, named }) => {
  const names = Object.keys(data.runs);
  // A line for each run over the steps, with a rule where the reader stands.
  const chart = (key, high) => namedChart({
    series: names.map((name, n) => ({ name: message(name), points: data.runs[name][key].map((value, at) => [at + 1, value]), look: { ...lineLook(n), opacity: name === state.run ? 1 : 0.45 } })),
    width, high, isNamed: key === "losses", xLabel: message("step"), name: message(key),
    more: ({ x }) => svg("path", { d: `M${x(data.steps[state.at])} 6V${high + 6}`, stroke: "var(--accent-2)", "stroke-width": 1.5 }),
  });
  return live(state, ({ either, slider }) => [
    either("run", message("run"), named(names)),
    slider("at", message("step"), [0, data.steps.length - 1], (value) => String(data.steps[value])),
  ], () => {
    const run = data.runs[state.run], step = data.steps[state.at], outputs = run.translations[state.at];
    const rows = data.sentences.map(({ source, right, trained }, n) => [
      [source, trained ? "" : el("small", {}, ` ${message("unseen")}`)], outputs[n] || "∅", right.includes(outputs[n]) ? `✓ ${message("right")}` : `✗ ${message("wrong")}`]);
    return [
      caption(message("losses")), chart("losses", 150), caption(message("rates")), chart("rates", 80),
      table(["sentence", "translation", "verdict"].map((key) => message(key)), rows, { numbers: 3 }),
      readout(message("facts", { run: message(state.run), n: step, loss: number(run.losses[step - 1]), rate: brief(run.rates[step - 1]) }))];
  });
});
