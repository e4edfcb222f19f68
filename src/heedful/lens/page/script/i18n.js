// Texts in the language of the moment, from catalogs { en: { key: text }, ko: { key: text } }.

// Of a token that is only a part of a letter a sentence says so: its sign in quotes would read as text.
function withParts(sentence, part) {
  return sentence.replace(/[“‘]◌[”’]/g, (_, place) => (place ? part : part[0].toUpperCase() + part.slice(1)));
}

// One section of the page's messages, as a catalog.
export function section(messages, name) {
  return Object.fromEntries(Object.entries(messages).map(([language, sections]) => [language, sections[name] ?? {}]));
}

// t("layerOf", { n: 3 }) puts 3 where the text says {n}. The first catalog that has the key answers; a key that only
// English has is told in English, and one that nobody has is told as it is. t.has(key) says whether anybody has it.
export function translator(catalogs, state) {
  const find = (key) => {
    const languages = [state.get("language"), "en"];
    return languages.flatMap((language) => catalogs.map((catalog) => catalog[language]?.[key])).find((text) => text !== undefined);
  };
  const t = (key, values = {}) => {
    const text = (find(key) ?? key).replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
    return withParts(text, catalogs.at(-1)[state.get("language")]?.part ?? "◌");
  };
  t.has = (key) => find(key) !== undefined;
  return t;
}

const OUR_NAMES = new Set(["metric", "rival", "reason", "what", "unit", "kind", "role", "other_role"]);

// Translates sentences that come with the data. The English texts of the catalog are the patterns they are recognized by:
// "all {n} steps are done" matches "all 1600 steps are done". Returns null for a sentence that no pattern matches. Of the
// values in a sentence, those that are the program's own words are translated too, also as the labels of `labelOf`.
export function phraseTranslator(catalog, state, labelOf = () => null) {
  const t = translator([catalog], state);
  const patterns = Object.entries(catalog.en).map(([key, text]) => {
    const escaped = text.replace(/[.*+?^$()|[\]\\]/g, "\\$&");
    return [key, new RegExp(`^${escaped.replace(/\{(\w+)\}/g, "(?<$1>.+?)")}$`, "s")];
  });
  const translate = (sentence) => {
    for (const [key, pattern] of patterns) {
      const match = pattern.exec(sentence);
      if (!match) continue;
      const values = Object.entries(match.groups ?? {}).map(([name, value]) => [
        name, OUR_NAMES.has(name) ? translate(value) ?? labelOf(value) ?? value : value]);
      return t(key, Object.fromEntries(values));
    }
    return null;
  };
  return translate;
}
