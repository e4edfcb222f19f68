// One layer beside its attention: normalization, the residual stream, and the feed-forward's neurons.
import { mean } from "../attention/measure.js";
import { attentionOf } from "../choice.js";
import { hue, shadeBytes } from "../color.js";
import { onHover, svg } from "../dom.js";
import { extent, feet, line, rules, scale, ticks } from "../drawing/chart.js";
import { matrix, plane } from "../drawing/matrix.js";
import { redrawn, stepFigure, stepText } from "../drawing/stage.js";
import { brief, label, number, percent, visible, widthOf } from "../drawing/text.js";

export const name = "layer";
export const fits = (doc) => doc.layers.length > 0;

function layerOf({ doc, state }) {
  const chosen = attentionOf(doc, state.get("attention"));
  return doc.layers.find((item) => item.stack === chosen?.stack && item.layer === chosen.layer) ?? doc.layers[0];
}

// The token that is hovered or pinned anywhere stands out here too.
function follow(root, { doc, state }) {
  state.on(["token", "pinned"], () => {
    const chosen = state.get("token") ?? state.get("pinned");
    const index = chosen?.sequence === layerOf({ doc, state }).sequence ? String(chosen.index) : null;
    for (const node of root.querySelectorAll("[data-token]")) node.classList.toggle("picked", node.dataset.token === index);
  });
}

export function mount(root, context) {
  const { doc, arrays, state, t } = context;
  follow(root, context);
  redrawn(root, state, ["attention"], async (width, note) => {
    const layer = layerOf(context);
    const read = (id) => (id ? arrays.get(id) : null);
    const pairs = await Promise.all(layer.norms.map(async ({ name, before, after }) =>
      ({ name: t(name), before: await read(before), after: await read(after) })));
    const [residual, hidden, zeros] = await Promise.all([read(layer.residual), read(layer.hidden), read(layer.zeros)]);
    const tokens = doc.sequences[layer.sequence].map((token) => visible(token.text));
    const look = (index) => state.set({ token: index === null ? null : { sequence: layer.sequence, index } });
    const level = state.get("level");
    const shared = { t, note, tokens, look, deep: level === "deep" };
    const norm = layer.norm ?? "other"; // of another make
    const length = (part) => brief(meanLength(residual, part));
    const steps = [
      {
        title: t("norm.title"), text: [`${layer.order}.${level}`, `${norm}.${level}`, "rings"].map((word) => t(word)).join(" "),
        draw: (room) => norms(pairs, norm, room, shared),
      },
      {
        ...stepText(context, { from: length(0), to: length(residual.shape[1] - 1) })("stream"),
        draw: (room) => stream(residual, [t("entry"), ...pairs.map((part) => `+ ${part.name}`)], room, shared),
      },
    ];
    if (hidden) steps.push({
      ...stepText(context, { zeros: percent(mean(zeros.data)), shown: hidden.shape[1] })("neurons"),
      draw: (room) => neurons(hidden, zeros, room, shared),
    });
    return [stepFigure(width, steps, t("title"))];
  });
}

// Every token before and after a norm, by what the norm brings to one measure: rings, and dots that have come together.

const HIGH = 170, TOP = 24, SIDE = 34;

// Where each kind of norm takes a token before its weights are applied: [mean, spread]; batch norm sees no token alone.
const GOALS = { layer: [0, 1], rms: [null, 1], batch: [null, null], other: [null, null] };

// A token's mean, and its deviation or root mean square.
function pointsOf(array, kind) {
  return Array.from({ length: array.shape[0] }, (_, n) => {
    const [mean, deviation] = [array.at(n, 0), array.at(n, 1)];
    return [mean, kind === "rms" ? Math.hypot(mean, deviation) : deviation];
  });
}

// Many tokens are drawn smaller and fainter, so that the cloud stays a cloud.
const sizes = (count) => (count > 60 ? { ring: 2, dot: 1.8, way: 0.08 } : { ring: 3.5, dot: 3, way: 0.35 });

