// Numbers in rows and columns, whatever array they stand in.

export function grid(rows, columns, at) {
  return { rows, columns, at };
}

// The last two axes of an array, at given places of the axes before them.
export function plane(array, ...lead) {
  const [rows, columns] = array.shape.slice(-2);
  return grid(rows, columns, (row, column) => array.at(...lead, row, column));
}

export function row(source, index) {
  return Array.from({ length: source.columns }, (_, column) => source.at(index, column));
}

// The size that all but one number in a hundred stay within: a giant does not make all others pale.
export function usual(source) {
  const sizes = new Float32Array(source.rows * source.columns);
  for (let r = 0; r < source.rows; r += 1) {
    for (let c = 0; c < source.columns; c += 1) sizes[r * source.columns + c] = Math.abs(source.at(r, c));
  }
  const real = sizes.filter(Number.isFinite).sort();
  return real[Math.ceil(0.99 * (real.length - 1))] || real.at(-1) || 1;
}

// One pixel a number, as an address an <image> can show; a number without a colour (null) stays clear.
export function pixels(source, colour) {
  const canvas = document.createElement("canvas");
  canvas.width = source.columns;
  canvas.height = source.rows;
  const pen = canvas.getContext("2d");
  for (let r = 0; r < source.rows; r += 1) {
    for (let c = 0; c < source.columns; c += 1) {
      const paint = colour(source.at(r, c));
      if (paint === null) continue;
      pen.fillStyle = paint;
      pen.fillRect(c, r, 1, 1);
    }
  }
  return canvas.toDataURL();
}
