// A pad to draw on with a finger, a pen or a mouse. What is drawn is cut out and centred, as sets of digits are.

import { el } from "./look/dom.js";

const SIZE = 280;
const INK = 22;
const FILLS = 0.72; // of the square, by the longer side of what is drawn

// Strokes of a few digits, in hundredths of the pad: something to begin with.
export const DIGITS = {
  3: [[[34, 28], [46, 20], [60, 24], [64, 36], [56, 46], [46, 48]], [[46, 48], [60, 52], [66, 64], [60, 78], [46, 82], [32, 76]]],
  7: [[[30, 24], [66, 24], [68, 24], [67, 28], [56, 50], [46, 82]]],
  2: [[[34, 34], [40, 22], [56, 20], [66, 32], [60, 46], [44, 62], [32, 78], [32, 80], [34, 80], [70, 80]]],
};

export function pad({ speech }, changed) {
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

  function line(from, to) {
    pen.beginPath();
    pen.moveTo(...from);
    pen.lineTo(...to);
    pen.stroke();
    marked = true;
  }

  // Round the corners: each point pulls the line, which goes through the middles between them.
  function curve(points) {
    const middle = (place) => [0, 1].map((axis) => (points[place][axis] + points[place + 1][axis]) / 2);
    pen.beginPath();
    pen.moveTo(...points[0]);
    for (let place = 1; place < points.length - 1; place += 1) pen.quadraticCurveTo(...points[place], ...middle(place));
    pen.lineTo(...points.at(-1));
    pen.stroke();
  }

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    last = place(event);
    line(last, last);
    event.preventDefault();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!last) return;
    for (const one of event.getCoalescedEvents?.() ?? [event]) line(last, (last = place(one)));
  });
  for (const end of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(end, () => {
      if (last) changed();
      last = null;
    });
  }

  function draw(strokes) {
    wipe();
    const scaled = strokes.map((stroke) => stroke.map((point) => point.map((part) => (part / 100) * SIZE)));
    for (const stroke of scaled) curve(stroke);
    marked = true;
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
