// Classify an image: one that is chosen, dropped or pasted, or one that is drawn.

import { Refused } from "./api.js";
import { bars, examples, fileButton, layout } from "./form.js";
import { el } from "./look/dom.js";

const SIZE = 280;
const INK = 22;
const FILLS = 0.72; // of the square, by the longer side of what is drawn

// Strokes of a few digits, in hundredths of the pad: something to begin with.
const DIGITS = {
  3: [[[34, 28], [46, 20], [60, 24], [64, 36], [56, 46], [46, 48]], [[46, 48], [60, 52], [66, 64], [60, 78], [46, 82], [32, 76]]],
  7: [[[30, 24], [66, 24], [68, 24], [67, 28], [56, 50], [46, 82]]],
  2: [[[34, 34], [40, 22], [56, 20], [66, 32], [60, 46], [44, 62], [32, 78], [32, 80], [34, 80], [70, 80]]],
};

// A pad to draw on with a finger, a pen or a mouse. What is drawn is cut out and centered, as sets of digits are.
function pad({ speech }, changed) {
  const canvas = el("canvas", { width: SIZE, height: SIZE, class: "pad", role: "img", "aria-label": speech.t("pad"), "data-say-aria-label": "pad" });
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  let last = null;
  let marked = false;

  function wipe() {
    pen.fillStyle = "#000000";
    pen.fillRect(0, 0, SIZE, SIZE);
    Object.assign(pen, { strokeStyle: "#ffffff", lineWidth: INK, lineCap: "round", lineJoin: "round" });
    marked = false;
  }

  function place(event) {
    const box = canvas.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * SIZE, ((event.clientY - box.top) / box.height) * SIZE];
  }

  // Round the corners: each point pulls the line, which goes through the middles between them.
  function curve(points) {
    const middle = (place) => [0, 1].map((axis) => (points[place][axis] + points[place + 1][axis]) / 2);
    pen.beginPath();
    pen.moveTo(...points[0]);
    for (let place = 1; place < points.length - 1; place += 1) pen.quadraticCurveTo(...points[place], ...middle(place));
    pen.lineTo(...points.at(-1));
    pen.stroke();
    marked = true;
  }

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    last = place(event);
    curve([last, last]);
    event.preventDefault();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!last) return;
    for (const item of event.getCoalescedEvents?.() ?? [event]) curve([last, (last = place(item))]);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(end, () => {
      if (last) changed();
      last = null;
    });
  }

  function draw(strokes) {
    wipe();
    for (const stroke of strokes) curve(stroke.map((point) => point.map((part) => (part / 100) * SIZE)));
  }

  // The smallest box around the ink.
  function bounds() {
    const { data } = pen.getImageData(0, 0, SIZE, SIZE);
    let [left, top, right, bottom] = [SIZE, SIZE, 0, 0];
    for (let at = 0; at < SIZE * SIZE; at += 1) {
      if (data[4 * at] < 64) continue;
      const [x, y] = [at % SIZE, Math.floor(at / SIZE)];
      [left, top, right, bottom] = [Math.min(left, x), Math.min(top, y), Math.max(right, x), Math.max(bottom, y)];
    }
    return [left, top, right - left + 1, bottom - top + 1];
  }

  // A data URL; white on black, or black on white where the model's pictures are bright.
  function picture(bright) {
    const [left, top, width, height] = bounds();
    const scale = (FILLS * SIZE) / Math.max(width, height);
    const out = el("canvas", { width: SIZE, height: SIZE });
    const brush = out.getContext("2d");
    brush.fillStyle = "#000000";
    brush.fillRect(0, 0, SIZE, SIZE);
    const [w, h] = [width * scale, height * scale];
    brush.drawImage(canvas, left, top, width, height, (SIZE - w) / 2, (SIZE - h) / 2, w, h);
    if (bright) {
      brush.globalCompositeOperation = "difference";
      brush.fillStyle = "#ffffff";
      brush.fillRect(0, 0, SIZE, SIZE);
    }
    return out.toDataURL("image/png");
  }

  wipe();
  return { canvas, wipe, draw, picture, empty: () => !marked };
}

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

export function classifyImage(root, context) {
  const { api, model, speech } = context;
  const { bright } = model.image;
  const digits = model.labels.length === 10 && model.labels.every((label) => /^\d$/.test(label));
  let chosen = null; // a data URL, or null while the pad is in use
  const drawing = pad(context, () => (use(null), form.run()));
  const preview = el("img", { class: "preview", hidden: true, "data-say-alt": "picture", alt: speech.t("picture") });
  const file = fileButton(context, "choose", "image/*", (picked) => take(picked));
  const wipe = speech.say("button", "wipe", {}, { type: "button", onclick: () => (use(null), drawing.wipe()) });
  const place = el("div", { class: "place" }, drawing.canvas, preview);
  const answer = el("div", { class: "answer", "aria-live": "polite" });

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
    const [{ labels }] = await api.predict(model.name, [input], signal);
    bars(context, answer, labels);
    form.look([{ label: model.name, name: model.name, body: { input } }]);
  }

  const take = (result) => result && ((given = result), form.run());
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
  const tries = examples(context, digits ? Object.keys(DIGITS) : [], (item) => (use(null), drawing.draw(DIGITS[item]), form.run()));
  const form = layout(root, context, "images", "classify", ask, {
    question: [speech.say("p", digits ? "drawDigit" : "dropImage", {}, { class: "soft note" }), place],
    foot: el("div", { class: "acts" }, file, wipe),
    answers: answer, tries,
  });
}
