// Translate: lines of text, from and into the languages that are served.

import { asking } from "./asking.js";
import { inside } from "./inside.js";
import { clear, el } from "./look/dom.js";
import { copyButton, examples, head, icon, newId, textBox } from "./parts.js";

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
  const targets = (source) => unique(models.filter((one) => source === AUTO || one.source === source).map((one) => one.target));
  const [from, into] = ["from", "into"].map((key) => el("select", { "data-say-aria-label": key, "aria-label": speech.t(key) }));
  const swap = speech.named(el("button", { type: "button", class: "icon", onclick: () => turn() },
    icon("M4 7h12m-3-3 3 3-3 3M16 13H4m3-3-3 3 3 3")), "swap");
  const both = (source, target) => models.some((one) => one.source === target && one.target === source);

  function fill(select, codes, chosen) {
    clear(select).append(...codes.map((code) =>
      el("option", { value: code }, code === AUTO ? speech.t("detect") : languageName(code, speech))));
    select.value = codes.includes(chosen) ? chosen : codes[0];
  }
  function draw(source = from.value, target = into.value) {
    fill(from, sources.length > 1 ? [...sources, AUTO] : sources, source);
    fill(into, targets(from.value), target);
    swap.hidden = !models.some((one) => both(one.source, one.target));
    swap.disabled = !both(from.value, into.value);
  }
  function turn() {
    draw(into.value, from.value);
    changed(true);
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
  return lines.flatMap((line) => [...cut.segment(line)].map((one) => one.segment.trim()).filter(Boolean));
}

// Of another translation, the lines in which it is another.
function differing(other, text) {
  const lines = text.split("\n");
  return other.split("\n").filter((line, place) => line !== lines[place]).join("\n");
}

export function mount(root, context) {
  const { api, models, served, speech } = context;
  const text = textBox(context, "translation");
  const answer = el("p", { class: "answer long", dir: "auto", "aria-live": "polite" });
  const others = el("div", { class: "others" });
  const tools = el("div", { class: "acts", hidden: true }, copyButton(context, () => answer.textContent));
  const look = inside(context);
  const languages = pair(context, (turned) => {
    if (turned && answer.textContent.trim()) text.put(answer.textContent.trim());
    offerExamples();
    if (text.input.value.trim()) form.run();
  });
  const tries = examples(context, [], (one) => (text.put(one), form.run()));
  const id = newId("more");
  const more = el("select", { id }, [...Array(1 + Math.min(3, served.max_alternatives)).keys()].map((n) => el("option", { value: n }, n)));

  function offerExamples() {
    const source = languages.source();
    tries.offer(unique(models.filter((one) => source === AUTO || one.source === source)
      .flatMap((one) => one.examples.map(([first]) => first))).slice(0, 4));
  }

  async function ask(signal) {
    const q = text.input.value;
    if (!q.trim()) return text.input.focus();
    const asked = { source: languages.source(), target: languages.target(), alternatives: Number(more.value) };
    const found = await api.post("translate", { q, format: "text", ...asked }, signal);
    show(found, asked.target);
    const told = found.detectedLanguage?.language ?? asked.source;
    const name = models.find((one) => one.source === told && one.target === asked.target)?.name;
    const beam = asked.alternatives ? { beam: 1 + asked.alternatives } : {};
    look.offer(name ? sentencesOf(q, told).map((one) => ({ label: one, name, body: { input: one, ...beam } })) : []);
  }

  function show(found, language) {
    answer.lang = others.lang = language;
    answer.textContent = found.translatedText;
    clear(others);
    if (found.alternatives?.length) {
      others.append(speech.say("h2", "alternatives", {}, { lang: speech.language() }),
        el("ol", {}, found.alternatives.map((one) => el("li", { dir: "auto" }, differing(one, found.translatedText)))));
    }
    tools.hidden = false;
  }

  const form = asking(context, "translate", ask);
  const alternatives = el("div", { class: "option", hidden: !served.max_alternatives }, speech.say("label", "alternatives", {}, { for: id }), more);
  offerExamples();
  root.append(
    head(context, "translation", models),
    form.listen(el("form", { class: "card" },
      el("div", { class: "top" }, languages.root),
      el("div", { class: "halves" },
        el("div", { class: "half" }, text.root, el("div", { class: "foot" }, form.row, alternatives), form.trouble),
        el("div", { class: "half answers" }, speech.say("h2", "answer", {}, { class: "quiet" }), answer, others, tools)))),
    tries.root, look.root);
}
