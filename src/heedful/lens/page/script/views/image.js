// The image as the model reads it: patches, and what a chosen one looks at.
import { chosen, headName, lookingToken, pin, sharesOf, weightsOf } from "../attention/selection.js";
import { dropdown, el, onKeys, svg } from "../dom.js";
import { cells } from "../drawing/matrix.js";
import { redrawn } from "../drawing/stage.js";
import { label, percent, resize } from "../drawing/text.js";

const STYLES = ["tint", "outline"];

export const name = "image";
export const fits = (doc) => doc.image !== null && doc.attentions.length > 0;

function nameOf({ doc, t }, index) {
  const { prefix, columns } = doc.image;
  if (index < prefix) {
    const { text } = doc.sequences.source[index];
    return t.has(text) ? t(text) : text;
  }
  const place = index - prefix;
  return t("patch", { row: Math.floor(place / columns) + 1, column: (place % columns) + 1 });
}

export function mount(root, context) {
  const { doc, state, t } = context;
  const { prefix } = doc.image;
  let style = STYLES[0], strength = 0.85;
  const named = (index) => nameOf(context, index);
  const again = redrawn(root, state, ["attention", "head", "pinned"], async (width, note) => {
    const item = chosen(context);
    const from = lookingToken(context, 0); // the class token, where there is one
    const read = async (head) => sharesOf(await weightsOf(context, { ...item, head }), from, prefix);
    const [{ patches: shares, rest, best }, ...heads] = await Promise.all([item.head, ...item.attention.heads.keys()].map(read));
    const { node, veil } = patches(context, { width, note, item, from, shares, heads, style, named });
    veil.setAttribute("opacity", strength);
    const slider = el("input", {
      type: "range", min: 0, max: 1, step: 0.05, value: strength, "data-keep": "strength",
      oninput: () => veil.setAttribute("opacity", (strength = Number(slider.value))), // in use, it must not be replaced
    });
    const notes = [t("most", { from: named(from), to: named(best), share: percent(shares[best - prefix]) })];
    if (prefix) notes.push(t("own", { share: percent(rest) }));
    return [
      el("div", { class: "picks" },
        dropdown(t("from"), doc.sequences.source.map((_, index) => [index, named(index)]), from, (index) => pin(context, index), "from"),
        dropdown(t("style"), STYLES.map((each) => [each, t(each)]), style, (next) => ((style = next), again()), "style"),
        el("label", {}, el("span", {}, t("strength")), slider)),
      node, el("p", { class: "figure-note" }, notes.join(" ")),
    ];
  });
}

// An image with what is looked at laid over it, large for one head and small for all.

const GAP = 12;
const GLOW = "#ff8a1f"; // seen on black, on white and on gray alike

// What lies over the patches of one head: color by weight, or frames by weight.
export function overlay({ rows, columns }, shares, [width, height], style) {
  const [wide, high] = [width / columns, height / rows];
  const most = Math.max(...shares) || 1;
  const node = svg("g", { "pointer-events": "none" });
  shares.forEach((share, place) => {
    const part = share / most;
    if (part < 0.01) return;
    const thick = style === "outline" ? Math.min(6, wide * 0.18) * part : 0;
    const box = {
      x: (place % columns) * wide + thick / 2, y: Math.floor(place / columns) * high + thick / 2,
      width: wide - thick, height: high - thick,
    };
    const frame = { fill: "none", stroke: GLOW, "stroke-width": thick.toFixed(2) };
    node.append(svg("rect", { ...box, ...(style === "outline" ? frame : { fill: GLOW, opacity: part.toFixed(3) }) }));
  });
  return node;
}

// How many small pictures stand in a row so that they are as large as the room allows.
function tiling(count, [room, high], ratio) {
  const sizes = Array.from({ length: count }, (_, n) => {
    const rows = Math.ceil(count / (n + 1));
    return { fitting: n + 1, small: Math.min(200, room / (n + 1) - GAP, (high / rows - 30) / ratio) };
  });
  return sizes.reduce((best, item) => (item.small > best.small ? item : best));
}

