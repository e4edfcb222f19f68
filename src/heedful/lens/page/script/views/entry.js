// How a text becomes the input of the first layer: pieces, ids, the embedding of each, and its position.
import { dropdown, either, el, svg } from "../dom.js";
import { equation, grid, matrix, plane, signed } from "../drawing/matrix.js";
import { redrawn, stepFigure, stepText, table } from "../drawing/stage.js";
import { brief, label, number, visible, wrapWords } from "../drawing/text.js";

export const name = "entry";
export const fits = (doc) => Object.keys(doc.entries ?? {}).length > 0;

const DIMENSIONS = 6; // whose numbers are written
const LINE = 46;

function pieces(tokens, ids, room) {
  const texts = tokens.map(({ piece }) => visible(piece));
  const { boxes, lines } = wrapWords(texts, room, { size: 13, padding: 8, narrowest: 34, gap: 6 });
  const node = svg("g", {}, boxes.map(({ text, x, width, line }, n) => [
    svg("rect", { x, y: line * LINE + 0.5, width, height: 24, rx: 6, fill: "var(--card)", stroke: "var(--line)" }),
    label(text, x + width / 2, line * LINE + 17, { size: 13, anchor: "middle", fill: "var(--ink)" }),
    label(ids[n], x + width / 2, line * LINE + 38, { size: 11, anchor: "middle" }),
  ]));
  return { node, height: lines * LINE };
}

export function mount(root, context) {
  const { doc, arrays, state, t } = context;
  const sequences = Object.keys(doc.entries);
  let sequence = sequences[0], token = 0;
  const choose = (changes) => {
    ({ sequence, token } = { sequence, token, ...changes });
    again();
  };

  const again = redrawn(root, state, [], async (width, note) => {
    const { ids, scale, d_model, segments, ...stored } = doc.entries[sequence], tokens = doc.sequences[sequence];
    const read = async (id) => (id ? plane(await arrays.get(id)) : null);
    const [scaled, position, normalized] = await Promise.all([stored.embedding, stored.position, stored.normalized].map(read));
    const { rows, columns } = scaled, cells = (at) => grid(rows, columns, at);
    const raw = scale !== 1 && cells((r, c) => scaled.at(r, c) / scale);
    const sum = position && cells((r, c) => scaled.at(r, c) + position.at(r, c));
    const texts = tokens.map(({ text }) => visible(text)), color = signed(sum ?? scaled);
    const map = (title, source, room, more) => matrix({
      name: title, source, color, rows: texts, unit: [Math.min(3, (room - 96) / columns), Math.min(18, Math.max(2, 240 / rows))],
      watch: { ...note.over((r, c) => `${texts[r]} · ${c}: ${number(source.at(r, c))}`), choose: (row) => choose({ token: row }) }, ...more,
    });
    const facts = { n: rows, D: d_model, scale: brief(scale), shown: columns };
    const step = (key, parts, ...more) => ({ ...stepText(context, facts)(key, ...more), draw: (room) => equation(parts(room), room) });
    const bare = { rows: undefined };
    const steps = [
      { ...stepText(context, facts)("pieces"), draw: (room) => pieces(tokens, ids, room) },
      step(raw ? "scaled" : "embedding", (room) => (raw ? [[null, map("E", raw, room)], [`× ${facts.scale} =`, map("X", scaled, room, bare)]]
        : [[null, map("X", scaled, room)]]), ...[columns < d_model && "corner", segments && "segments"].filter(Boolean)),
      sum ? step("position", (room) => [[null, map("X ", scaled, room)], ["+", map("P", position, room, bare)], ["=", map("X₀", sum, room, bare)]])
        : { ...stepText(context, facts)("unpositioned"), draw: () => ({ node: svg("g"), height: 0 }) },
      normalized && step("normalized", (room) => [[null, map("X₁", normalized, room, { color: signed(normalized) })]]),
    ];
    const list = [["E", raw], ["X", scaled], ["P", position], ["X₀", sum], ["X₁", normalized]].filter(([, source]) => source);
    const dimensions = Array.from({ length: Math.min(DIMENSIONS, columns) }, (_, n) => n);
    return [
      sequences.length > 1 ? el("div", { class: "picks" }, either(t("text"), sequences.map((each) => [each, t(each)]), sequence, (each) => choose({ sequence: each, token: 0 }))) : "",
      stepFigure(width, steps.filter(Boolean), t("title")),
      el("h3", {}, t("numbers")),
      el("div", { class: "picks" }, dropdown(t("token"), texts.map((text, n) => [n, `${n} · ${text}`]), token, (n) => choose({ token: n }), "token")),
      table([t("dimension"), ...dimensions], list.map(([title, source]) => [title, ...dimensions.map((n) => number(source.at(token, n)))])),
    ];
  });
}
