// The whole sentence through one head: every matrix, in its true proportions.
import { equation, grid, matrix, shares, signed } from "../drawing/matrix.js";
import { stepFigure, stepText } from "../drawing/stage.js";
import { number } from "../drawing/text.js";

// Divided by √d_k, as in the paper, or multiplied by whatever this model takes.
export function scaling(numbers, width) {
  const rooted = Math.abs(numbers.scale * Math.sqrt(width) - 1) < 1e-3;
  const written = (value) => String(Number(value.toFixed(3)));
  const root = written(Math.sqrt(width));
  const scale = written(numbers.scale);
  const particles = { ro: /[036]$/.test(root) ? "으로" : "로", eul: /[2459]$/.test(scale) ? "를" : "을" };
  const name = rooted ? "root" : numbers.scale === 1 ? "one" : "scale";
  return { name, sign: rooted ? `÷ ${root}` : `× ${scale}`, root, scale, ...particles };
}

const lowered = (value) => String(value).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);

export function headMatrices({ context, width, attention, head, path, pair, note, tokens }) {
  const { t, state } = context;
  const [T, D, K, S] = [path.x.rows, path.x.columns, path.query.columns, path.key.rows];
  const [H, J] = [attention.heads.length, path.joined.columns];
  const scaled = scaling(attention.numbers, K);
  const facts = { T, D, K, S, H, J, last: lowered(H - 1), G: path.groups, S2: path.bias ? "S″" : "S′", ...scaled };
  const asking = tokens.queries;
  const offering = tokens.keys;
  const masked = path.masking !== "none";

  // A token is as high and as wide everywhere, and so is a number: the maps compare by eye. Where there is room, two
  // maps of scores and one of queries stand side by side, with their signs and names (180).
  const units = (room) => {
    const number = Math.min(3, (room - 76) / Math.max(D, J));
    const most = Math.max(T, S);
    const token = Math.min(30, (room < 480 ? 200 : (room - 180 - K * number) / 2) / most);
    return { number, token, high: Math.max(token, Math.min(13, 240 / most)) }; // 13: room for a name
  };
  const watched = (source, rowName, columnName, more = {}) => ({
    ...note.over((r, c) => `${rowName(r)} · ${columnName(c)}: ${number(source.at(r, c))}`), ...more,
  });
  const wide = (name, source, names, unit, more = {}) => matrix({
    name, source, color: signed(source), unit: [unit.number, unit.high],
    watch: watched(source, (r) => names[r], (c) => c), ...more,
  });
  const choose = (query, key) => state.set({ pair: { query, key } });
  const square = (name, source, unit, color, more = {}) => matrix({
    name, source, color, unit: [unit.token, unit.high], rows: asking, columns: offering, mark: [pair.query, pair.key],
    watch: watched(source, (r) => asking[r], (c) => offering[c], { choose }),
    ...more,
  });
  const transposed = (name, source, unit) => {
    const turned = grid(source.columns, source.rows, (r, c) => source.at(c, r));
    const watch = watched(turned, (r) => r, (c) => offering[c]);
    return matrix({ name, source: turned, color: signed(source), unit: [unit.token, unit.number], watch });
  };
  const say = stepText(context, facts);
  const step = (key, parts, more = []) => ({ ...say(key, ...more), draw: (room) => equation(parts(units(room)), room) });
  // All maps of scores have one color scale, so that the effect of each step is seen.
  const scoreColor = signed(path.scores);
  const becomes = (sign, [before, from], [after, to, color = scoreColor]) => (unit) => [
    [null, square(before, from, unit, scoreColor)],
    [sign, square(after, to, unit, color, { rows: undefined })],
  ];
  const share = shares(path.weights);
  const open = (value) => (value === 0 && masked ? null : share(value));
  const notes = [attention.kind === "cross" && "qkv.cross", path.groups < H && "qkv.shared"].filter(Boolean);
  const span = [head * K, (head + 1) * K];
  const steps = [
    step("x", (unit) => [[null, wide("X", path.x, asking, unit, { rows: asking })]], attention.kind === "cross" ? ["x.cross"] : []),
    step("qkv", (unit) => [
      [null, wide("Q", path.query, asking, unit, { rows: asking })],
      [null, wide("K", path.key, offering, unit, { rows: attention.kind === "cross" ? offering : undefined })],
      [null, wide("V", path.value, offering, unit)],
    ], notes),
    step("scores", (unit) => [
      [null, wide("Q ", path.query, asking, unit, { rows: asking })],
      ["·", transposed("Kᵀ", path.key, unit)],
      ["=", square("S", path.scores, unit, scoreColor, { rows: undefined })],
    ]),
    step(scaled.name, becomes(`${scaled.sign} =`, ["S ", path.scores], ["S′", path.scaled])),
    path.bias && step("bias", becomes("+ B =", ["S′ ", path.scaled], ["S″", path.biased])),
    masked && step(path.masking, becomes("→", [`${facts.S2}  `, path.biased], [`${facts.S2} (${t("masked")})`, path.masked])),
    step("softmax", becomes("softmax →", [`${facts.S2}   `, path.masked], ["A", path.weights, open])),
    step("mix", (unit) => [
      [null, square("A ", path.weights, unit, open, { columns: undefined })],
      ["·", wide("V ", path.value, offering, unit)],
      ["=", wide("Z", path.mixed, asking, unit)],
    ]),
    step("joined", (unit) => [[null, wide(t("joined"), path.joined, asking, unit, { rows: asking, span })]]),
  ];
  return stepFigure(width, steps.filter(Boolean), t("title"));
}
