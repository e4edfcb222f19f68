// Forecast: numbers in, the steps that follow out.

import { Refused } from "./api.js";
import { copyRow, examples, fileButton, layout, textBox } from "./form.js";
import { el, onWidth } from "./look/dom.js";
import { forecastChart } from "./look/drawing/forecast.js";
import { tooltip } from "./look/drawing/stage.js";

// Numbers from what people paste: a list, a column, or a table with or without names.
const NONE = new Set(["", "na", "nan", "null", "none", "-"]);

function value(cell) {
  const text = cell.trim().replace(/^"|"$/g, "");
  if (NONE.has(text.toLowerCase())) return null;
  const number = Number(text);
  return Number.isFinite(number) ? number : undefined; // a word
}

const cellsOf = (line) => line.split(line.includes("\t") ? "\t" : line.includes(";") ? ";" : ",");
const isData = (row) => row.some((cell) => typeof value(cell) === "number");

// {series, column, name}: series is what the model reads, column the numbers to draw; null where there are none.
function numbersOf(text, columns) {
  const lines = text.split("\n").filter((line) => line.trim());
  const flat = text.trim().split(/[\s,;]+/).map(value);
  const list = lines.length === 1 || lines.every((line) => cellsOf(line).length === 1);
  if (list && columns.length < 2) {
    const rest = flat.slice(flat.findIndex((item) => typeof item === "number")); // a name may stand above
    if (!rest.length || rest.includes(undefined)) return null;
    return { series: rest, column: rest, name: columns[0] ?? "" };
  }
  if (!lines.length) return null;
  const table = lines.map(cellsOf);
  const names = isData(table[0]) ? null : table.shift().map((cell) => cell.trim().replace(/^"|"$/g, ""));
  const rows = table.map((row) => row.map(value));
  const places = wanted(names, rows, columns);
  if (!places || !rows.length) return null;
  const result = rows.map((row) => places.map((place) => (row[place] === undefined ? null : row[place])));
  const single = places.length === 1 && columns.length < 2;
  return {
    series: single ? result.map(([item]) => item) : result,
    column: result.map(([item]) => item),
    name: names?.[places[0]] ?? columns[0] ?? "",
  };
}

// The model's columns by name; else, of a table that has none of them, those with numbers, from the right.
function wanted(names, rows, columns) {
  const lower = names?.map((name) => name.toLowerCase()) ?? [];
  const named = columns.map((column) => lower.indexOf(column.toLowerCase()));
  if (columns.length && named.every((place) => place >= 0)) return named;
  const numeric = (rows[0] ?? []).map((_, place) => place).filter((place) => rows.every((row) => row[place] !== undefined));
  const count = Math.max(1, columns.length);
  return numeric.length >= count ? numeric.slice(-count) : null;
}

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

export function forecast(root, context) {
  const { api, model, speech, state } = context;
  const { series } = model;
  const text = textBox(context, "forecasting", { rows: 8, class: "numbers", inputmode: "text" });
  const answer = el("div", { class: "answer", "aria-live": "polite" });
  const summary = el("p", { class: "soft note" });
  let current = null;
  const tools = copyRow(context, () => current.forecast.join("\n"));
  const file = fileButton(context, "chooseTable", ".csv,.tsv,.txt,text/*", async (table) => {
    text.put((await table.text()).trimEnd());
    form.run();
  });

  // The newest steps that the model reads and those it forecasts.
  function draw() {
    if (!current) return;
    answer.style.position = "relative"; // the note stands beside what is pointed at
    const note = tooltip(answer);
    const frame = el("div", {});
    answer.replaceChildren(frame, note.node);
    const options = { series: current, looking: null, note, t: (key) => speech.t(`series.${key}`) };
    onWidth(frame, (width) => frame.replaceChildren(forecastChart({ ...options, width })));
  }

  async function ask(signal) {
    const result = numbersOf(text.input.value, series.columns);
    if (!result) throw new Refused("noNumbers");
    const [{ forecast }] = await api.predict(model.name, [result.series], signal);
    const [read, ahead] = [result.column.slice(-series.context), forecast.map((row) => [row].flat()[0])];
    current = { name: result.name, context: read, forecast: ahead, patches: [] };
    draw();
    summary.replaceChildren(result.name && el("b", {}, `${result.name} · `) || "",
      speech.say("span", result.column.length > series.context ? "newestRead" : "valuesRead", { n: result.column.length, used: series.context }));
    tools.hidden = false;
    form.look([{ label: result.name, name: model.name, body: { input: result.series.slice(-series.context) } }]);
  }

  state.on(["theme", "language"], draw);
  const tries = examples(context, Object.keys(SHAPES), (item) => (text.put(written(item, series)), form.run()), (item) => speech.say("span", item));
  const form = layout(root, context, "forecasting", "forecast", ask, {
    halves: "halves uneven",
    question: [text.root, speech.say("p", "seriesNeeds", { context: series.context, horizon: series.horizon }, { class: "soft note" })],
    foot: el("div", { class: "acts" }, file),
    answers: [answer, summary, tools], tries,
  });
}