export function picture(image, [width, height]) {
  const rendering = image.size <= 64 ? "pixelated" : "auto";
  const look = { preserveAspectRatio: "none", "image-rendering": rendering, filter: "grayscale(1)" };
  return svg("image", { href: image.png, width, height, ...look });
}

function grid({ rows, columns }, [width, height]) {
  const across = Array.from({ length: rows - 1 }, (_, n) => `M0 ${((n + 1) * height) / rows}H${width}`);
  const down = Array.from({ length: columns - 1 }, (_, n) => `M${((n + 1) * width) / columns} 0V${height}`);
  const look = { stroke: "#888", "stroke-width": 1, opacity: 0.35, fill: "none", "pointer-events": "none" };
  return svg("path", { d: across.concat(down).join(""), ...look });
}

function thumbnail({ name, chosen, size, place, choose }, ...pictures) {
  const [frame, bold] = chosen ? [{ stroke: "var(--accent-2)", "stroke-width": 2.5 }, { fill: "var(--accent-2)", weight: 650 }]
    : [{ stroke: "var(--line)", "stroke-width": 1 }];
  const node = svg("g", {
    transform: `translate(${place})`, tabindex: 0, role: "button", "aria-label": name, "aria-pressed": String(chosen),
    "data-keep": name, style: { cursor: "pointer" }, onclick: choose,
  }, pictures, svg("rect", { width: size[0], height: size[1], fill: "none", ...frame }), label(name, 0, size[1] + 15, { size: 11.5, ...bold }));
  onKeys(node, (key) => (key === "Enter" || key === " " ? choose() : false));
  return node;
}

// Gives the drawing, and the veil that lies over the image.
function patches(context, { width, note, item, from, shares, heads, style, named }) {
  const { doc: { image }, state, t } = context;
  const { rows, columns, prefix } = image;
  const beside = width >= 720;
  const ratio = rows / columns;
  const side = Math.min(beside ? 440 : width, width);
  const size = [side, side * ratio];
  const veil = overlay(image, shares, size, style);
  const main = svg("g", { transform: "translate(0 22)" }, picture(image, size), veil, grid(image, size));
  const place = from - prefix;
  if (place >= 0) main.append(svg("rect", {
    x: ((place % columns) * size[0]) / columns, y: (Math.floor(place / columns) * size[1]) / rows,
    width: size[0] / columns, height: size[1] / rows,
    fill: "none", stroke: "var(--accent)", "stroke-width": 3, "pointer-events": "none",
  }));
  const at = (r, c) => r * columns + c;
  const map = t("map", { from: named(from) });
  main.append(cells({
    rows, columns, width: size[0], height: size[1], name: map, key: "patches",
    choose: (r, c) => pin(context, at(r, c) + prefix),
    ...note.over((r, c) => `${named(at(r, c) + prefix)}: ${percent(shares[at(r, c)])}`),
  }));
  const heading = { size: 12.5, weight: 600, fill: "var(--ink)" };
  const [left, top] = beside ? [side + 48, 0] : [0, size[1] + 50];
  const { fitting, small } = tiling(heads.length, [width - left, beside ? size[1] + 22 : 560], ratio);
  const high = small * ratio;
  const thumbs = heads.map(({ patches: seen }, n) => thumbnail({
    name: `${t("head")} ${n}`, chosen: n === item.head, size: [small, high], choose: () => state.set({ head: n }),
    place: [left + (n % fitting) * (small + GAP), top + 22 + Math.floor(n / fitting) * (high + 30)],
  }, picture(image, [small, high]), overlay(image, seen, [small, high], style)));
  const node = svg("svg", { role: "group", "aria-label": map },
    label(headName(context, item), 0, 12, heading), main, label(t("heads"), left, top + 12, heading), thumbs);
  const under = top + 22 + Math.ceil(heads.length / fitting) * (high + 30);
  resize(node, width, Math.ceil(Math.max(size[1] + 28, under)));
  return { node, veil };
}
