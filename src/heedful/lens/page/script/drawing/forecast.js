// A line with its forecast, its patches below, and arcs from one patch to those it looks at.
import { hue, shade } from "../color.js";
import { onHover, svg } from "../dom.js";
import { extent, feet, legend, line, lineLook, rules, scale, ticks } from "./chart.js";
import { cells } from "./matrix.js";
import { label, percent, resize, widthOf } from "./text.js";

const HIGH = 230, LANE = 15, ARCS = 74;

// Patches that overlap stand in lanes of their own.
function lanesOf(patches) {
  const ends = [];
  return patches.map(([start, end]) => {
    const free = ends.findIndex((taken) => taken <= start);
    const lane = free < 0 ? ends.length : free;
    ends[lane] = end;
    return lane;
  });
}

function patchBars({ patches, looking, x, y, nameOf, choose, note }) {
  const lanes = lanesOf(patches);
  const most = Math.max(...looking.shares) || 1;
  const foot = y + (Math.max(...lanes) + 1) * LANE;
  const middle = ([start, end]) => (x(start) + x(end - 1)) / 2;
  const node = svg("g");
  looking.shares.forEach((share, n) => {
    const strength = share / most;
    if (looking.from === null || n === looking.from || strength < 0.02) return;
    const [a, b] = [middle(patches[looking.from]), middle(patches[n])];
    const low = foot + 1.3 * Math.min(ARCS - 8, 14 + Math.abs(a - b) * 0.32);
    node.append(svg("path", {
      d: `M${a} ${foot + 2}C${a} ${low} ${b} ${low} ${b} ${foot + 2}`, fill: "none", stroke: "var(--accent-2)",
      "stroke-width": (0.5 + 4 * strength).toFixed(2), opacity: (0.25 + 0.65 * strength).toFixed(2), "stroke-linecap": "round",
    }));
  });
  patches.forEach((patch, n) => {
    const share = looking.shares[n];
    const edge = n === looking.from ? { stroke: "var(--accent-2)", "stroke-width": 2.5 } : { stroke: "var(--line)", "stroke-width": 1 };
    const bar = svg("rect", {
      x: x(patch[0]), y: y + lanes[n] * LANE, width: Math.max(3, x(patch[1] - 1) - x(patch[0])), height: LANE - 4, rx: 3,
      fill: shade(0.06 + (0.8 * share) / most), style: { cursor: choose ? "pointer" : "default" }, onclick: () => choose?.(n), ...edge,
    });
    onHover(bar, () => note.show(bar.getBoundingClientRect(), `${nameOf(n)}: ${percent(share)}`), note.hide);
    node.append(bar);
  });
  return { node, foot: foot + (looking.from === null ? 6 : ARCS) };
}

// The series as far as it was known, its forecast, the truth and other `lines` by name; `looking` shades the patches by
// `shares`, with arcs from the patch `from` where there is one.
export function forecastChart({ series, width, looking, nameOf, choose, note, t }) {
  const { context, forecast, truth, times, lines = {} } = series;
  const now = context.length - 1;
  const read = series.patches.map(([start, end]) => [start, Math.min(end, context.length)]); // the last may be filled up
  const last = now + Math.max(forecast.length, truth?.length ?? 0);
  const range = extent([context, forecast, truth ?? [], ...Object.values(lines)].flat().filter((value) => value !== null));
  const marks = ticks(range, 4);
  const side = Math.max(...marks.map((mark) => widthOf(String(mark), 11))) + 10;
  const x = scale([0, last], [side, width - 8]);
  const looks = {
    past: { stroke: "var(--ink)", "stroke-width": 2 }, forecast: { stroke: hue(1), "stroke-width": 2.4 },
    truth: { stroke: hue(0), "stroke-width": 2, "stroke-dasharray": "6 4" },
  };
  const others = Object.entries(lines).map(([word, values], n) => [word, values, lineLook(n + 2)]);
  const names = ["past", "forecast", ...(truth ? ["truth"] : [])].map((word) => [t(word), looks[word]]);
  const keys = legend([...names, ...others.map(([word, , look]) => [word, look])], side, width - (looking?.title ? 150 : 0));
  const top = keys.height + 8;
  const y = scale(range, [top + HIGH, top]);
  const points = (values, from) => values.map((value, n) => [x(from + n), value === null ? null : y(value)]);
  const joint = Number.isFinite(context[now]) ? points([context[now]], now) : [];
  const ahead = (values, look) => line([...joint, ...points(values, now + 1)], look);
  const name = t("map", { name: series.name });
  const node = svg("svg", { role: "group", "aria-label": name }, keys.node,
    svg("rect", { x: x(now), y: top, width: width - 8 - x(now), height: HIGH, fill: "var(--tint)" }));
  if (looking) {
    const most = Math.max(...looking.shares) || 1;
    read.forEach(([start, end], n) => node.append(svg("rect", {
      x: x(start), y: top, width: x(end - 1) - x(start), height: HIGH,
      fill: "var(--accent-2)", opacity: (0.22 * (looking.shares[n] / most) ** 2).toFixed(3),
    })));
    if (looking.title) node.append(label(looking.title, width - 8, 12, { anchor: "end" }));
  }
  const named = (place) => String(times?.[place] ?? place - now);
  const labeled = times ? [0, now] : ticks([-now, last - now], width > 600 ? 8 : 5).map((value) => value + now);
  // Every step under the pointer and the arrow keys, with all that is known of it.
  const describe = (place) => {
    const values = { past: context[place], forecast: forecast[place - now - 1], truth: truth?.[place - now - 1] };
    const there = Object.entries(values).filter(([, value]) => Number.isFinite(value));
    return [named(place), ...there.map(([word, value]) => `${t(word)} ${Number(value.toPrecision(6))}`)].join(" · ");
  };
  const watched = cells({
    rows: 1, columns: last + 1, width: (x(1) - x(0)) * (last + 1), height: HIGH, name, key: "line",
    ...note.over((_, place) => describe(place)),
  });
  node.append(
    rules(marks, y, side, width - 8 - side),
    line(points(context, 0), looks.past),
    ...others.map(([, values, look]) => ahead(values, look)),
    truth ? ahead(truth, looks.truth) : "",
    ahead(forecast, looks.forecast),
    feet(labeled, x, top + HIGH + 17, (place) => named(place).replace("-", times ? "-" : "−")),
    svg("g", { transform: `translate(${side - (x(1) - x(0)) / 2} ${top})` }, watched),
  );
  let foot = top + HIGH + 24;
  if (looking) {
    const bars = patchBars({ patches: read, looking, x, y: foot + 8, nameOf, choose, note });
    node.append(bars.node);
    foot = bars.foot;
  }
  return resize(node, width, foot);
}
