// Rows of numbers as bars or bands, each with its name before it.
import { diverging } from "../../colour.js";
import { svg } from "../../dom.js";
import { cells } from "./cells.js";
import { grid, pixels } from "./grid.js";
import { fitted, label, number } from "./text.js";

const SIDE = 84;

function watched(name, values, note, width, height) {
  return cells({
    rows: 1, columns: values.length, width, height, name: `${name}: ${values.length}`, leave: () => note.hide(),
    look: (_, place, box) => note.show(box, `${name} · ${place}: ${number(values[place])}`),
  });
}

// { name, values } one below the other; bars go up and down from a line in the middle.
export function bars(strips, room, note) {
  const [width, height] = [room - SIDE, 46];
  const node = svg("g");
  strips.forEach(({ name, values }, n) => {
    const middle = n * (height + 10) + height / 2;
    const unit = width / values.length;
    const most = Math.max(...values.map(Math.abs)) || 1;
    const lane = svg("g", { transform: `translate(${SIDE} ${middle})` });
    lane.append(svg("path", { d: `M0 0H${width}`, stroke: "var(--line)" }));
    values.forEach((value, place) => {
      const size = (Math.abs(value) / most) * (height / 2);
      const tint = diverging(Math.sign(value) * 0.72);
      const gap = unit > 4 ? 1 : 0;
      const top = value > 0 ? -size : 0;
      lane.append(svg("rect", { x: place * unit, y: top, width: unit - gap, height: size, fill: tint }));
    });
    lane.append(svg("g", { transform: `translate(0 ${-height / 2})` }, watched(name, values, note, width, height)));
    node.append(label(fitted(name, SIDE - 10, 12), 0, middle + 4, { fill: "var(--ink)" }), lane);
  });
  return { node, height: strips.length * (height + 10) - 10 };
}

// { name, values, share } one below the other: the colour is the number, its strength the share.
export function bands(strips, room, note, most) {
  const [width, height] = [room - SIDE, 13];
  const node = svg("g");
  strips.forEach(({ name, values, share, apart }, n) => {
    const y = n * (height + 4) + (apart ? 8 : 0);
    const source = grid(1, values.length, (_, place) => values[place] * share);
    const href = pixels(source, (value) => diverging(value / most));
    const image = svg("image", { href, width, height, preserveAspectRatio: "none", "image-rendering": "pixelated" });
    const lane = svg("g", { transform: `translate(${SIDE} ${y})` }, image);
    const edge = { width, height, fill: "none", stroke: "var(--line)", "stroke-width": apart ? 1.5 : 0.5 };
    lane.append(svg("rect", edge), watched(name, values, note, width, height));
    const weight = apart ? 650 : 400;
    node.append(label(fitted(name, SIDE - 10, 12), 0, y + height - 2.5, { fill: "var(--ink)", weight }), lane);
  });
  return { node, height: strips.length * (height + 4) + 8 };
}
