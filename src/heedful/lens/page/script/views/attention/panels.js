// Draws the panels of a map: names, cells, bars, and the frames around the reader's cell.
import { ink } from "../../colour.js";
import { clear, svg } from "../../dom.js";
import { resize, rowName } from "./labels.js";
import { shrunk } from "./measure.js";
import { raster } from "./raster.js";

export const VECTOR = 60; // up to 60 × 60 every cell is its own shape, beyond it the map is a picture

/** Whether a map has too many tokens to draw it cell by cell. */
export function isLarge({ rows, columns }) {
  return Math.max(rows.length, columns.length) > VECTOR;
}

/** Draws all panels anew; gives for each the function that moves its frames to a cell. */
export function paint(drawing, spec, sizes) {
  resize(clear(drawing), sizes.width, sizes.height);
  return spec.panels.map((panel, number) => {
    const place = sizes.places[number], head = place.y - sizes.top + 13;
    if (panel.title) drawing.append(svg("text", { x: place.x, y: head, "font-size": 13, class: "strong" }, panel.title));
    drawing.append(names(spec, sizes, place), (isLarge(spec) ? picture : cells)(spec, sizes, place, panel));
    if (spec.bars && panel === spec.panels.at(-1)) drawing.append(bars(spec.bars, sizes, place, head));
    return crosshair(drawing, sizes, place);
  });
}

function names({ rows, columns }, { cell, high, size, above, everyRow, names: rowNames }, { x, y, named }) {
  const group = svg("g", {});
  for (let column = 0; column < columns.length; column += above.every) {
    group.append(above.write(column, x + (column + 0.5) * cell, y));
  }
  for (let row = 0; named && row < rows.length; row += everyRow) {
    group.append(rowName(rowNames[row], x - 8, y + (row + 0.5) * high, size));
  }
  return group;
}

function picture({ hidden }, { cell, across, down }, { x, y }, { map, scale, most }) {
  const seen = cell < 1 ? shrunk(map, Math.floor(across)) : map; // else the screen would drop cells by chance
  const href = raster(seen, scale, most, hidden), sides = { width: across, height: down };
  return svg("image", { href, x, y, ...sides, preserveAspectRatio: "none", "image-rendering": "pixelated" });
}

function cells({ rows, columns, hidden, digits }, { cell }, { x, y }, { map, scale, most }) {
  const group = svg("g", {}), side = cell - (cell >= 10 ? 1 : 0), rx = cell >= 20 ? 3 : 0;
  for (let row = 0; row < rows.length; row++) {
    for (let column = 0; column < columns.length; column++) {
      if (hidden(row, column)) continue;
      const value = map.data[row * columns.length + column], fill = scale.colour(most ? value / most : 0);
      const left = x + column * cell, top = y + row * cell;
      group.append(svg("rect", { x: left, y: top, width: side, height: side, rx, fill }));
      if (digits && cell >= 34 && value >= 0.005) group.append(digit(value, left + side / 2, top + side / 2, ink(fill)));
    }
  }
  return group;
}

function digit(value, x, y, fill) {
  return svg("text", { x, y: y + 4, "font-size": 11, "text-anchor": "middle", fill }, value.toFixed(2));
}

function bars({ values, title, colour }, { high, across, barWidth, everyRow }, { x, y }, head) {
  const start = x + across + 12, height = high > 4 ? high - 2 : high, group = svg("g", {});
  group.append(svg("text", { x: start, y: head, "font-size": 11 }, title));
  values.forEach((value, row) => {
    const width = Math.max(1, value * barWidth), middle = y + (row + 0.5) * high;
    group.append(svg("rect", { x: start, y: middle - high / 2, width, height, fill: colour }));
    if (everyRow === 1) group.append(svg("text", { x: start + width + 4, y: middle + 3, "font-size": 10 }, value.toFixed(2)));
  });
  return group;
}

function crosshair(drawing, { cell, high, across, down }, { x, y }) {
  const frames = ["row", "column", "one"].map((part) => svg("rect", { class: `cross ${part}`, fill: "none", rx: Math.min(3, cell / 4) }));
  const group = svg("g", { display: "none" }, frames);
  drawing.append(group);
  return (at) => {
    group.setAttribute("display", at ? "inline" : "none");
    if (!at) return;
    const left = x + at.key * cell - 0.5, top = y + at.query * high - 0.5;
    const boxes = [
      { x: x - 0.5, y: top, width: across, height: high },
      { x: left, y: y - 0.5, width: cell, height: down },
      { x: left, y: top, width: cell, height: high },
    ];
    boxes.forEach((box, place) => Object.entries(box).forEach(([name, value]) => frames[place].setAttribute(name, value)));
  };
}
