// The sections of a report that are read: facts, scores, notes, comparison, examples, and what was read.
import { el } from "../dom.js";
import { phraseTranslator, section as catalogOf, translator } from "../i18n.js";
import { bars } from "../drawing/chart.js";
import { redrawn, table } from "../drawing/stage.js";

const MOST_ACROSS = 5; // scores side by side; more stand one below the other
const OWN = new Set(["labels", "classes", "columns", "name", "file", "path", "run"]); // hold the reader's own words
const LONGEST_LOUD_WORD = 24; // letters; a hash or a path is set small

// A section of the report as a view: `draw(content, tools)` gives its nodes, anew for another width, language or theme.
export function section(name, draw) {
  return {
    name,
    fits: (doc) => Boolean(doc[name]),
    mount(root, context) {
      const { doc, messages, state, t } = context;
      const names = translator([catalogOf(messages, "names")], state);
      const labelOf = (key) => {
        const id = key.toLowerCase().replaceAll(" ", "_");
        return names.has(id) ? names(id) : null;
      };
      const phrase = phraseTranslator(catalogOf(messages, "phrases"), state, labelOf);
      // "validation BLEU" is the name of a set and the name of a metric.
      const known = (key) => labelOf(key) ?? phrase(key);
      const jointLabel = (key) => {
        const words = key.split(" ");
        const pairs = words.map((_, n) => [words.slice(0, n).join(" "), words.slice(n).join(" ")]);
        const pair = pairs.find((parts) => parts.every(known));
        return pair ? pair.map(known).join(" ") : null;
      };
      // The label of a name that comes with the data, and a sentence of the data in the reader's language. One that the
      // catalogs do not have stays as it is.
      const nameOf = (key) => known(key) ?? jointLabel(key) ?? key.replaceAll("_", " ");
      const sentence = (text) => phrase(text) ?? text;
      const cell = (value) => (typeof value === "boolean" ? t(value ? "yes" : "no") : sentence(value));
      redrawn(root, state, [], (width, note) => draw(doc[name], { ...context, nameOf, sentence, width, note, cell }));
    },
  };
}

// Names and values, side by side; a value may be a list.
function factList(facts, { nameOf, cell }) {
  const isLong = (text) => text.split(/\s/).some((word) => word.length > LONGEST_LOUD_WORD);
  const texts = facts.map(([name, value]) => [name, [value].flat().map((each) => (OWN.has(name) ? each : cell(each))).join(", ")]);
  return el("dl", { class: "report-facts" }, texts.map(([name, text]) => el("div", {},
    el("dt", {}, nameOf(name)), el("dd", { dir: "auto", class: isLong(text) ? "mono" : null }, text))));
}

// A table of the document under the names of its keys; the rows' own names are translated where `named` says so.
function dataTable({ keys, rows, total }, { t, nameOf, cell }, named = false) {
  const body = rows.map((values) => values.map((value, n) => (
    named && n === 0 ? nameOf(value) : OWN.has(keys[n]) ? value : cell(value))));
  const note = total > rows.length && el("p", { class: "figure-note" }, t("out_of", { shown: rows.length, total }));
  return [table(keys.map(nameOf), body), note || ""];
}

function scoreTable(rows, { t, nameOf, sentence }) {
  const unique = (key) => [...new Set(rows.map((row) => row[key]))];
  const [sets, metrics] = [unique("set"), unique("metric")];
  const text = (set, metric) => rows.findLast((row) => row.set === set && row.metric === metric)?.text ?? "–";
  const across = metrics.length <= MOST_ACROSS;
  const heads = across ? [t("set"), ...metrics.map(nameOf)] : [t("score"), ...sets.map(nameOf)];
  const body = across ? sets.map((set) => [nameOf(set), ...metrics.map((metric) => text(set, metric))])
    : metrics.map((metric) => [nameOf(metric), ...sets.map((set) => text(set, metric))]);
  const signed = new Map(rows.filter((row) => row.signature).map((row) => [`${row.metric} ${row.signature}`, row]));
  const signatures = [...signed.values()].map((row) => el("div", {},
    el("dt", {}, nameOf(row.metric)), el("dd", { class: "mono" }, sentence(row.signature))));
  return [table(heads, body), ...(signatures.length ? [el("h3", {}, t("signature")), el("dl", { class: "signatures" }, signatures)] : [])];
}

// [name, what stands beside it] one below the other.
function entry(pairs) {
  return el("div", { class: "sample" }, el("dl", {}, pairs.map(([name, text, look]) => [
    el("dt", {}, name), el("dd", { dir: "auto", class: look }, text)])));
}

function sampleEntry({ source, reference, output, same, score, exact }, t) {
  const pieces = (parts, tag) => parts.map(([text, differs]) => (differs ? el(tag, {}, text) : text));
  const remark = [score, exact && t("exact"), same && t("same")].filter(Boolean).join(" · ");
  const answer = output.length ? pieces(output, "ins") : t("nothing");
  const texts = same ? [[t("output"), answer]] : [[t("reference"), pieces(reference, "del")], [t("output"), answer]];
  return entry([[t("source"), source], ...texts, [t("score"), remark, "soft"]]);
}

function sampleList({ groups, shown, total }, { t }) {
  const listed = Object.entries(groups).flatMap(([name, samples]) => [
    el("h3", {}, t(name)), ...samples.map((sample) => sampleEntry(sample, t))]);
  return [
    el("p", { class: "figure-note" }, el("del", {}, t("missing")), " · ", el("ins", {}, t("extra"))),
    ...listed, el("p", { class: "figure-note" }, t("out_of", { shown, total })),
  ];
}

function dataGroup(group, tools, isOwn) {
  const { t, width } = tools;
  const nameOf = isOwn ? (name) => (name.includes(" ") ? tools.sentence(name) : name) : tools.nameOf; // "with an answer" is ours
  if (!group.bars) return dataTable(group.table, tools, group.named);
  return [bars(group.bars.map(([name, share, text, places]) => ({
    name: nameOf(name), share, text, note: places && t("first_at", { places }),
  })), width, `${t("reason")}, ${t("count")}`)];
}

export const facts = section("facts", (content, tools) => [factList(content, tools)]);
export const scores = section("scores", scoreTable);
export const notes = section("notes", (content, { sentence }) => content.map((text) => el("p", { dir: "auto" }, sentence(text))));
export const comparison = section("comparison", (content, tools) => dataTable(content, tools));
export const samples = section("samples", sampleList);
export const continuations = section("continuations", (content, { t }) => content.map(([prompt, text]) =>
  entry([[t("prompt"), prompt], [t("output"), text]])));
export const reading = section("reading", ({ facts, ...content }, tools) => [
  factList(facts.filter(([name]) => name !== "notes"), tools),
  ...facts.filter(([name]) => name === "notes").flatMap(([name, texts]) => [
    el("h3", {}, tools.nameOf(name)), ...[texts].flat().map((text) => el("p", { dir: "auto" }, tools.sentence(text)))]),
  ...content.groups.flatMap(([name, group]) => [el("h3", {}, tools.nameOf(name)), ...dataGroup(group, tools, OWN.has(name))]),
]);
