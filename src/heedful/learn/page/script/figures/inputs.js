// The inputs of a model: a text becomes scaled vectors; positions as clock hands, as a table with waves, and five schemes.
import { divergingBytes, hue } from "../../lens/color.js";
import { svg } from "../../lens/dom.js";
import { lineChart, ticks } from "../../lens/drawing/chart.js";
import { matrix, robustMax, row, shares, signed } from "../../lens/drawing/matrix.js";
import { stepFigure } from "../../lens/drawing/stage.js";
import { brief, label, marked, number, resize, spelled, wrapWords } from "../../lens/drawing/text.js";
import { controls, dot, figure, gridOf, indexed, live, namedChart, readout, sized } from "../controls.js";

const LINE = 40;

// A box for each text; those in `parts` belong to a piece of several tokens.
function chips(texts, parts, room) {
  const { boxes, lines } = wrapWords(texts, room, { size: 15, padding: 9, gap: 6, narrowest: 34 });
  const node = svg("g", {}, boxes.map(({ text, x, width, line }, n) => [
    svg("rect", { x, y: line * LINE, width, height: 30, rx: 7, fill: "var(--tint)", stroke: "var(--line)" }),
    label(marked(text), x + width / 2, line * LINE + 20, { size: 15, anchor: "middle", fill: parts[n] ? "var(--accent-2)" : "var(--ink)" }),
  ]));
  return { node, height: lines * LINE };
}

// A text becomes pieces, ids, rows of the embedding table, and rows times √d_model; all numbers on one color scale.
export const textToVectors = figure(800, { text: 0 }, ({ data, message, state, width, facts, tell, dropdown }) => {
  const item = data.texts[state.text], { pieces } = item, ids = pieces.flatMap((piece) => piece.ids);
  const isSplit = (piece) => piece.ids.length > 1, most = robustMax(gridOf(item.stages.scaled));
  const values = { t: ids.length, d: data.d_model, last: data.vocabulary - 1 };
  const step = (key, draw) => ({ title: message(`${key}.title`, values), text: message(`${key}.text`, { ...values, ...item.lengths }), draw });

  const rows = (key) => step(key, (room) => {
    const source = gridOf(item.stages[key]), wide = Math.min(420, room - 50);
    const look = (row, column) => tell("cell", { id: ids[row], column, value: number(source.at(row, column)) });
    const block = matrix({
      name: message(`${key}.map`), source, unit: [wide / source.columns, 18], color: (value) => divergingBytes(value / most),
      rows: ids.map(String), watch: { look },
    });
    return { node: svg("g", { transform: `translate(${block.left} ${block.top})` }, block.node), height: block.top + block.height };
  });
  tell("hint");
  return [controls(dropdown("text", message("text"), indexed(data.texts.map(({ text }) => text)))), stepFigure(width, [
    step("pieces", (room) => chips(pieces.map((piece) => spelled(piece.text)), pieces.map(isSplit), room)),
    step("ids", (room) => chips(ids.map(String), pieces.flatMap((piece) => piece.ids.map(() => isSplit(piece))), room)),
    rows("rows"), rows("scaled"), rows("positions"),
  ], message("name")), facts];
});

// PE(pos), PE(pos + k), and what the matrix of k alone makes of PE(pos).
export const clockHands = figure(720, { pos: 3, k: 5 }, ({ data, message, state, width }) => {
  const across = width < 480 ? 4 : 8, unit = width / across, radius = Math.min(38, unit / 2 - 7), high = 2 * radius + 52;

  // Noon is sine 0 and cosine 1, so a hand turns as on a clock.
  function clock(pair, n, now, later, turned) {
    const [x, y] = [(n % across) * unit + unit / 2, Math.floor(n / across) * high + radius + 4];
    const at = ([sine, cosine]) => [x + radius * sine, y - radius * cosine];
    const hand = (to, look) => svg("path", { d: `M${x} ${y}L${at(to).join(" ")}`, "stroke-linecap": "round", ...look });
    const [cx, cy] = at(turned);
    return svg("g", {},
      svg("circle", { cx: x, cy: y, r: radius, fill: "none", stroke: "var(--line)", "stroke-width": 1.5 }),
      hand(now, { stroke: "var(--soft)", "stroke-width": 1.6, "stroke-dasharray": "3 3" }),
      hand(later, { stroke: hue(0), "stroke-width": 3 }),
      svg("circle", { cx, cy, r: 5, fill: "none", stroke: hue(1), "stroke-width": 2 }),
      label(`${2 * pair}, ${2 * pair + 1}`, x, y + radius + 18, { anchor: "middle", weight: 600, fill: "var(--ink)" }),
      label(`${brief(data.degrees[n])}°`, x, y + radius + 34, { anchor: "middle", size: 11 }));
  }
  return live(state, ({ slider }) => [
    slider("pos", message("pos"), [0, data.positions]), slider("k", message("k"), [0, data.shifts.length - 1]),
  ], () => {
    const { pos, k } = state, [now, later] = [data.hands[pos], data.hands[pos + k]];
    const turned = data.shifts[k].map((matrix, n) => matrix.map((line) => dot(line, now[n])));
    const apart = Math.max(...turned.flatMap((hand, n) => hand.map((value, side) => Math.abs(value - later[n][side]))));
    const words = message("distance", { pos, k, sum: pos + k, apart: apart < 5e-5 ? "0.0000" : apart.toFixed(4) });
    const clocks = data.pairs.map((pair, n) => clock(pair, n, now[n], later[n], turned[n]));
    return [resize(svg("svg", { role: "img", "aria-label": words }, clocks), width, high * Math.ceil(clocks.length / across)), readout(words)];
  });
});

