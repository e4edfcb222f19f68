// The image as the model reads it: patches, and what a chosen one looks at.
import { chosen, headName, looker, sharesOf, weightsOf } from "../attention/selection.js";
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

function controls({ t }, names, { from, choose }, look, changed) {
  const slider = el("input", {
    type: "range", min: 0, max: 1, step: 0.05, value: look.strength, "data-keep": "strength",
    oninput: () => changed({ strength: Number(slider.value) }),
  });
  return el("div", { class: "picks" },
    dropdown(t("from"), names.map((text, index) => [index, text]), from(), choose, "from"),
    dropdown(t("style"), STYLES.map((style) => [style, t(style)]), look.style, (style) => changed({ style }), "style"),
    el("label", {}, el("span", {}, t("strength")), slider));
}

export function mount(root, context) {
  const { doc, state, t } = context;
  const look = { style: "tint", strength: 0.85 };
  const { prefix } = doc.image;
  const looking = looker(context, 0); // the class token, where there is one
  const named = (index) => nameOf(context, index);
  const again = redrawn(root, state, ["attention", "head", "pinned"], async (width, note) => {
    const { attention, head } = chosen(context);
    const from = looking.from();
    const read = async (item) => sharesOf(await weightsOf(context, { attention, head: item }), from, prefix);
    const [{ patches: shares, rest, best }, ...heads] = await Promise.all([head, ...attention.heads.keys()].map(read));
    const share = (place) => percent(shares[place]);
    const figure = patches({
      image: doc.image, width, from, head, shares, heads: heads.map((item) => item.patches), look,
      words: {
        title: headName(context, { attention, head }), map: t("map", { from: named(from) }), head: t("head"), heads: t("heads"),
      },
      describe: (place) => `${named(place + prefix)}: ${share(place)}`, note,
      choose: (place) => looking.choose(place + prefix),
      chooseHead: (item) => state.set({ head: item }),
    });
    const change = (changes) => {
      Object.assign(look, changes);
      if (changes.style) again();
      else figure.strengthen(look.strength); // a slider in use must not be replaced
    };
    const notes = [t("most", { from: named(from), to: named(best), share: share(best - prefix) })];
    if (prefix) notes.push(t("own", { share: percent(rest) }));
    const names = doc.sequences.source.map((_, index) => named(index));
    return [controls(context, names, looking, look, change), figure.node, el("p", { class: "figure-note" }, notes.join(" "))];
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

function thumbnail({ image, shares, look, name, chosen, size, choose }) {
  const button = { tabindex: 0, role: "button", "aria-label": name, "aria-pressed": String(chosen), "data-keep": name };
  const node = svg("g", { ...button, style: { cursor: "pointer" } },
    picture(image, size), overlay(image, shares, size, look.style));
  const frame = chosen ? { stroke: "var(--accent-2)", "stroke-width": 2.5 } : { stroke: "var(--line)", "stroke-width": 1 };
  node.append(svg("rect", { width: size[0], height: size[1], fill: "none", ...frame }));
  const bold = chosen ? { fill: "var(--accent-2)", weight: 650 } : {};
  node.append(label(name, 0, size[1] + 15, { size: 11.5, ...bold }));
  node.addEventListener("click", choose);
  onKeys(node, (key) => (key === "Enter" || key === " " ? choose() : false));
  return node;
}

// Gives the drawing and a way to strengthen or weaken what lies over the image.
export function patches({ image, width, from, head, shares, heads, look, words, describe, note, choose, chooseHead }) {
  const beside = width >= 720;
  const ratio = image.rows / image.columns;
  const side = Math.min(beside ? 440 : width, width);
  const size = [side, side * ratio];
  const { rows, columns } = image;
  const veil = overlay(image, shares, size, look.style);
  const main = svg("g", { transform: "translate(0 22)" }, picture(image, size), veil, grid(image, size));
  const place = from - image.prefix;
  if (place >= 0) main.append(svg("rect", {
    x: ((place % columns) * size[0]) / columns, y: (Math.floor(place / columns) * size[1]) / rows,
    width: size[0] / columns, height: size[1] / rows,
    fill: "none", stroke: "var(--accent)", "stroke-width": 3, "pointer-events": "none",
  }));
  main.append(cells({
    rows, columns, width: size[0], height: size[1], name: words.map, key: "patches", leave: () => note.hide(),
    look: (r, c, box) => note.show(box, describe(r * columns + c)), choose: (r, c) => choose(r * columns + c),
  }));
  const heading = { size: 12.5, weight: 600, fill: "var(--ink)" };
  const node = svg("svg", { role: "group", "aria-label": words.map }, label(words.title, 0, 12, heading), main);

  const [left, top] = beside ? [side + 48, 0] : [0, size[1] + 50];
  const room = width - left;
  const { fitting, small } = tiling(heads.length, [room, beside ? size[1] + 22 : 560], ratio);
  const thumbs = heads.map((item, n) => {
    const [x, y] = [left + (n % fitting) * (small + GAP), top + 22 + Math.floor(n / fitting) * (small * ratio + 30)];
    const options = { image, shares: item, look, name: `${words.head} ${n}`, chosen: n === head, choose: () => chooseHead(n) };
    return svg("g", { transform: `translate(${x} ${y})` }, thumbnail({ ...options, size: [small, small * ratio] }));
  });
  node.append(label(words.heads, left, top + 12, heading), ...thumbs);
  const under = top + 22 + Math.ceil(heads.length / fitting) * (small * ratio + 30);
  const height = Math.ceil(Math.max(size[1] + 28, under));
  resize(node, width, height);
  const strengthen = (strength) => veil.setAttribute("opacity", strength);
  strengthen(look.strength);
  return { node, strengthen };
}
