// Look inside the answer: the page that `heedful look` writes, here in a frame that can reach nothing, to open, to save.

import { asking } from "./asking.js";
import { clear, el } from "./look/dom.js";

const MAY = "allow-scripts allow-downloads";

// `offer` takes what can be looked at: {label, name, body} each, where body is what the route wants to know.
export function inside(context) {
  const { api, served, speech, state } = context;
  let offered = [];
  let address = null; // of the page in the frame
  const which = el("select", { "data-say-aria-label": "whichSentence" });
  const shown = el("div", { class: "shown" });
  const form = asking(context, "look", open);
  const root = form.listen(el("form", { class: "inside", hidden: true },
    el("div", { class: "offer" }, el("div", {}, speech.say("h2", "lookTitle"), speech.say("p", "lookWhy", {}, { class: "soft" })),
      el("div", { class: "choice" }, which, form.row)),
    form.trouble, shown));

  function close() {
    clear(shown);
    if (address) URL.revokeObjectURL(address);
    address = null;
  }

  async function open(signal) {
    const { name, body } = offered[which.selectedIndex];
    const page = await api.look(name, { ...body, language: speech.language() }, signal);
    close();
    address = URL.createObjectURL(new Blob([page], { type: "text/html;charset=utf-8" }));
    const told = `#language=${speech.language()}&theme=${state.get("theme")}`;
    const frame = el("iframe", { src: address + told, sandbox: MAY, "data-say-title": "lookTitle", title: speech.t("lookTitle") });
    shown.append(
      el("div", { class: "links" },
        speech.say("a", "openTab", {}, { href: address + told, target: "_blank", rel: "noopener" }),
        speech.say("a", "saveFile", {}, { href: address, download: `look-${name}.html` })),
      frame);
    shown.scrollIntoView({ behavior: "smooth", block: "nearest" });
  }

  function offer(list) {
    form.end();
    close();
    clear(form.trouble);
    offered = served.look ? list : [];
    root.hidden = !offered.length;
    clear(which).append(...offered.map((one) => el("option", {}, one.label)));
    which.hidden = offered.length < 2;
    which.selectedIndex = 0;
  }

  return { root, offer };
}
