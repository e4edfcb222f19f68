// Classify an image: one that is chosen, dropped or pasted, or one that is drawn.

import { Refused } from "./api.js";
import { asking } from "./asking.js";
import { bars } from "./bars.js";
import { inside } from "./inside.js";
import { el } from "./look/dom.js";
import { DIGITS, pad } from "./pad.js";
import { examples, head, newId } from "./parts.js";

const LONGEST = 640; // pixels of a side that are sent; no model here reads more

// A picture as a data URL, made smaller where it is large: the server takes no bodies of any size.
async function dataUrl(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new Refused("noPicture");
  }
  const scale = Math.min(1, LONGEST / Math.max(bitmap.width, bitmap.height));
  const canvas = el("canvas", { width: Math.max(1, Math.round(bitmap.width * scale)), height: Math.max(1, Math.round(bitmap.height * scale)) });
  canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  const small = canvas.width * canvas.height <= 256 ** 2;
  return small ? canvas.toDataURL("image/png") : canvas.toDataURL("image/jpeg", 0.92);
}

export function mount(root, context) {
  const { api, model, models, speech } = context;
  const { bright } = model.image;
  const digits = model.labels.length === 10 && model.labels.every((label) => /^\d$/.test(label));
  let chosen = null; // a data URL, or null while the pad is in use
  const drawing = pad(context, () => (use(null), form.run()));
  const preview = el("img", { class: "preview", hidden: true, "data-say-alt": "picture", alt: speech.t("picture") });
  const id = newId("file");
  const file = el("input", { type: "file", accept: "image/*", id, class: "aside" });
  const wipe = speech.say("button", "wipe", {}, { type: "button", class: "small", onclick: () => (use(null), drawing.wipe()) });
  const place = el("div", { class: "place" }, drawing.canvas, preview);
  const answer = el("div", { class: "answer", "aria-live": "polite" });
  const look = inside(context);

  function use(picture) {
    chosen = picture;
    preview.hidden = !picture;
    drawing.canvas.hidden = Boolean(picture);
    if (picture) preview.src = picture;
  }

  let given = null; // a file that was just chosen
  async function ask(signal) {
    if (given) {
      const picked = given;
      given = null;
      use(await dataUrl(picked));
    }
    if (!chosen && drawing.empty()) throw new Refused("nothingDrawn");
    const input = chosen ?? drawing.picture(bright);
    bars(context, answer, (await api.predict(model.name, input, signal)).labels);
    look.offer([{ label: model.name, name: model.name, body: { input } }]);
  }

  const form = asking(context, "classify", ask);
  const take = (found) => found && ((given = found), form.run());
  file.addEventListener("change", () => (take(file.files[0]), (file.value = "")));
  for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
    place.addEventListener(kind, (event) => {
      event.preventDefault();
      place.classList.toggle("over", kind === "dragenter" || kind === "dragover");
      if (kind === "drop") take(event.dataTransfer.files[0]);
    });
  }
  addEventListener("paste", (event) => {
    if (!root.hidden && event.clipboardData.files.length) take(event.clipboardData.files[0]);
  });
  const tries = examples(context, digits ? Object.keys(DIGITS) : [], (one) => (use(null), drawing.draw(DIGITS[one]), form.run()));
  root.append(
    head(context, "images", models),
    form.listen(el("form", { class: "card" },
      el("div", { class: "halves" },
        el("div", { class: "half" }, speech.say("p", digits ? "drawDigit" : "dropImage", {}, { class: "soft note" }), place,
          el("div", { class: "foot" }, form.row, el("div", { class: "acts" },
            file, speech.say("label", "choose", {}, { for: id, class: "small" }), wipe)), form.trouble),
        el("div", { class: "half answers" }, speech.say("h2", "answer", {}, { class: "quiet" }), answer)))),
    tries.root, look.root);
}
