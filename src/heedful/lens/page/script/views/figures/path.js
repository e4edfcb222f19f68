// The numbers on the way through one head: from what goes in to what comes out.
import { grid, plane } from "./grid.js";

function product(a, b) {
  return grid(a.rows, b.rows, (r, c) => {
    let sum = 0;
    for (let k = 0; k < a.columns; k += 1) sum += a.at(r, k) * b.at(c, k);
    return sum;
  });
}

function kept(source) {
  const values = Array.from({ length: source.rows * source.columns }, (_, n) =>
    source.at(Math.floor(n / source.columns), n % source.columns));
  return grid(source.rows, source.columns, (r, c) => values[r * source.columns + c]);
}

// Float32 can round a share to 0 only when its score lies this far below the row's best; other zeros were masked.
const ROUNDED = -85;

function masking(scores, weights, causal, rounded) {
  if (rounded) return (r, c) => causal && c > r;
  const best = Array.from({ length: scores.rows }, (_, r) => {
    let most = -Infinity;
    for (let c = 0; c < scores.columns; c += 1) if (weights.at(r, c) > 0) most = Math.max(most, scores.at(r, c));
    return most;
  });
  return (r, c) => weights.at(r, c) === 0 && ((causal && c > r) || scores.at(r, c) - best[r] > ROUNDED);
}

function maskingOf({ scores, hidden }, causal) {
  if (causal) return "causal";
  for (let r = 0; r < scores.rows; r += 1) for (let c = 0; c < scores.columns; c += 1) if (hidden(r, c)) return "hidden";
  return "none";
}

// Grids of one head: x, query, key, value (T × K), scores, scaled, biased, masked, weights (Tq × Tk), mixed, joined.
// `rounded`: the weights of a long input have few digits, and their zeros say nothing.
export async function pathOf(arrays, attention, head, rounded) {
  const { numbers, heads } = attention;
  const names = [numbers.x, numbers.query, numbers.key, numbers.value, numbers.mixed, heads[head].weights];
  const [x, query, key, value, mixed, weights] = await Promise.all(names.map((name) => arrays.get(name)));
  const bias = numbers.bias === null ? null : await arrays.get(numbers.bias);
  const group = Math.floor((head * key.shape[0]) / query.shape[0]);
  const [H, T, K] = mixed.shape;
  const way = { x: plane(x), query: plane(query, head), key: plane(key, group), value: plane(value, group) };
  way.weights = plane(weights);
  way.scores = kept(product(way.query, way.key));
  const pairs = (at) => grid(way.scores.rows, way.scores.columns, at);
  way.scaled = pairs((r, c) => way.scores.at(r, c) * numbers.scale);
  way.bias = bias && plane(bias, ...(bias.shape.length > 2 ? [head % bias.shape[0]] : []));
  way.biased = bias ? pairs((r, c) => way.scaled.at(r, c) + way.bias.at(r, c)) : way.scaled;
  way.hidden = masking(way.biased, way.weights, attention.causal, rounded);
  way.masked = kept(pairs((r, c) => (way.hidden(r, c) ? -Infinity : way.biased.at(r, c))));
  way.masking = maskingOf(way, attention.causal);
  way.groups = key.shape[0];
  way.mixed = plane(mixed, head);
  way.joined = grid(T, H * K, (r, c) => mixed.at(Math.floor(c / K), r, c % K));
  return way;
}
