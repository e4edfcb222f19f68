// What a position scheme adds to the scores, by head: as maps, and as lines over the distance.
import { diverging, hue } from "../../colour.js";
import { svg } from "../../dom.js";
import { extent, feet, line, rules, scale, ticks } from "./chart.js";
import { plane, row, usual } from "./grid.js";
import { matrix } from "./matrix.js";
import { label, number } from "./text.js";

export function biases(bias, chosen, room, { t, note }) {
  const heads = Array.from({ length: bias.shape[0] }, (_, head) => plane(bias, head));
  const most = Math.max(...heads.map(usual));
  const lines = Math.ceil(heads.length / Math.max(2, Math.min(6, Math.floor(room / 96))));
  const fitting = Math.ceil(heads.length / lines);
  const side = Math.min(150, room / fitting - 12);
  const node = svg("g");
  heads.forEach((source, head) => {
    const unit = side / source.columns;
    const block = matrix({
      name: `${t("head")} ${head}`, source, unit: [unit, unit], colour: (value) => diverging(value / most),
      span: head === chosen ? [0, source.columns] : undefined,
      watch: {
        leave: () => note.hide(),
        look: (row, column, box) => note.show(box, `${row} → ${column}: ${number(source.at(row, column))}`),
      },
    });
    const [x, y] = [(head % fitting) * (side + 12), Math.floor(head / fitting) * (side + 34) + block.top];
    node.append(svg("g", { transform: `translate(${x} ${y})` }, block.node));
  });
  return { node, height: lines * (side + 34) - 8 };
}

export function fading(bias, chosen, room, { t }) {
  const [heads, rows, columns] = bias.shape;
  const middle = Math.floor(rows / 2);
  const [side, high] = [44, 190];
  const wide = room - side - 10;
  const values = Array.from({ length: heads }, (_, head) => row(plane(bias, head), middle));
  const range = extent(values.flat());
  const x = scale([-middle, columns - 1 - middle], [side, side + wide]);
  const y = scale(range, [high + 6, 6]);
  const node = svg("g", { role: "img", "aria-label": t("fading.title") });
  node.append(rules(ticks(range, 4), y, side, wide), feet(ticks([-middle, columns - 1 - middle], 5), x, high + 24));
  node.append(label(t("distance"), side + wide, high + 40, { size: 11, anchor: "end" }));
  values.forEach((added, head) => {
    const bold = { stroke: "var(--accent-2)", "stroke-width": 3 };
    const look = head === chosen ? bold : { stroke: hue(0), "stroke-width": 1.2, opacity: 0.55 };
    node.append(line(added.map((value, column) => [x(column - middle), y(value)]), look));
  });
  return { node, height: high + 44 };
}
