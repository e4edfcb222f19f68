// A mask to draw: every cell is a switch. Beside it, what reaches each output through the layers.
import { diverging, ink, shade } from "../../lens/color.js";
import { ARROWS, either, el, onKeys, svg } from "../../lens/dom.js";
import { label, number, widthOf } from "../../lens/drawing/text.js";
import { controls, readout, sized } from "../controls.js";

// Weights of one row: softmax over the allowed keys; a row that may see nothing is zero.
function softmax(scores, allowed) {
  const most = Math.max(...scores.filter((_, k) => allowed[k]));
  const powers = scores.map((score, k) => (allowed[k] ? Math.exp(score - most) : 0));
  const total = powers.reduce((sum, power) => sum + power, 0) || 1;
  return powers.map((power) => power / total);
}

// Which token reaches which output: through the mask or along the bypass, as often as there are layers.
export function reach(mask, layers) {
  const step = mask.map((row, q) => row.map((allowed, k) => Boolean(allowed) || q === k));
  let all = step;
  for (let n = 1; n < layers; n += 1) all = step.map((row) => row.map((_, k) => row.some((seen, via) => seen && all[via][k])));
  return all;
}

export function draw(root, data, message, state, redraw) {
  const { tokens } = data, size = tokens.length, isPad = (n) => tokens[n] === "<pad>";
  state.mask ??= data.masks.none.map((row) => [...row]);
  const width = Math.min(root.clientWidth, 760), narrow = width < 560;
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
          "aria-label": message("cell", { from: tokens[q], to: tokens[k], weight: number(weights[k], 2) }),
        }, cell(q, k, allowed ? shade(0.12 + 0.6 * weights[k]) : "var(--card)", allowed ? number(weights[k], 2) : ""));
        if (!allowed) node.firstChild.setAttribute("stroke-dasharray", "3 3");
        node.addEventListener("click", () => flip(q, k));
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
  const LOOK = { fine: () => shade(0.3), cheat: () => diverging(-0.75), padding: () => diverging(-0.35) };
  const arrived = (all) => frame(message("reached", { n: data.layers }), all.flatMap((row, q) => row.map((there, k) =>
    svg("g", {}, cell(q, k, there ? LOOK[kind(q, k)]() : "var(--card)", there && kind(q, k) !== "fine" ? message(`${kind(q, k)}.mark`) : ""),
      svg("title", {}, message(there ? kind(q, k) : "absent", { from: tokens[q], to: tokens[k] }))))));

  function verdict(all) {
    const pairs = (wanted) => all.flatMap((row, q) => row.flatMap((there, k) => (there && kind(q, k) === wanted ? [`${tokens[q]} ← ${tokens[k]}`] : [])));
    const [cheats, pads] = [pairs("cheat"), pairs("padding")];
    const blind = state.mask.flatMap((row, q) => (row.some(Boolean) ? [] : [tokens[q]]));
    return [
      el("b", {}, message(cheats.length ? "isCheating" : "isHonest", { pairs: cheats.slice(0, 3).join(", ") + (cheats.length > 3 ? " …" : ".") })), " ",
      message(pads.length ? "isPadded" : "isClean", { pairs: pads.slice(0, 3).join(", ") + (pads.length > 3 ? " …" : ".") }), " ",
      blind.length ? message("isBlind", { tokens: blind.join(", ") }) : ""];
  }
  const all = reach(state.mask, data.layers);
  const name = Object.keys(data.masks).find((key) => String(data.masks[key]) === String(state.mask));
  const second = svg("g", { transform: narrow ? `translate(0 ${high + 14})` : `translate(${width / 2 + 15} 0)` }, arrived(all));
  root.append(
    controls(either(message("start"), Object.keys(data.masks).map((key) => [key, message(key)]), name, (key) => {
      state.mask = data.masks[key].map((row) => [...row]);
      redraw();
    })),
    sized(message("mask"), width, narrow ? 2 * high + 14 : high, drawn(), second), readout(verdict(all)));
}
