// Any view as a picture: an SVG that needs no style sheet, or a PNG at twice the size.

import { bytes } from "./arrays.js";
import { el, svg } from "./dom.js";

const INHERITED = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin",
  "stroke-opacity", "font-family", "font-size", "font-weight", "font-style", "letter-spacing", "text-anchor",
  "font-variant-numeric", "image-rendering", "visibility",
];
const OWN = { opacity: "1", "dominant-baseline": "auto" };
const MEANT_FOR_HANDS = /^(class|style|tabindex|role|cursor|pointer-events|data-.*|aria-(?!label$).*)$/;
const LARGEST = 8192; // larger canvases are refused

const area = ({ width, height }) => width * height;

// The view's main drawing: the largest that is seen.
function drawingOf(section) {
  const drawings = [...section.querySelectorAll("svg:not(svg svg)")];
  return drawings.sort((a, b) => area(b.getBoundingClientRect()) - area(a.getBoundingClientRect()))[0];
}

// Style sheets and variables stay behind: whatever a node does not inherit is written out, what is not seen left out.
function plain(original, node, inherited) {
  const computed = getComputedStyle(original);
  if (computed.display === "none") return node.remove();
  const looks = Object.fromEntries(INHERITED.map((name) => [name, computed.getPropertyValue(name)]));
  for (const { name } of [...node.attributes]) {
    if (name in looks || name in OWN || MEANT_FOR_HANDS.test(name)) node.removeAttribute(name);
  }
  for (const name of INHERITED) if (looks[name] !== inherited[name]) node.setAttribute(name, looks[name]);
  for (const name of Object.keys(OWN)) {
    const value = computed.getPropertyValue(name);
    if (value !== OWN[name]) node.setAttribute(name, value);
  }
  const copies = [...node.children];
  [...original.children].forEach((child, place) => plain(child, copies[place], looks));
}

// The drawing as an SVG that stands alone, on the page's paper.
function standing(drawing) {
  const copy = drawing.cloneNode(true);
  plain(drawing, copy, {});
  const { x, y, width, height } = drawing.viewBox.baseVal;
  const paper = getComputedStyle(document.body).backgroundColor;
  copy.prepend(svg("rect", { x, y, width, height, fill: paper, stroke: "none" }));
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", Math.round(width));
  copy.setAttribute("height", Math.round(height));
  const blob = new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
  return { blob, width, height };
}

async function painted({ blob, width, height }) {
  const address = URL.createObjectURL(blob);
  const picture = el("img", { src: address });
  await picture.decode();
  const scale = Math.min(2, LARGEST / Math.max(width, height));
  const canvas = el("canvas", { width: Math.round(width * scale), height: Math.round(height * scale) });
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(address);
  // Not toBlob: it waits for an idle moment, often for seconds.
  return new Blob([bytes(canvas.toDataURL().split(",")[1])], { type: "image/png" });
}

function save(blob, name) {
  const address = URL.createObjectURL(blob);
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// The two buttons of a view; `name` is what its files are called.
export function downloadable(section, name) {
  const button = (ending, made) => el("button", {
    type: "button",
    onclick: async () => save(await made(standing(drawingOf(section))), `${name}.${ending}`),
  }, ending.toUpperCase());
  return el("div", { class: "saves" }, button("svg", ({ blob }) => blob), button("png", painted));
}
