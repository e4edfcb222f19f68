// A map of weights as a picture of one pixel a cell, for maps too large to draw cell by cell.
const LEVELS = 256;

/** The picture's address: `scale` colours shares of `most` from its `low` to 1, hidden cells stay clear. */
export function raster(map, { bytes, low }, most, hidden) {
  const [rows, columns] = map.shape;
  const canvas = Object.assign(document.createElement("canvas"), { width: columns, height: rows });
  const pen = canvas.getContext("2d"), picture = pen.createImageData(columns, rows);
  const colours = Array.from({ length: LEVELS }, (_, level) => bytes(low + (level / (LEVELS - 1)) * (1 - low)));
  for (let row = 0, place = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++, place++) {
      if (hidden(row, column)) continue;
      const share = most ? map.data[place] / most : 0;
      const colour = colours[Math.round(((share - low) / (1 - low)) * (LEVELS - 1))];
      for (let part = 0; part < 3; part++) picture.data[4 * place + part] = colour[part];
      picture.data[4 * place + 3] = 255;
    }
  }
  pen.putImageData(picture, 0, 0);
  return canvas.toDataURL();
}
