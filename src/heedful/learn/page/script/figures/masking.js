// Masks: one to draw, with what reaches each output through the layers; and the shapes that a batch combines.
import { diverging, ink, shade, shadeBytes } from "../../lens/color.js";
import { ARROWS, either, el, onKeys, svg } from "../../lens/dom.js";
import { equation, matrix } from "../../lens/drawing/matrix.js";
import { label, number, widthOf } from "../../lens/drawing/text.js";
import { controls, figure, gridOf, indexed, readout, sized } from "../controls.js";

// Weights of one row: softmax over the allowed keys; a row that may see nothing is zero.
function softmax(scores, allowed) {
  const most = Math.max(...scores.filter((_, k) => allowed[k]));
  const powers = scores.map((score, k) => (allowed[k] ? Math.exp(score - most) : 0));
  const total = powers.reduce((sum, power) => sum + power, 0) || 1;
  return powers.map((power) => power / total);
}

// Which token reaches which output: through the mask or along the bypass, as often as there are layers.
function reach(mask, layers) {
  const step = mask.map((row, q) => row.map((allowed, k) => Boolean(allowed) || q === k));
  let all = step;
  for (let n = 1; n < layers; n += 1) all = step.map((row) => row.map((_, k) => row.some((seen, via) => seen && all[via][k])));
  return all;
}

const copied = (mask) => mask.map((row) => [...row]);
const LOOK = { fine: () => shade(0.3), cheat: () => diverging(-0.75), padding: () => diverging(-0.35) };

// Every cell is a switch.
export const drawAMask = figure(760, { mask: (data) => copied(data.masks.none) }, ({ root, data, message, state, redraw, width, named }) => {
  const { tokens } = data, size = tokens.length, isPad = (n) => tokens[n] === "<pad>", narrow = width < 560;
  const left = Math.max(...tokens.map((token) => widthOf(token, 12))) + 10;
  const side = Math.min(54, ((narrow ? width : (width - 30) / 2) - left) / size), high = size * side + 46;
  // What a row's output may not know: the token it has to write, and any padding.
  const kind = (q, k) => (isPad(q) || q === k ? "fine" : isPad(k) ? "padding" : k > q ? "cheat" : "fine");
  const frame = (title, cells) => svg("g", {}, label(title, 0, 12, { size: 13, weight: 600, fill: "var(--ink)" }),
    tokens.map((token, n) => [
      label(token, left + (n + 0.5) * side, 34, { size: Math.min(12, side / 3.2), anchor: "middle" }),
      label(token, left - 8, 42 + (n + 0.5) * side + 4, { size: 12, anchor: "end" })]),
    svg("g", { transform: `translate(${left} 42)` }, cells));
  const cell = (q, k, fill, text) => [
    svg("rect", { x: k * side, y: q * side, width: side - 2, height: side - 2, rx: 4, fill, stroke: "var(--line)" }),
    text ? label(text, k * side + side / 2 - 1, q * side + side / 2 + 4, { size: side < 42 ? 10 : 12, anchor: "middle", fill: ink(fill), "pointer-events": "none" }) : null];

  function flip(q, k) {
    state.mask[q][k] = state.mask[q][k] ? 0 : 1;
    redraw();
  }
  function drawn() {
    const cells = state.mask.flatMap((row, q) => {
      const weights = softmax(data.scores[q], row);
      return row.map((allowed, k) => {
        const node = svg("g", {
          tabindex: q || k ? -1 : 0, role: "switch", "aria-checked": String(Boolean(allowed)), "data-keep": `${q},${k}`, style: { cursor: "pointer" },
          "aria-label": message("cell", { from: tokens[q], to: tokens[k], weight: number(weights[k], 2) }), onclick: () => flip(q, k),
        }, cell(q, k, allowed ? shade(0.12 + 0.6 * weights[k]) : "var(--card)", allowed ? number(weights[k], 2) : ""));
        if (!allowed) node.firstChild.setAttribute("stroke-dasharray", "3 3");
        onKeys(node, (key) => {
          const [down, right] = ARROWS[key] ?? [];
          if (ARROWS[key]) root.querySelector(`[data-keep="${(q + down + size) % size},${(k + right + size) % size}"]`).focus();
          else if (key === "Enter" || key === " ") flip(q, k);
          else return false;
        });
        return node;
      });
    });
    return frame(message("mask"), cells);
  }
  const arrived = (all) => frame(message("reached", { n: data.layers }), all.flatMap((row, q) => row.map((there, k) =>
    svg("g", {}, cell(q, k, there ? LOOK[kind(q, k)]() : "var(--card)", there && kind(q, k) !== "fine" ? message(`${kind(q, k)}.mark`) : ""),
      svg("title", {}, message(there ? kind(q, k) : "absent", { from: tokens[q], to: tokens[k] }))))));

  function verdict(all) {
    const pairs = (wanted) => all.flatMap((row, q) => row.flatMap((there, k) => (there && kind(q, k) === wanted ? [`${tokens[q]} ← ${tokens[k]}`] : [])));
    const some = (pairs) => pairs.slice(0, 3).join(", ") + (pairs.length > 3 ? " …" : ".");
    const [cheats, pads] = [pairs("cheat"), pairs("padding")];
    const blind = state.mask.flatMap((row, q) => (row.some(Boolean) ? [] : [tokens[q]]));
    return [
      el("b", {}, message(cheats.length ? "isCheating" : "isHonest", { pairs: some(cheats) })), " ",
      message(pads.length ? "isPadded" : "isClean", { pairs: some(pads) }), " ",
      blind.length ? message("isBlind", { tokens: blind.join(", ") }) : ""];
  }
  const all = reach(state.mask, data.layers), names = Object.keys(data.masks);
  const begin = (name) => { state.mask = copied(data.masks[name]); redraw(); };
  const second = svg("g", { transform: narrow ? `translate(0 ${high + 14})` : `translate(${width / 2 + 15} 0)` }, arrived(all));
  return [
    controls(either(message("start"), named(names), names.find((name) => String(data.masks[name]) === String(state.mask)), begin)),
    sized(message("mask"), width, narrow ? 2 * high + 14 : high, drawn(), second), readout(verdict(all))];
});

// A look-ahead mask and the padding of a batch, and the mask that both give for one sentence of the batch.
export const maskShapes = figure(800, { row: 0 }, ({ data, message, state, redraw, width, facts, tell, either }) => {
  const tokens = data.tokens[state.row], allowed = data.both[state.row];
  const places = data.causal.map((_, n) => String(n + 1)), names = data.tokens.map((_, n) => message("sentence", { n: n + 1 }));
  const leave = () => tell("hint", { b: names.length, t: places.length, n: state.row + 1, tokens: tokens.join(" ") });
  const look = (q, k) => tell(allowed[q][k] ? "allowed" : k > q ? "ahead" : "padded", { from: tokens[q], to: tokens[k] });
  const choose = (row) => { state.row = row; redraw(); };
  const map = (key, values, rows, columns, watch) =>
    matrix({ name: message(key), source: gridOf(values), unit: [26, 26], color: (value) => shadeBytes(0.62 * value), rows, columns, watch });
  const { node, height } = equation([
    [null, map("causal", data.causal, places, places)],
    ["&", map("padding", data.padding, names, places, { choose })],
    ["=", map("both", allowed, tokens, tokens, { look, leave })],
  ], width);
  leave();
  return [controls(either("row", message("sentences"), indexed(names))), sized(message("name"), width, height + 4, node), facts];
});
