// Words on the page remember which words they are, so that a change of language retells them and loses nothing.

import { el } from "./look/dom.js";
import { translator } from "./look/i18n.js";
import { messages } from "./messages.js";

const ATTRIBUTES = ["alt", "aria-label", "placeholder", "title"];
const LARGE = 100_000; // from here on 1.2M is said

export function createSpeech(state) {
  const t = translator([messages], state);
  const number = (value, options = {}) => new Intl.NumberFormat(state.get("language"), options).format(value);
  const written = (value) => typeof value !== "number" ? value
    : number(value, value < LARGE ? {} : { notation: "compact", maximumSignificantDigits: 3 });
  const message = (key, values) => t(key, Object.fromEntries(Object.entries(values).map(([name, value]) => [name, written(value)])));

  function retell(root) {
    for (const node of root.querySelectorAll("[data-say]")) {
      node.textContent = message(node.dataset.say, JSON.parse(node.dataset.sayWith ?? "{}"));
    }
    for (const name of ATTRIBUTES) {
      for (const node of root.querySelectorAll(`[data-say-${name}]`)) {
        node.setAttribute(name, t(node.getAttribute(`data-say-${name}`)));
      }
    }
  }

  // An element that says a sentence of the catalogs; {n} in it comes from the values.
  function say(tag, key, values = {}, attributes = {}) {
    return el(tag, { "data-say": key, "data-say-with": JSON.stringify(values), ...attributes }, message(key, values));
  }

  // A button that has a sign instead of a word still has a name.
  function named(node, key) {
    for (const name of ["aria-label", "title"]) {
      node.setAttribute(`data-say-${name}`, key);
      node.setAttribute(name, t(key));
    }
    return node;
  }

  return { t, say, named, retell, number, language: () => state.get("language") };
}

// What went wrong: in the reader's language what to do about it, then the server's own words.
export function complaint(speech, refused) {
  const seconds = Math.ceil(refused.retryAfter ?? 1);
  return el("p", { class: "complaint", role: "alert" },
    speech.say("b", refused.kind, { seconds }), refused.message && el("span", {}, ` ${refused.message}`));
}
