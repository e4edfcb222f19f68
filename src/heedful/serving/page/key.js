// The server's key, where it wants one: asked for in a box, kept until the tab closes, and nowhere else.

import { el } from "./look/dom.js";

const PLACE = "heedful.key";

function known() {
  try {
    return sessionStorage.getItem(PLACE);
  } catch {
    return null;
  }
}

export function askForKey({ speech }) {
  let typed = null; // where the browser keeps nothing
  let open = null;

  // True once there is a key to try; false if the reader has none. Several that ask share one box.
  function ask() {
    open ??= box().finally(() => (open = null));
    return open;
  }

  function box() {
    const wrong = Boolean(typed ?? known());
    const input = el("input", { type: "password", autocomplete: "off", required: true, id: "key" });
    const dialog = el("dialog", { class: "box", "aria-labelledby": "key-title" },
      el("form", { method: "dialog" },
        speech.say("h2", "keyTitle", {}, { id: "key-title" }),
        speech.say("p", wrong ? "keyWrong" : "keyWhy"),
        speech.say("label", "key", {}, { for: "key" }), input,
        el("div", { class: "acts" },
          speech.say("button", "keyGive", {}, { class: "go", value: "give" }),
          speech.say("button", "close", {}, { type: "submit", value: "", formnovalidate: true, class: "plain" }))));
    document.body.append(dialog);
    dialog.showModal();
    return new Promise((resolve) => dialog.addEventListener("close", () => {
      dialog.remove();
      if (dialog.returnValue === "give") keep(input.value);
      resolve(dialog.returnValue === "give");
    }));
  }

  function keep(value) {
    typed = value.trim();
    try {
      sessionStorage.setItem(PLACE, typed);
    } catch {
      // Kept in this page alone.
    }
  }

  return { known: () => typed ?? known(), ask };
}