function goalOf([mean, deviation], x, y, wide) {
  const d = (mean === null ? "" : `M${x(mean)} ${TOP}v${HIGH}`) + (deviation === null ? "" : `M${SIDE} ${y(deviation)}h${wide}`);
  return svg("path", { d, stroke: "var(--accent-2)", "stroke-width": 1, "stroke-dasharray": "3 3", fill: "none" });
}

function plot({ name, before, after }, kind, wide, ranges, { note, tokens, look, deep }) {
  const x = scale(ranges[0], [SIDE, SIDE + wide]);
  const y = scale(ranges[1], [TOP + HIGH, TOP]);
  const node = svg("g", {}, label(name, SIDE, 12, { size: 12.5, weight: 600, fill: "var(--ink)" }));
  node.append(rules(ticks(ranges[1], 4), y, SIDE, wide));
  node.append(feet(ticks(ranges[0], wide > 180 ? 4 : 3), x, TOP + HIGH + 16), goalOf(GOALS[kind], x, y, wide));
  const { ring, dot, way } = sizes(tokens.length);
  tokens.forEach((text, n) => {
    const [from, to] = [before, after].map((points) => [x(points[n][0]), y(points[n][1])]);
    const group = svg("g", { "data-token": n, class: "figure-dot" },
      svg("path", { d: `M${from}L${to}`, stroke: "var(--soft)", "stroke-width": 0.7, opacity: way }),
      svg("circle", { cx: from[0], cy: from[1], r: ring, fill: "var(--paper)", stroke: hue(0), "stroke-width": 1.4 }),
      svg("circle", { cx: to[0], cy: to[1], r: dot, fill: hue(0), opacity: 0.85 }));
    onHover(group, () => {
      const told = (points) => `(${points[n].map((value) => number(value, 2)).join(", ")})`;
      note.show(group.getBoundingClientRect(), `${text}: ${told(before)} → ${told(after)}`);
      look(n);
    }, () => (note.hide(), look(null)));
    node.append(group);
  });
  if (deep) ["μ", kind === "rms" ? "rms" : "σ"].forEach((sign, axis) => {
    const told = [before, after].map((points) => number(mean(points.map((point) => point[axis])), 2)).join(" → ");
    node.append(label(`${sign} ${told}`, SIDE, TOP + HIGH + 36 + 16 * axis, { size: 11.5, fill: "var(--ink)" }));
  });
  return node;
}

function norms(pairs, kind, room, shared) {
  const fitting = Math.max(1, Math.min(pairs.length, Math.floor(room / 160)));
  const wide = Math.min(260, room / fitting - SIDE - 14);
  const plots = pairs.map(({ name, before, after }) => ({ name, before: pointsOf(before, kind), after: pointsOf(after, kind) }));
  const all = (axis) => plots.flatMap(({ before, after }) => [...before, ...after].map((point) => point[axis]));
  const most = Math.max(...extent([...all(0), 0]).map(Math.abs));
  const ranges = [[-most, most], extent([...all(1), ...(GOALS[kind][1] === null ? [] : [1])])];
  const high = TOP + HIGH + (shared.deep ? 70 : 34);
  const axes = shared.t(kind === "rms" ? "axes.rms" : "axes.layer");
  const node = svg("g", { role: "img", "aria-label": axes });
  plots.forEach((item, n) => {
    const place = `translate(${(n % fitting) * (room / fitting)} ${Math.floor(n / fitting) * high})`;
    node.append(svg("g", { transform: place }, plot(item, kind, wide, ranges, shared)));
  });
  const height = Math.ceil(plots.length / fitting) * high;
  node.append(label(axes, SIDE, height + 4, { size: 11.5 }));
  return { node, height: height + 10 };
}

// How long each token's vector is on its way through a layer.

const STREAM_HEIGHT = 190, STREAM_MARGIN = 36;
const meanLength = (residual, part) => mean(Array.from({ length: residual.shape[0] }, (_, n) => residual.at(n, part)));

