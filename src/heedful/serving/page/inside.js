// A look inside the answer, below the card of a tool.

import { Refused } from "./api.js";
import { asking } from "./asking.js";
import { clear, el, set } from "./look/dom.js";

// Look inside the answer: the page that `heedful look` writes, here in a frame that can reach nothing, to open, to save.
// It follows a text that is changed, heads that are turned off and activations that are patched: then it is sent another
// document.
const MAY = "allow-scripts allow-downloads";
const PAUSE = 150; // milliseconds without a key

// The page with another document, whose arrays are within it.
function replaced(page, doc) {
  const json = JSON.stringify(doc).replace(/[<>&]/g, (sign) => `\\u00${sign.charCodeAt(0).toString(16)}`);
  return page.replace(/<script type="text\/plain"[^]*?<\/script>\n/g, "").replace(/<title>[^<]*/, "<title>Heedful")
    .replace(/(id="document">)[^]*?(?=<\/script>)/, (_, start) => start + json);
}

// `id` is that of the field for the text; `offer` takes what can be looked at: {label, name, body} each, where body is what the route wants to know.
export function inside(context, id) {
  const { api, served, speech, state } = context;
  let offered = [], current = null, page = "", frame = null, timer = 0;
  let addresses = []; // of the pages in the frame and behind the links
  let unlinked = null; // the document in the frame, if the links have an older one
  const which = el("select", { "data-say-aria-label": "whichSentence" });
  const output = el("div", { class: "shown" });
  const field = el("textarea", { id, rows: 2, dir: "auto", spellcheck: "false" });
  const [openTab, saveFile] = [["openTab", { target: "_blank", rel: "noopener" }], ["saveFile", {}]]
    .map(([word, attributes]) => speech.say("a", word, {}, { ...attributes, onclick: relink, onauxclick: relink, oncontextmenu: relink }));
  const form = asking(context, "look", open), live = asking(context, "look", follow);
  const liveField = el("div", { class: "text live" }, speech.say("label", "liveLabel", {}, { for: id }), field);
  const root = form.listen(el("form", { class: "inside", hidden: true },
    el("div", { class: "offer" }, el("div", {}, speech.say("h2", "lookTitle"), speech.say("p", "lookWhy", {}, { class: "soft" })),
      el("div", { class: "choice" }, which, form.row)),
    form.trouble, output));

  function close() {
    live.end();
    clearTimeout(timer);
    clear(output);
    addresses.forEach((address) => URL.revokeObjectURL(address));
    [addresses, frame, unlinked] = [[], null, null];
  }

  // Only when they are used: putting a page together would delay the drawing in the frame.
  function relink() {
    if (unlinked) link(replaced(page, unlinked));
    unlinked = null;
  }

  // Behind the links stands this page; gives its address.
  function link(content) {
    const address = URL.createObjectURL(new Blob([content], { type: "text/html;charset=utf-8" }));
    addresses.push(address);
    if (addresses.length > 2) URL.revokeObjectURL(addresses.splice(1, 1)[0]); // the first is the frame's
    const hash = `#language=${speech.language()}&theme=${state.get("theme")}`;
    openTab.href = address + hash;
    set(saveFile, { href: address, download: `look-${current.name}.html` });
    return address + hash;
  }

  async function open(signal) {
    current = offered[which.selectedIndex];
    page = await (await api.look(current.name, { ...current.body, language: speech.language() }, signal)).text();
    close();
    clear(live.trouble);
    frame = el("iframe", { src: link(page), sandbox: MAY, "data-say-title": "lookTitle", title: speech.t("lookTitle") });
    liveField.hidden = current.body.input !== current.label; // an image is no text
    field.value = current.body.input;
    output.append(liveField, live.trouble, el("div", { class: "links" }, openTab, saveFile), frame);
    output.scrollIntoView({ behavior: "smooth", block: "nearest" });
  }

  async function follow(signal) {
    const send = (message) => frame.contentWindow.postMessage(message, "*"); // it has no origin of its own
    try {
      const doc = await api.document(current.name, { ...current.body, language: speech.language() }, signal);
      send({ document: doc });
      unlinked = doc;
    } catch (error) {
      if (error instanceof Refused && current.body.patch) send({ refused: error.message }); // beside what asked for it
      throw error;
    }
  }

  function change(body) {
    current = { ...current, body: { ...current.body, ...body } };
    live.run();
  }
  field.addEventListener("input", () => {
    live.end();
    clearTimeout(timer);
    timer = setTimeout(() => field.value.trim() && change({ input: field.value, patch: null }), PAUSE);
  });
  addEventListener("message", ({ source, data }) => {
    if (!frame || source !== frame.contentWindow) return;
    if (Array.isArray(data?.heads)) change({ ablate: data.heads.map(String), patch: null });
    else if (data?.patch) change({ ablate: [], patch: data.patch });
  });

  function offer(list) {
    form.end();
    close();
    clear(form.trouble);
    offered = served.look ? list : [];
    root.hidden = !offered.length;
    clear(which).append(...offered.map((item) => el("option", {}, item.label)));
    which.hidden = offered.length < 2;
    which.selectedIndex = 0;
  }

  return { root, offer };
}
