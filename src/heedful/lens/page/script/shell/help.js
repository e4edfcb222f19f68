// What each key does, in a box that any key closes.

import { el, clear } from "../dom.js";

const KEYS = [
  [["←", "→"], "keyStep"], [["↑", "↓"], "keyLayer"], [["[", "]"], "keyHead"], [["m"], "keyMean"],
  [["l"], "keyLevel"], [["k"], "keyLanguage"], [["d"], "keyTheme"], [["?"], "keyHelp"], [["Tab", "Enter"], "keyTab"],
];

// Gives the box and the function that opens it.
export function help({ t }) {
  const box = el("dialog", { class: "keys" });
  box.addEventListener("click", (event) => event.target === box && box.close());
  box.addEventListener("keydown", (event) => {
    if (event.key === "?") {
      event.preventDefault();
      box.close();
    }
  });
  function open() {
    clear(box).append(
      el("h2", {}, t("help")),
      el("dl", {}, KEYS.map(([keys, word]) => [
        el("dt", {}, keys.map((key) => el("kbd", {}, key))), el("dd", {}, t(word)),
      ])),
      el("button", { type: "button", onclick: () => box.close() }, t("close")));
    box.setAttribute("aria-label", t("help"));
    if (!box.open) box.showModal();
  }
  return { box, open };
}
