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

// The largest size of any number that is one, and never zero, so that it can divide.
export function largest(source) {
  let most = 0;
  for (let r = 0; r < source.rows; r += 1) {
    for (let c = 0; c < source.columns; c += 1) {
      const size = Math.abs(source.at(r, c));
      if (Number.isFinite(size) && size > most) most = size;
    }
  }
  return most || 1;
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
