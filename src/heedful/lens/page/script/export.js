// Any view as a picture: SVG with its looks written into it, or PNG at twice the size.

import { el } from "./dom.js";

const INHERITED = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin",
  "stroke-opacity", "font-family", "font-size", "font-weight", "font-style", "letter-spacing", "text-anchor",
  "font-variant-numeric", "visibility", "color",
];
const OWN = { opacity: "1", display: "inline", "dominant-baseline": "auto" };

const area = ({ width, height }) => width * height;

// The view's main drawing: the largest that is seen.
export function drawingOf(section) {
  const drawings = [...section.querySelectorAll("svg:not(svg svg), canvas")];
  return drawings.sort((a, b) => area(b.getBoundingClientRect()) - area(a.getBoundingClientRect()))[0];
}

function paper() {
  return getComputedStyle(document.documentElement).getPropertyValue("--paper").trim() || "#ffffff";
}

function write(parent, tag, attributes) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  parent.prepend(node);
  return node;
}

// The drawing as an SVG that stands alone, on the page's paper.
function standing(drawing) {
  const { width, height } = drawing.getBoundingClientRect();
  const canvas = drawing.tagName === "CANVAS";
  const copy = canvas ? document.createElementNS("http://www.w3.org/2000/svg", "svg") : drawing.cloneNode(true);
  if (canvas) {
    write(copy, "image", { href: drawing.toDataURL(), width, height });
  } else {
    const originals = drawing.querySelectorAll("*");
    copy.querySelectorAll("*").forEach((node, index) => look(originals[index], node, originals[index].parentNode));
    look(drawing, copy, null);
  }
  const box = canvas ? null : drawing.viewBox.baseVal;
  const [x, y, w, h] = box?.width ? [box.x, box.y, box.width, box.height] : [0, 0, width, height];
  write(copy, "rect", { x: x - w, y: y - h, width: 3 * w, height: 3 * h, style: `fill:${paper()}` });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", Math.round(width));
  copy.setAttribute("height", Math.round(height));
  if (!copy.hasAttribute("viewBox")) copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  return { text: new XMLSerializer().serializeToString(copy), width, height };
}

// What the style sheets say of a node and its parent does not hand down, written into the copy.
function look(original, node, parent) {
  const [computed, above] = [getComputedStyle(original), parent && getComputedStyle(parent)];
  const looks = INHERITED.filter((name) => computed.getPropertyValue(name) !== above?.getPropertyValue(name));
  looks.push(...Object.keys(OWN).filter((name) => computed.getPropertyValue(name) !== OWN[name]));
  node.removeAttribute("class");
  node.removeAttribute("style");
  const rules = looks.map((name) => `${name}:${computed.getPropertyValue(name)}`);
  if (rules.length) node.setAttribute("style", rules.join(";"));
}

function save(blob, name) {
  const address = URL.createObjectURL(blob);
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export function saveSvg(section, name) {
  const drawing = drawingOf(section);
  if (drawing) save(new Blob([standing(drawing).text], { type: "image/svg+xml" }), `${name}.svg`);
}

export async function savePng(section, name) {
  const drawing = drawingOf(section);
  if (!drawing) return;
  const { text, width, height } = standing(drawing);
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await picture.decode();
  const scale = Math.min(2, 8192 / Math.max(width, height)); // larger canvases are refused
  const canvas = el("canvas", { width: Math.round(width * scale), height: Math.round(height * scale) });
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => save(blob, `${name}.png`), "image/png");
}

// The two buttons of a view; `name` is what its files are called.
export function downloadable(section, name = section.dataset.view) {
  const svgButton = el("button", { type: "button", onclick: () => saveSvg(section, name) }, "SVG");
  const pngButton = el("button", { type: "button", onclick: () => savePng(section, name) }, "PNG");
  return el("div", { class: "saves" }, svgButton, pngButton);
}
