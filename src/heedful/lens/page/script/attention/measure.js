// What can be said about attention weights in numbers: pure functions, no page.

/** The mean of several maps of the same shape. */
export function averaged(maps) {
  const data = new Float32Array(maps[0].data.length);
  for (const map of maps) for (let place = 0; place < data.length; place++) data[place] += map.data[place] / maps.length;
  return { shape: maps[0].shape, data };
}

export function rowOf(map, row) {
  const columns = map.shape[1];
  return map.data.subarray(row * columns, (row + 1) * columns);
}

export function columnOf(map, column) {
  const [rows, columns] = map.shape;
  return Float32Array.from({ length: rows }, (_, row) => map.data[row * columns + column]);
}

/** How much each key receives from all queries together. */
export function columnSums(map) {
  const sums = new Float32Array(map.shape[1]);
  map.data.forEach((value, place) => (sums[place % sums.length] += value));
  return sums;
}

export const total = (values) => values.reduce((sum, value) => sum + value, 0);
export const mean = (values) => total(values) / values.length;
/** Entropy in bits of shares that sum to 1. */
export const entropy = (shares) => total([...shares].map((share) => (share > 0 ? -share * Math.log2(share) : 0)));

export const largest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

/** The place of the largest value. */
export const peak = (values) => values.indexOf(Math.max(...values));

/** The places of the `count` largest values above nothing, largest first. */
export function strongest(values, count) {
  const places = [...values.keys()].filter((place) => values[place] > 0);
  return places.sort((a, b) => values[b] - values[a]).slice(0, count);
}

/** 1 for the largest value of its row; softmax keeps the order, so it is also the score's rank. */
export const rankIn = (values, place) => 1 + values.filter((value) => value > values[place]).length;

/** A map of at most `side` × `side`: each cell keeps the largest of those it stands for. */
export function shrunk(map, side) {
  const [rows, columns] = map.shape;
  const height = Math.min(rows, side), width = Math.min(columns, side);
  const data = new Float32Array(height * width);
  for (let row = 0; row < rows; row++) {
    const to = Math.floor((row * height) / rows) * width;
    for (let column = 0; column < columns; column++) {
      const place = to + Math.floor((column * width) / columns);
      const value = map.data[row * columns + column];
      if (Math.abs(value) > Math.abs(data[place])) data[place] = value;
    }
  }
  return { shape: [height, width], data };
}

export const difference = (a, b) => ({ shape: a.shape, data: a.data.map((value, place) => value - b.data[place]) });

/** Jensen–Shannon distance of two rows of weights: 0 the same, 1 nothing in common. */
export function jensenShannon(p, q) {
  const bits = (value, middle) => (value > 0 ? value * Math.log2(value / middle) : 0);
  let divergence = 0;
  for (let place = 0; place < p.length; place++) {
    const middle = (p[place] + q[place]) / 2;
    divergence += (bits(p[place], middle) + bits(q[place], middle)) / 2;
  }
  return Math.sqrt(Math.max(0, divergence));
}

/** Entropy in bits and distance in tokens that weights spread evenly would have. */
export function evenly(rows, columns, causal) {
  const seen = Array.from({ length: rows }, (_, row) => (causal ? Math.min(row + 1, columns) : columns));
  const distances = seen.map((count, row) => mean(Array.from({ length: count }, (_, column) => Math.abs(row - column))));
  return { entropy: mean(seen.map(Math.log2)), distance: mean(distances) };
}

/** One word for a head: "spread", "near", "one" or "few"; the thresholds are told on the page. */
export function habit(head, even) {
  if (head.entropy > 0.85 * even.entropy) return "spread";
  if (head.distance !== null && head.distance <= 0.5 * even.distance) return "near";
  return head.entropy <= 1 ? "one" : "few";
}
