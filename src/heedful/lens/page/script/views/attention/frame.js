// Where everything of a map stands: cells, names, panels side by side or, on a phone, one below the other.
import { columnNames, short, textWidth } from "./labels.js";

const LARGEST = { alone: 64, abreast: 46 }, SMALLEST = { alone: 12, abreast: 4, picture: 0.3 };
const GAP = 30, BARS = 96, NARROW = 620, ALONE = 640;
const LOW = 280, ROW = 14; // a long row of few queries is no mere stripe

/** Sizes and places of the panels within `room` pixels; `bars` stand to the right of the last. */
export function frame({ rows, columns, panels, bars }, room) {
  const alone = panels.length === 1, abreast = room < NARROW ? 1 : panels.length;
  const width = alone ? Math.min(room, ALONE) : room; // one map leaves room for its words beside it
  const names = rows.map(short);
  const fitted = (size, overhang) => {
    const left = Math.min(150, Math.max(...names.map((name) => textWidth(name, size)))) + 10;
    const free = width - left - (abreast - 1) * GAP - (bars ? BARS : overhang) - 4;
    const smallest = columns.length > 60 ? SMALLEST.picture : abreast > 1 ? SMALLEST.abreast : SMALLEST.alone;
    return { left, cell: Math.min(alone ? LARGEST.alone : LARGEST.abreast, Math.max(smallest, free / abreast / columns.length)) };
  };
  const size = fitted(12, 0).cell < 17 ? 10 : 12;
  const overhang = columnNames(columns, fitted(size, 0).cell, size).overhang;
  const { left, cell } = fitted(size, overhang), above = columnNames(columns, cell, size);
  const top = (panels[0].title ? 22 : 0) + above.height;
  const high = columns.length > 60 ? Math.max(cell, Math.min(ROW, LOW / rows.length)) : cell;
  const across = columns.length * cell, down = rows.length * high;
  const places = panels.map((_, place) => ({
    x: left + (place % abreast) * (across + GAP),
    y: top + Math.floor(place / abreast) * (top + down + GAP / 2),
    named: place % abreast === 0,
  }));
  const last = places.at(-1);
  return {
    cell, high, size, top, across, down, places, above, names, everyRow: Math.ceil((size + 1) / high), barWidth: BARS - 44,
    width: last.x + across + (bars ? BARS : Math.max(2, above.overhang)), height: last.y + down + 4,
  };
}

/** The cell under a point of the drawing, or null. */
export function cellAt({ places, cell, high, across, down }, x, y) {
  const place = places.find((one) => x >= one.x && y >= one.y && x < one.x + across && y < one.y + down);
  return place ? { query: Math.floor((y - place.y) / high), key: Math.floor((x - place.x) / cell) } : null;
}
