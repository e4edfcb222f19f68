// Axes, lines and bars: from numbers to places on paper.
import { hue } from "../color.js";
import { svg } from "../dom.js";
import { fitted, label, marked, resize, widthOf } from "./text.js";

export function scale([low, high], [from, to]) {
  const span = high - low || 1;
  return (value) => from + ((value - low) / span) * (to - from);
}

// From the least to the most of the numbers, and a little more on both sides.
export function extent(values, margin = 0.06) {
  const real = values.filter(Number.isFinite);
  const [low, high] = [Math.min(...real), Math.max(...real)];
  const more = (high - low || Math.abs(high) || 1) * margin;
  return [low - more, high + more];
}

// About `count` round numbers between the two ends.
export function ticks([low, high], count = 4) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const unit = power * [1, 2, 5, 10].find((factor) => factor * power >= 0.7 * rough);
  const first = Math.ceil(low / unit);
  return Array.from({ length: Math.floor(high / unit) - first + 1 }, (_, n) => Number(((first + n) * unit).toPrecision(12)));
}

// A line through [x, y]; where there is no y (null) it is broken.
export function line(points, look) {
  let open = false;
  const way = points.map(([x, y]) => {
    const there = y !== null && Number.isFinite(y);
    const part = there ? `${open ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}` : "";
    open = there;
    return part;
  });
  const round = { "stroke-linejoin": "round", "stroke-linecap": "round" };
  return svg("path", { d: way.join(""), fill: "none", "stroke-width": 1.8, ...round, ...look });
}

// A number on an axis: thousands apart, and what is tiny or huge by its power of ten.
const written = (value) => {
  const size = Math.abs(value), plain = size === 0 || (size >= 1e-4 && size < 1e12);
  return (plain ? value.toLocaleString("en-US", { maximumSignificantDigits: 6 }) : value.toExponential()).replace("-", "−");
};

// Hairlines with their numbers on the left, from x to x + width.
export function rules(values, y, x, width, text = written) {
  return svg("g", {}, values.map((value) => [
    svg("path", { d: `M${x} ${y(value).toFixed(1)}h${width}`, stroke: "var(--line)", "stroke-width": 1 }),
    label(text(value), x - 6, y(value) + 4, { size: 11, anchor: "end" }),
  ]));
}

// Numbers along the foot.
export function feet(values, x, y, text = written) {
  return svg("g", {}, values.map((value) => label(text(value), x(value), y, { size: 11, anchor: "middle" })));
}

const DASHES = [null, "7 3", "2 3", "9 3 2 3", "1 4", "12 4"]; // for eyes and printers without color

// [low, high, marks] around the numbers: from zero where that is near, and out to the next round mark.
export function roundRange(values, count = 4) {
  const real = values.filter(Number.isFinite);
  let [low, high] = [Math.min(...real), Math.max(...real)];
  if (low > 0 && low < high / 2) low = 0;
  if (high - low <= 1e-9 * Math.abs(high)) [low, high] = [low - (Math.abs(low) / 2 || 0.5), high + (Math.abs(high) / 2 || 0.5)];
  const power = 10 ** Math.floor(Math.log10((high - low) / count));
  const unit = power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= ((high - low) / count) * (1 - 1e-9));
  const [first, last] = [Math.floor(low / unit + 1e-9), Math.ceil(high / unit - 1e-9)];
  const marks = Array.from({ length: last - first + 1 }, (_, n) => Number(((first + n) * unit).toPrecision(10)));
  return [marks[0], marks.at(-1), marks];
}

// Names of lines in a row that wraps; gives the node and its height.
export function legend(entries, left, width) {
  let [x, y] = [left, 8];
  const node = svg("g", {}, entries.map(([text, look]) => {
    const wide = widthOf(text, 12) + 50;
    if (x > left && x + wide - 22 > width) [x, y] = [left, y + 18];
    const name = label(text, 28, 4, { fill: "var(--ink)" });
    const entry = svg("g", { transform: `translate(${x} ${y})` }, line([[0, 0], [22, 0]], look), name);
    x += wide;
    return entry;
  }));
  return { node, height: y + 10 };
}

const MOST_DOTS = 40; // a longer line is a line alone

