// What the model read, where that is no text, and what it took it for.
import { mean, total } from "../attention/measure.js";
import { chosen, headName, lookingToken, pin, sharesOf, weightsOf } from "../attention/selection.js";
import { dropdown, el, onKeys, svg } from "../dom.js";
import { bars } from "../drawing/chart.js";
import { forecastChart } from "../drawing/forecast.js";
import { cells } from "../drawing/matrix.js";
import { redrawn } from "../drawing/stage.js";
import { label, number, percent, resize } from "../drawing/text.js";

// The image as the model reads it: patches, and what a chosen one looks at.
export const image = { name: "image", fits: (doc) => doc.image !== null && doc.attentions.length > 0, mount: mountImage };

const STYLES = ["tint", "outline"];

function nameOf({ doc, t }, index) {
  const { prefix, columns } = doc.image;
  if (index < prefix) {
    const { text } = doc.sequences.source[index];
    return t.has(text) ? t(text) : text;
  }
  const place = index - prefix;
  return t("patch", { row: Math.floor(place / columns) + 1, column: (place % columns) + 1 });
}

function mountImage(root, context) {
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
    // A slider in use must not be replaced: only the veil changes.
    const strengthen = () => veil.setAttribute("opacity", (strength = Number(slider.value)));
    const slider = el("input", {
      type: "range", min: 0, max: 1, step: 0.05, value: strength, "data-keep": "strength", oninput: strengthen,
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

function thumbnail({ name, chosen, size: [width, height], place, choose }, ...pictures) {
  const edge = chosen ? { stroke: "var(--accent-2)", "stroke-width": 2.5 } : { stroke: "var(--line)", "stroke-width": 1 };
  const bold = chosen ? { fill: "var(--accent-2)", weight: 650 } : {};
  const node = svg("g", {
    transform: `translate(${place})`, tabindex: 0, role: "button", "aria-label": name, "aria-pressed": String(chosen),
    "data-keep": name, style: { cursor: "pointer" }, onclick: choose,
  }, pictures, svg("rect", { width, height, fill: "none", ...edge }), label(name, 0, height + 15, { size: 11.5, ...bold }));
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

// The line as the model reads it: patches, what a chosen one looks at, and the forecast, beside the truth where that is known.
export const series = {
  name: "series", variant: ({ series }) => (series.truth ? "truth" : ""), mount: mountSeries,
  fits: (doc) => doc.series !== null,
};

function errorOf({ forecast, truth }, t) {
  if (!truth) return "";
  const pairs = forecast.map((value, n) => [value, truth[n]]).filter(([, real]) => Number.isFinite(real));
  if (!pairs.length) return "";
  const error = mean(pairs.map(([value, real]) => Math.abs(value - real)));
  const size = mean(pairs.map(([, real]) => Math.abs(real)));
  return t("error", { error: Number(error.toPrecision(3)), part: size ? percent(error / size) : "–" });
}

function mountSeries(root, context) {
  const { doc, state, t } = context;
  const { source } = doc.sequences;
  const first = source.length - doc.series.patches.length; // what stands before the patches is no part of the line
  const nameOf = (place) => t("patch", { n: place, text: source[place + first].text });
  const choose = (place) => pin(context, place + first);

  async function looking() {
    if (!doc.attentions.length) return null;
    const item = chosen(context);
    const token = Math.max(first, lookingToken(context, source.length - 1));
    const { patches: shares, best } = sharesOf(await weightsOf(context, item), token, first);
    return { from: token - first, shares, best: best - first, title: headName(context, item) };
  }

  redrawn(root, state, ["attention", "head", "pinned"], async (width, note) => {
    const look = await looking();
    const named = [doc.series.name, doc.series.column].filter(Boolean).join(" · ");
    const series = { ...doc.series, name: named || t("title") };
    const figure = forecastChart({ series, width, looking: look, nameOf, choose, note, t });
    const error = errorOf(doc.series, t);
    if (!look) return [figure, el("p", { class: "figure-note" }, `${t("none")} ${error}`)];
    const summary = t("most", { from: nameOf(look.from), to: nameOf(look.best), share: percent(look.shares[look.best]) });
    const names = doc.series.patches.map((_, place) => [place, nameOf(place)]);
    return [
      el("div", { class: "picks" }, dropdown(t("from"), names, look.from, choose, "from")),
      figure, el("p", { class: "figure-note" }, `${summary} ${error}`),
    ];
  });
}

// What the model takes the input for: the probability of each class.
export const classes = { name: "classes", fits: (doc) => doc.classes !== null && doc.classes.length > 0, mount: mountClasses };

const SHOWN = 20;

// The most probable, and all that is left as one row.
function rowsOf(classes, t) {
  const sorted = [...classes].sort((a, b) => b.probability - a.probability);
  if (sorted.length <= SHOWN) return sorted;
  const rest = sorted.slice(SHOWN), probability = total(rest.map((item) => item.probability));
  return [...sorted.slice(0, SHOWN), { label: t("rest", { n: rest.length }), probability, rest: true }];
}

function mountClasses(root, { doc, state, t }) {
  redrawn(root, state, [], (width) => {
    const deep = state.get("level") === "deep";
    const rows = rowsOf(doc.classes, t);
    const name = t("all", { n: doc.classes.length, label: rows[0].label, share: percent(rows[0].probability) });
    return [bars(rows.map(({ label, probability, rest }, n) => ({
      name: label, share: probability, text: deep ? number(probability, 4) : percent(probability),
      look: { weight: n ? 400 : 650, fill: rest ? "var(--soft)" : "var(--ink)" }, bar: { opacity: n ? 0.55 : 1 },
    })), width, name)];
  });
}
