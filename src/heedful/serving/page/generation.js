// Tools for models that write: translate a text, continue it, or answer it with another.

import { copyRow, examples, icon, layout, newId, slider, textBox, textTool } from "./form.js";
import { clear, el } from "./look/dom.js";

const AUTO = "auto";
const unique = (list) => [...new Set(list)];

function languageName(code, speech) {
  try {
    return new Intl.DisplayNames([speech.language()], { type: "language" }).of(code);
  } catch {
    return code; // no language that a browser knows
  }
}

// Two lists of languages. The second has only what the first can be translated into.
function pair({ models, speech, state }, changed) {
  const sources = unique(models.map((model) => model.source));
  const targets = (source) => unique(models.filter((item) => source === AUTO || item.source === source).map((item) => item.target));
  const [from, into] = ["from", "into"].map((key) => el("select", { "data-say-aria-label": key, "aria-label": speech.t(key) }));
  const swap = speech.named(el("button", { type: "button", class: "icon", onclick: () => (draw(into.value, from.value), changed(true)) },
    icon("M4 7h12m-3-3 3 3-3 3M16 13H4m3-3-3 3 3 3")), "swap");
  const both = (source, target) => models.some((item) => item.source === target && item.target === source);

  function fill(select, codes, chosen) {
    clear(select).append(...codes.map((code) =>
      el("option", { value: code }, code === AUTO ? speech.t("detect") : languageName(code, speech))));
    select.value = codes.includes(chosen) ? chosen : codes[0];
  }
  function draw(source = from.value, target = into.value) {
    fill(from, sources.length > 1 ? [...sources, AUTO] : sources, source);
    fill(into, targets(from.value), target);
    swap.hidden = !models.some((item) => both(item.source, item.target));
    swap.disabled = !both(from.value, into.value);
  }
  draw();
  for (const select of [from, into]) select.addEventListener("change", () => (draw(), changed(false)));
  state.on("language", () => draw());
  return { root: el("div", { class: "pair" }, from, swap, into), source: () => from.value, target: () => into.value };
}

// The sentences of a text, each of which can be looked into.
function sentencesOf(text, language) {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  if (!Intl.Segmenter) return lines;
  const cut = new Intl.Segmenter(language, { granularity: "sentence" });
  return lines.flatMap((line) => [...cut.segment(line)].map((item) => item.segment.trim()).filter(Boolean));
}

// Of another translation, the lines in which it is another.
function differing(other, text) {
  const lines = text.split("\n");
  return other.split("\n").filter((line, place) => line !== lines[place]).join("\n");
}

// Translate: lines of text, from and into the languages that are served.
export function translate(root, context) {
  const { api, models, served, speech } = context;
  const text = textBox(context, "translation");
  const answer = el("p", { class: "answer long", dir: "auto", "aria-live": "polite" });
  const others = el("div", { class: "others" });
  const tools = copyRow(context, () => answer.textContent);
  const languages = pair(context, (turned) => {
    if (turned && answer.textContent.trim()) text.put(answer.textContent.trim());
    offerExamples();
    if (text.input.value.trim()) form.run();
  });
  const tries = examples(context, [], (item) => (text.put(item), form.run()));
  const id = newId("more");
  const more = el("select", { id }, [...Array(1 + Math.min(3, served.max_alternatives)).keys()].map((n) => el("option", { value: n }, n)));

  function offerExamples() {
    const source = languages.source();
    tries.offer(unique(models.filter((item) => source === AUTO || item.source === source)
      .flatMap((item) => item.examples.map(([first]) => first))).slice(0, 4));
  }

  async function ask(signal) {
    const q = text.input.value;
    if (!q.trim()) return text.input.focus();
    const options = { source: languages.source(), target: languages.target(), alternatives: Number(more.value) };
    const response = await api.post("translate", { q, format: "text", ...options }, signal);
    answer.lang = others.lang = options.target;
    answer.textContent = response.translatedText;
    clear(others);
    if (response.unknownWords?.length) {
      others.append(speech.say("p", "unknownWords", { words: response.unknownWords.join(", ") }, { role: "note", lang: speech.language() }));
    }
    if (response.alternatives?.length) {
      others.append(speech.say("h2", "alternatives", {}, { lang: speech.language() }),
        el("ol", {}, response.alternatives.map((item) => el("li", { dir: "auto" }, differing(item, response.translatedText)))));
    }
    tools.hidden = false;
    const detected = response.detectedLanguage?.language ?? options.source;
    const name = models.find((item) => item.source === detected && item.target === options.target)?.name;
    const beam = options.alternatives ? { beam: 1 + options.alternatives } : {};
    form.look(name ? sentencesOf(q, detected).map((item) => ({ label: item, name, body: { input: item, ...beam } })) : []);
  }

  const alternatives = el("div", { class: "option", hidden: !served.max_alternatives }, speech.say("label", "alternatives", {}, { for: id }), more);
  offerExamples();
  const form = layout(root, context, "translation", "translate", ask, {
    top: el("div", { class: "top" }, languages.root), question: text.root, foot: alternatives, answers: [answer, others, tools], tries,
  });
}

const [USUAL, MOST] = [64, 400]; // tokens to ask for; a look shows no more

// Continue a text: it comes word by word, and can be stopped.
export function continueText(root, context) {
  const { api, model, served } = context;
  const text = textBox(context, "language-model");
  const promptText = el("span", { class: "soft" });
  const written = el("span", {});
  const answer = el("p", { class: "answer long", dir: "auto" }, promptText, written);
  const tools = copyRow(context, () => answer.textContent);
  const most = Math.min(MOST, served.max_new_tokens);
  const warmth = slider(context, "temperature", { min: 0, max: 1.5, step: 0.1, value: model.temperature });
  const defaultLength = Math.min(USUAL, most, (model.context ?? Infinity) / 2); // so that a look can show all of it
  const length = slider(context, "length", { min: Math.min(8, most), max: most, step: 8, value: defaultLength });

  async function ask(signal) {
    const prompt = text.input.value;
    const sampling = { temperature: warmth.value(), seed: Math.floor(Math.random() * 2 ** 31) }; // the same seed, the same words
    const max_tokens = length.value();
    form.look([]);
    promptText.textContent = prompt;
    clear(written);
    tools.hidden = false;
    let pieces = 0;
    answer.classList.add("writing");
    try {
      for await (const event of api.complete({ model: model.name, prompt, max_tokens, ...sampling }, signal)) {
        written.append(event.choices?.[0]?.text ?? "");
        pieces += 1;
      }
    } finally {
      answer.classList.remove("writing");
      written.normalize();
      // After a stop, about as much as was written until then.
      const body = { input: prompt, max_new_tokens: signal.aborted ? pieces : max_tokens, ...sampling };
      if (pieces) form.look([{ label: prompt, name: model.name, body }]);
    }
  }

  const tries = examples(context, model.examples.map(([first]) => first), (item) => (text.put(item), form.run()));
  const form = layout(root, context, "language-model", "continue", ask, {
    question: [text.root, el("div", { class: "sliders" }, warmth.root, length.root)], answers: [answer, tools], tries,
  });
}

// Rewrite: a text is answered with another, whatever the model was taught to do.
export function rewrite(root, context) {
  const answer = el("p", { class: "answer", dir: "auto", "aria-live": "polite" });
  const tools = copyRow(context, () => answer.textContent);
  textTool(root, context, {
    task: "text-to-text", verb: "rewrite", boxes: [textBox(context, "text-to-text")], answers: [answer, tools],
    show: ({ text }) => {
      answer.textContent = text;
      tools.hidden = false;
    },
  });
}