// Lines over a common x. `series`: { name, points: [x, y, note], look }, a y that is no number is a gap. `domain` and
// `range` are those of the numbers unless given; where there are `xNames`, x counts them from 0; `dots` marks points.
// Gives the node, its height, and the scales to draw more by.
export function lineChart({ series, width, high = 170, right = 10, domain, range, xNames, xLabel, name, dots = false }) {
  const all = series.flatMap(({ points }) => points).filter(([, y]) => y !== null && Number.isFinite(y));
  const [low, top, marks] = range ? [...range, ticks(range, 4)] : roundRange(all.map(([, y]) => y));
  const side = Math.max(30, ...marks.map((mark) => widthOf(written(mark), 11) + 10));
  const xs = all.map(([x]) => x);
  const ends = xNames ? [-0.5, xNames.length - 0.5] : domain ?? [Math.min(...xs), Math.max(...xs)];
  const x = scale(ends[0] === ends[1] ? [ends[0] - 0.5, ends[1] + 0.5] : ends, [side, width - right]);
  const y = scale([low, top], [high + 6, 6]);
  const every = xNames ? Math.ceil(xNames.length / 9) : 1;
  const feetAt = xNames ? xNames.map((_, n) => n).filter((n) => n % every === 0)
    : ends[0] === ends[1] ? [ends[0]] : ticks(ends, width > 400 ? 5 : 4);
  const node = svg("g", { role: "img", "aria-label": name }, rules(marks, y, side, width - right - side));
  node.append(feet(feetAt, x, high + 24, xNames ? (n) => xNames[n] : written));
  node.append(label(xLabel, width - right, high + 42, { size: 11, anchor: "end" }));
  series.forEach(({ name: called, points, look }, n) => {
    const drawn = look ?? lineLook(n);
    node.append(line(points.map(([at, value]) => [x(at), value === null ? null : y(value)]), drawn));
    const dotted = dots ? points.filter(([, value]) => value !== null && Number.isFinite(value)) : [];
    for (const [at, value, note] of dotted.length > MOST_DOTS ? dotted.slice(-1) : dotted) {
      const caption = `${called} · ${note ?? written(at)}: ${written(Number(value.toPrecision(4)))}`;
      node.append(svg("circle", { cx: x(at), cy: y(value), r: 2.6, fill: drawn.stroke }, svg("title", {}, caption)));
    }
  });
  return { node, height: high + 46, x, y };
}

// The look of the nth of several lines.
export const lineLook = (n) => ({ stroke: hue(n), "stroke-dasharray": DASHES[n % DASHES.length] });

const BAR_ROW = 30;

// Shares from 0 to 1 as bars, each with its name before it, its text behind and a note below: { name, share, text, note },
// and where they differ from the others { look: of the letters, bar: of the bar, title: the text under the pointer }.
export function bars(rows, width, name) {
  const side = Math.min(Math.min(220, width * 0.42), Math.max(...rows.map((item) => widthOf(item.name, 14, 600)))) + 14;
  const long = Math.max(40, Math.min(560, width - side - 20 - Math.max(...rows.map((item) => widthOf(item.text, 13, 600)))));
  const node = svg("svg", { role: "img", "aria-label": name });
  let top = 0;
  for (const { name: called, share, text, note, look, bar, title } of rows) {
    const place = { x: side, y: top + 7, height: 16, rx: 3 };
    const style = { size: 14, fill: "var(--ink)", ...look };
    node.append(
      label(marked(fitted(called, side - 14, 14)), side - 12, top + 20, { ...style, anchor: "end" }),
      svg("rect", { ...place, width: long, fill: "var(--line)", opacity: 0.4 }),
      svg("rect", { ...place, width: share > 0 ? Math.max(2, Math.min(1, share) * long) : 0, fill: hue(0), opacity: 1, ...bar },
        svg("title", {}, `${called}: ${title ?? text}`)),
      label(text, side + long + 10, top + 20, { ...style, size: 13 }),
    );
    if (note) node.append(label(fitted(note, width - side, 11), side, top + 36, { size: 11 }));
    top += BAR_ROW + (note ? 16 : 0);
  }
  return resize(node, width, top);
}
