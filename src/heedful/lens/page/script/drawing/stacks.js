// Stacks of blocks side by side, as in the paper's figure 1: the input at the foot, the layers in a frame, and the
// memory that the first stack passes to the second.
import { ink, shade } from "../color.js";
import { el, onHover, onKeys, set, svg } from "../dom.js";
import { fitted, label, resize, widthOf } from "./text.js";

const FRAME = 16, MARGIN = 14, WIDEST = 380;
const MANY = 16; // blocks in a stack: from here on they are low, and no shapes stand between them

const arrow = (d, more) => svg("path", { d, fill: "none", stroke: "var(--soft)", "stroke-width": 1.3, ...more });
const tip = (x, y) => arrow(`M${x - 4} ${y + 7}L${x} ${y}L${x + 4} ${y + 7}`);

// A box that describes itself when it is pointed at or has the focus, and goes on when it is pressed again.
function box({ id, name, dark, current, tell, go }, { x, y, wide, high, size }, drawing, readout) {
  const paper = shade(dark);
  const ground = svg("rect", { x, y, width: wide, height: high, rx: 7, fill: paper, stroke: current ? "var(--accent-2)" : "var(--line)", "stroke-width": current ? 2.5 : 1 });
  const node = svg("g", { tabindex: 0, role: "button", "aria-label": name, "aria-current": current && "true", "data-block": id, "data-keep": `block-${id}`, style: { cursor: "pointer" } },
    ground, label(fitted(name, wide - 8, size), x + wide / 2, y + high / 2 + 5, { size, weight: 550, anchor: "middle", fill: ink(paper) }));
  const choose = () => {
    for (const other of drawing.querySelectorAll("[data-block]")) set(other.firstChild, { stroke: other.ariaCurrent ? "var(--accent-2)" : "var(--line)" });
    ground.setAttribute("stroke", "var(--accent-2)");
    drawing.dataset.chosen = id;
    readout.replaceChildren(el("b", {}, name), " ", ...[tell()].flat(Infinity));
  };
  onHover(node, (event) => event.pointerType !== "touch" && choose(), null);
  node.addEventListener("focus", () => node.matches(":focus-visible") && choose());
  node.addEventListener("click", () => (drawing.dataset.chosen === id ? go() : choose()));
  onKeys(node, (key) => (key === "Enter" || key === " " ? go() : false));
  return node;
}

// `stacks`: { text, length, title, blocks } each, blocks from the foot up: { id, name, dark, shape, tell, go } and
//   place    "below" or "above" the frame; in it where there is none
//   bypass   "post": the residual goes around the block before and into this one; "pre": around both
//   reads    the memory goes into it;  current: it is marked
// What a block tells stands in `readout`; `memory` names what the first stack passes to the second.
export function drawStacks(name, width, stacks, { readout, memory }) {
  const drawing = svg("svg", { role: "group", "aria-label": name });
  const dense = Math.max(...stacks.map(({ blocks }) => blocks.length)) > MANY;
  const [high, step] = dense ? [24, 32] : [36, 58];
  const gap = Math.max(26, width * 0.09), wide = Math.max(1, Math.min(WIDEST, (width - 2 * MARGIN - (stacks.length - 1) * gap) / stacks.length)); // a hidden frame has no width
  const size = width < 480 ? 11.5 : 13;
  const places = stacks.map(({ blocks }, n) => {
    const below = blocks.filter(({ place }) => place === "below").length, after = blocks.filter(({ place }) => place === "above").length;
    const top = blocks.length - after;
    const apart = (row) => (row > below ? FRAME : 0) + (row > top ? FRAME + 8 : 0);
    const height = (memory && !n ? 90 : after ? 40 : 66) + blocks.length * step + apart(blocks.length);
    return { x: MARGIN + n * (wide + gap), first: below + 1, top, last: blocks.length, apart, height };
  });
  const foot = Math.max(...places.map(({ height }) => height));
  const y = ({ apart }, row) => foot - 30 - row * step - apart(row);
  const times = (shape) => shape.map((n) => n.toLocaleString("en-US")).join(" × ");

  stacks.forEach(({ text, length, title, blocks }, n) => {
    const place = places[n], { x, first, top } = place, middle = x + wide / 2, ceiling = y(place, top);
    drawing.append(
      svg("rect", { x: x - 12, y: ceiling - 12, width: wide + 24, height: y(place, first) - ceiling + high + 24, rx: 12, fill: "var(--tint)", stroke: "var(--line)" }),
      label(title, x - 8, ceiling - 19, { size: Math.max(9, Math.min(12, (12 * (wide / 2 + 2)) / widthOf(title, 12, 600))), weight: 600 }), // left of the arrow
      label(fitted(text, wide + 20, 13), middle, foot - 10, { anchor: "middle", size: 13, fill: "var(--ink)" }));
    blocks.forEach(({ bypass }, at) => { // from the block below to this one, with the shape of what flows
      const [from, to] = [at ? y(place, at) : foot - 30, y(place, at + 1) + high], shape = at ? blocks[at - 1].shape : [length];
      drawing.append(arrow(`M${middle} ${from}V${to}`), tip(middle, to));
      if (!dense) drawing.append(label(times(shape), middle + 8, to + 16, { size: 11 }));
      if (!bypass) return;
      const end = bypass === "post" ? `V${y(place, at + 1) + high / 2}H${x}` : `V${y(place, at + 1) - 5}H${middle}`;
      drawing.append(arrow(`M${middle} ${y(place, at) + high + 8}H${x - 6}${end}`, { "stroke-dasharray": "3 3" }));
    });
    drawing.append(...blocks.map((block, at) => box(block, { x, y: y(place, at + 1), wide, high, size }, drawing, readout)));
  });
  if (memory) {
    const [from, to] = places, look = { stroke: "var(--accent)", "stroke-width": 2 }, middle = from.x + wide / 2, between = to.x - gap / 2;
    const rows = stacks[1].blocks.flatMap(({ reads }, at) => (reads ? [at + 1] : []));
    drawing.append(arrow(`M${middle} ${y(from, from.last)}v-36H${between}V${y(to, rows[0]) + high / 2}`, look),
      label(memory, middle - 8, y(from, from.last) - 42, { size: 12, fill: "var(--accent)" }),
      ...rows.map((row) => arrow(`M${between} ${y(to, row) + high / 2}H${to.x}`, look)));
  }
  return resize(drawing, width, foot);
}