const SIDE = 34, MOST = 4;

// The table as a map, and some of its columns as waves; a click on a column shows or hides its wave.
export const positionMap = figure(760, { waves: (data) => data.waves }, ({ data, message, state, redraw, width, facts, tell }) => {
  const source = gridOf(data.table), unit = [(width - SIDE) / source.columns, 2.4];

  function choose(_, column) {
    const without = state.waves.filter((other) => other !== column);
    const chosen = without.length < state.waves.length ? without : [...state.waves.slice(state.waves.length < MOST ? 0 : 1), column];
    if (chosen.length) state.waves = chosen.sort((a, b) => a - b);
    redraw();
  }
  const look = (row, column) => tell("cell", { row, column, value: number(source.at(row, column)) });
  const block = matrix({ name: message("map"), source, unit, color: signed(source), watch: { look, choose, start: [1, 0] } });
  const map = svg("g", { transform: `translate(${SIDE} ${block.top})` }, block.node,
    ticks([0, source.rows - 1], 4).map((row) => label(row, -7, (row + 0.5) * unit[1] + 4, { size: 11, anchor: "end" })),
    state.waves.map((column, n) => {
      const x = (column + 0.5) * unit[0];
      return [svg("path", { d: `M${x - 5} ${block.height + 10}l5 -8l5 8z`, fill: hue(n) }),
        label(column, x, block.height + 24, { anchor: "middle", weight: 600, fill: hue(n) })];
    }));
  const series = state.waves.map((column) => ({ name: message("dimension", { n: column }), points: data.table.map((row, pos) => [pos, row[column]]) }));
  tell("hint");
  return [sized(message("map"), width, block.top + block.height + 32, map),
    namedChart({ series, width, range: [-1.08, 1.08], xLabel: message("position"), name: message("waves") }), facts];
});

const GAP = 36;

// What each scheme makes of every pair of query and key position.
export const positionSchemes = figure(760, { scheme: "sinusoidal" }, ({ data, message, state, width, facts, tell, named, either }) => {
  const beside = width >= 560, source = gridOf(data.maps[state.scheme]), whole = state.scheme === "relative", middle = source.rows / 2;
  const size = Math.min(300, beside ? width * 0.45 : width), unit = size / source.columns;
  const text = (value) => (whole ? String(value) : number(value)), leave = () => tell(`${state.scheme}.text`);
  const look = (query, key) => tell("cell", { query, key, distance: String(key - query).replace("-", "−"), value: text(source.at(query, key)) });
  const block = matrix({
    name: message("map"), source, unit: [unit, unit], color: whole ? shares(source) : signed(source), watch: { look, leave, start: [middle, middle] },
  });
  const points = row(source, middle).map((value, key) => [key - middle, value]);
  const wide = beside ? width - size - GAP : width;
  const chart = lineChart({ series: [{ name: message(state.scheme), points }], width: wide, high: beside ? size - 26 : 150, xLabel: message("distance"), name: message("chart", { n: middle }), dots: true });
  chart.node.setAttribute("transform", beside ? `translate(${size + GAP} ${block.top - 6})` : `translate(0 ${block.top + block.height + 14})`);
  const high = beside ? block.top + size + 20 : block.top + block.height + chart.height + 14;
  leave();
  return [controls(either("scheme", message("scheme"), named(Object.keys(data.maps)))),
    sized(message("name"), width, high, svg("g", { transform: `translate(0 ${block.top})` }, block.node), chart.node), facts];
});