function stream(residual, parts, room, { t, note, tokens, look: told, deep }) {
  const wide = Math.min(560, room - STREAM_MARGIN - 20);
  const range = extent([...residual.data]);
  const x = scale([0, parts.length - 1], [STREAM_MARGIN + 14, STREAM_MARGIN + wide - 14]);
  const y = scale(range, [STREAM_HEIGHT + 6, 6]);
  const node = svg("g", { role: "img", "aria-label": t("stream.title") }, rules(ticks(range, 4), y, STREAM_MARGIN, wide));
  const points = (length) => parts.map((_, part) => [x(part), y(length(part))]);
  const faint = Math.max(0.12, Math.min(0.55, 8 / tokens.length));
  tokens.forEach((text, n) => {
    const look = { stroke: hue(0), "stroke-width": 1.2, opacity: faint, "data-token": n, class: "figure-line" };
    const way = line(points((part) => residual.at(n, part)), look);
    onHover(way, (event) => {
      const lengths = parts.map((_, part) => brief(residual.at(n, part))).join(" → ");
      note.show({ left: event.clientX, width: 0, top: event.clientY }, `${text}: ${lengths}`);
      told(n);
    }, () => (note.hide(), told(null)));
    node.append(way);
  });
  const middle = (part) => meanLength(residual, part);
  node.append(line(points(middle), { stroke: "var(--ink)", "stroke-width": 3, "pointer-events": "none" }));
  const crowded = parts.some((part) => widthOf(part, 12) > wide / parts.length - 4); // then every second stands lower
  parts.forEach((part, n) => {
    const [anchor, at] = n === 0 ? ["start", SIDE] : n === parts.length - 1 ? ["end", STREAM_MARGIN + wide] : ["middle", x(n)];
    node.append(label(part, at, STREAM_HEIGHT + 26 + (crowded && n % 2 ? 16 : 0), { anchor }));
    node.append(svg("circle", { cx: x(n), cy: y(middle(n)), r: 4.5, fill: "var(--ink)", "pointer-events": "none" }));
    const bold = { anchor: "middle", weight: 600, fill: "var(--ink)" };
    if (deep) node.append(label(brief(middle(n)), x(n), y(middle(n)) - 10, bold));
  });
  return { node, height: STREAM_HEIGHT + (crowded ? 48 : 32) };
}

// Which neurons of the feed-forward answered each token, and how many stayed silent.

const BARS = 96;

function neurons(hidden, zeros, room, { t, note, tokens, look }) {
  const source = plane(hidden);
  const side = 76;
  const high = Math.min(18, Math.max(1.5, 420 / source.rows));
  const wide = Math.max(0.5, (room - side - BARS - 18) / source.columns);
  const block = matrix({
    name: "φ(x·W₁)", source, unit: [wide, high], rows: tokens, color: (value) => shadeBytes(value / 255),
    watch: {
      look: (row, column, box) => {
        note.show(box, `${tokens[row]} · ${t("neuron")} ${column}: ${percent(source.at(row, column) / 255)}`);
        look(row);
      },
      leave: () => (note.hide(), look(null)),
    },
  });
  const title = label(t("silent"), 0, -8, { weight: 600, fill: "var(--ink)" });
  const long = BARS - 38;
  const silence = Array.from(zeros.data, (share, n) => {
    const bar = { y: n * high + 0.12 * high, height: high * 0.76 };
    return [
      svg("rect", { ...bar, width: long, fill: "var(--line)", opacity: 0.5 }),
      svg("rect", { ...bar, width: long * share, fill: hue(1), "data-token": n, class: "figure-bar" }),
      high >= 11 && label(percent(share), long + 6, (n + 0.5) * high + 4, { size: 11 }),
    ];
  });
  const beside = block.left + source.columns * wide + 18;
  const node = svg("g", {}, svg("g", { transform: `translate(${block.left} ${block.top})` }, block.node),
    svg("g", { transform: `translate(${beside} ${block.top})` }, title, silence));
  return { node, height: block.top + block.height + 4 };
}
