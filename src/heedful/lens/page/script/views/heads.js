// The heads of a layer: all at a glance, one large, and two side by side.
import { difference, evenly, habit, jensenShannon, largest, mean, rankIn, rowOf, shrunk } from "../attention/measure.js";
import { chosen, comparedWith, crossVariant, headName, hiddenIn, kindName, kindsOf, picker, tokensAt, weightsOf, writes } from "../attention/selection.js";
import { kindOf, ofKind, sameLayer } from "../choice.js";
import { hue, shadeBytes } from "../color.js";
import { dropdown, either, el, replace, svg } from "../dom.js";
import { createGallery, createLegend, createMap, isLarge, raster, SCALES } from "../drawing/map.js";
import { grid, picture, pixels } from "../drawing/matrix.js";
import { latest } from "../drawing/stage.js";
import { resize } from "../drawing/text.js";

// All heads at a glance: a small map for each, drawn in idle time, so that the page opens at once.
export const heads = {
  name: "heads", variant: crossVariant, mount: mountHeads,
  fits: (doc) => doc.attentions.flatMap((attention) => attention.heads).length > 1,
};

const SIDE = 48;

function mountHeads(root, context) {
  const { doc, state, t } = context;
  const small = new Map();
  const picks = el("div", { class: "picks" });
  let order = "place";
  const note = el("p", { class: "soft note" });
  const gallery = createGallery({
    onChoose: ({ attention, head }) => state.set({ attention: attention.id, head }),
    isChosen: ({ attention, head }) => {
      if (attention.id !== chosen(context).attention.id) return "";
      return state.get("head") === "mean" ? "of-mean" : state.get("head") === head ? "chosen" : "";
    },
  });
  root.classList.add("attention");
  root.append(picks, gallery.node, note);

  let turn = 0, drawn = null;
  const paint = async (cells) => {
    const ticket = ++turn;
    for (const cell of cells) {
      if (!small.has(cell.weights)) {
        await idle();
        if (ticket !== turn) return;
        small.set(cell.weights, shrunk(await context.arrays.get(cell.weights), SIDE));
        if (ticket !== turn) return;
      }
      const map = small.get(cell.weights);
      gallery.picture(cell, raster(map, SCALES.weights, largest(map.data), hiddenIn(cell.attention)));
    }
  };
  const draw = () => {
    const { attention } = chosen(context), kind = kindOf(attention), deep = state.get("level") === "deep";
    const cells = cellsOf(context, kind);
    const orders = { place: "byPlace", entropy: "byEntropy", ...(cells[0].distance === null ? {} : { distance: "byDistance" }) };
    const by = deep && order in orders ? order : "place";
    const kinds = kindsOf(doc).map((item) => [item, t(item)]);
    const goTo = (item) => state.set({ attention: sameLayer(doc, item, chosen(context).attention).id });
    const sort = (next) => ((order = next), draw());
    replace(picks, [
      kinds.length > 1 ? either(t("attention"), kinds, kind, goTo) : "",
      deep ? dropdown(t("order"), Object.entries(orders).map(([key, word]) => [key, t(word)]), by, sort, "order") : "",
    ]);
    const sorted = by === "place" ? cells : [...cells].sort((a, b) => a[by] - b[by]);
    for (const cell of cells) {
      const place = { layer: cell.attention.layer, head: cell.head };
      cell.caption = by === "place" ? `${t("head")} ${cell.head}` : t("place", place);
    }
    const inLayer = (item) => ({ title: t("layerName", item), cells: cells.filter((cell) => cell.attention === item) });
    const rows = by === "place" ? ofKind(doc, kind).map(inLayer) : [{ title: "", cells: sorted }];
    gallery.draw(rows, t("label", { kind: kindName(context, kind) }));
    const { queries, keys } = attention;
    const tokens = Math.max(doc.sequences[queries].length, doc.sequences[keys].length);
    note.textContent = [deep ? t("about") : "", tokens > SIDE ? t("shrunk") : ""].join(" ").trim();
    drawn = kind;
    paint(sorted);
  };
  state.on(["level", "language", "theme"], draw);
  state.on(["attention", "head"], () => {
    if (kindOf(chosen(context).attention) === drawn) gallery.mark();
    else draw();
  });
  draw();
}

function idle() {
  return new Promise((resolve) => {
    if (window.requestIdleCallback) requestIdleCallback(resolve, { timeout: 200 });
    else setTimeout(resolve);
  });
}

/** One cell for each head of a kind, with its words for the reading level. */
function cellsOf(context, kind) {
  const { doc, state, t } = context;
  return ofKind(doc, kind).flatMap((attention) => {
    const even = evenly(doc.sequences[attention.queries].length, doc.sequences[attention.keys].length, attention.causal);
    return attention.heads.map((item, head) => {
      const numbers = [
        item.distance === null ? null : t("distance", { value: item.distance.toFixed(2) }),
        t("entropy", { value: item.entropy.toFixed(2) }),
      ].filter(Boolean);
      const habitText = t(habit(item, even)).split("|");
      const [lines, joint] = state.get("level") === "deep" ? [numbers, " · "] : [habitText, " "];
      const label = `${headName(context, { attention, head })}: ${habitText.join(" ")}, ${numbers.join(", ")}`;
      return { attention, head, weights: item.weights, distance: item.distance, entropy: item.entropy, lines, joint, label };
    });
  });
}

// One head large: who looks at whom, with the weight of every pair.
export const head = { name: "head", fits: (doc) => doc.attentions.length > 0, variant: crossVariant, mount: mountHead };

function mountHead(root, context) {
  const { doc, state, t } = context;
  const readout = el("p", { class: "said", "aria-live": "polite" });
  const legend = createLegend(SCALES.weights), closeup = createCloseup();
  let current = null;

  const update = (cell) => {
    readout.textContent = cell && current ? sentence(context, current, cell) : t("rest");
    readout.classList.toggle("soft", !cell);
    if (current) closeup.show(current.large ? cell : null, current);
  };
  const map = createMap(root, { onCell: update, onPick: (cell) => state.set({ pair: cell }) });
  root.classList.add("attention");
  root.append(el("div", { class: "beside" }, map.node, el("div", {}, readout, legend.node, closeup.node)));

  const draw = latest((weights) => {
    const { attention, head } = chosen(context);
    const { rows, columns } = tokensAt(doc, attention);
    const most = largest(weights.data);
    const hidden = hiddenIn(attention);
    current = { attention, head, weights, most, hidden, rows, columns, large: isLarge({ rows, columns }) };
    const name = `${kindName(context, kindOf(attention))}, ${headName(context, { attention, head })}`;
    map.draw({
      rows, columns, hidden, panels: [{ map: weights, scale: SCALES.weights, most }], digits: state.get("level") === "deep",
      label: t("label", { name, rows: rows.length, columns: columns.length }), hint: t("hint"),
    });
    legend.draw("0", most.toFixed(state.get("level") === "deep" ? 4 : 2));
  });
  const load = () => draw(weightsOf(context, chosen(context)));
  state.on(["attention", "head", "level", "language", "theme"], load);
  return load();
}

function sentence({ doc, state, t }, { attention, head, weights, hidden, rows, columns }, { query, key }) {
  const values = { query: rows[query].text, key: columns[key].text };
  if (hidden(query, key)) return t("hiddenPair", values);
  const row = rowOf(weights, query), weight = row[key];
  const percent = `${(weight * 100).toFixed(weight < 0.1 ? 1 : 0)}%`;
  if (state.get("level") !== "deep") return t(writes(doc, attention) ? "cellCross" : "cellSimple", { ...values, percent });
  const count = attention.causal ? query + 1 : columns.length;
  const details = { ...values, weight: weight.toFixed(4), rank: rankIn(row, key), count };
  return t(head === "mean" ? "cellMean" : "cellDeep", details);
}

// A few cells around the one under the pointer, large: for maps whose cells are smaller than a finger.

const REACH = 5, CELL = 19, ACROSS = 2 * REACH + 1;

/** A window of 11 × 11 cells that `show(cell, map)` moves; without a cell it is not there. */
function createCloseup() {
  const side = ACROSS * CELL;
  const image = picture(null, { width: side, height: side });
  const middle = svg("rect", { x: REACH * CELL, y: REACH * CELL, width: CELL, height: CELL, fill: "none", class: "cross one" });
  const node = resize(svg("svg", { class: "closeup", "aria-hidden": "true" }, image, middle), side, side);
  return {
    node,
    show(cell, { weights, most, hidden }) {
      node.style.display = cell ? "block" : "none";
      if (!cell) return;
      const around = grid(ACROSS, ACROSS, (down, right) => {
        const [row, column] = [cell.query + down - REACH, cell.key + right - REACH];
        const within = row >= 0 && column >= 0 && row < weights.shape[0] && column < weights.shape[1];
        return within && !hidden(row, column) ? weights.at(row, column) / most : null;
      });
      image.setAttribute("href", pixels(around, (share) => (share === null ? null : shadeBytes(share))));
    },
  };
}

// Two heads side by side, and what the first does more or less than the second.
export const compare = {
  name: "compare", variant: crossVariant, mount: mountCompare,
  fits: ({ attentions }) => attentions.length > 1 || attentions.some(({ heads }) => heads.length > 1),
};

function mountCompare(root, context) {
  const { doc, state, t } = context;
  const readout = el("p", { class: "said", "aria-live": "polite" });
  const legend = createLegend(SCALES.difference);
  const between = el("span", {});
  const choose = (attention, head) => state.set({ compare: { attention: attention.id, head } });
  let current = null;
  const update = (cell) => {
    if (current) readout.textContent = cell ? cellSentence(context, current, cell) : summary(context, current);
  };
  const map = createMap(root, { onCell: update, onPick: (cell) => state.set({ pair: cell }) });
  root.classList.add("attention");
  const lists = picker(context, () => comparedWith(context), choose);
  root.append(el("div", { class: "picks" }, between, lists), map.node, readout, legend.node);

  const draw = latest(([a, b]) => {
    const first = chosen(context), second = comparedWith(context);
    const { rows, columns } = tokensAt(doc, first.attention);
    const minus = difference(a, b), most = Math.max(largest(a.data), largest(b.data)), gap = largest(minus.data);
    const distances = rows.map((_, row) => jensenShannon(rowOf(a, row), rowOf(b, row)));
    const names = [first, second].map((each) => headName(context, each));
    const identical = first.attention === second.attention && first.head === second.head;
    const hidden = hiddenIn(first.attention);
    current = { a, b, rows, columns, distances, hidden, identical };
    between.textContent = t("with");
    map.draw({
      rows, columns, hidden, digits: false, hint: t("hint"), label: t("label", { a: names[0], b: names[1] }),
      bars: state.get("level") === "deep" && { values: distances, title: t("bars"), color: hue(3) },
      panels: [
        { title: `${t("first")} · ${names[0]}`, map: a, scale: SCALES.weights, most },
        { title: `${t("second")} · ${names[1]}`, map: b, scale: SCALES.weights, most },
        { title: t("minus"), map: minus, scale: SCALES.difference, most: gap },
      ],
    });
    legend.draw(`B +${gap.toFixed(2)}`, `A +${gap.toFixed(2)}`);
  });
  const load = () => draw(Promise.all([chosen(context), comparedWith(context)].map((each) => weightsOf(context, each))));
  state.on(["attention", "head", "compare", "level", "language", "theme"], load);
  return load();
}

function summary({ state, t }, { rows, distances, identical }) {
  if (identical) return t("self");
  const most = Math.max(...distances), typical = mean(distances);
  const token = rows[distances.indexOf(most)].text;
  if (state.get("level") === "deep") return t("total", { mean: typical.toFixed(4), most: most.toFixed(4), token });
  return t(typical < 0.2 ? "same" : typical < 0.45 ? "partly" : "apart", { token });
}

function cellSentence({ t }, { a, b, rows, columns, hidden }, { query, key }) {
  const values = { query: rows[query].text, key: columns[key].text };
  if (hidden(query, key)) return t("hiddenPair", values);
  const place = query * columns.length + key, first = a.data[place], second = b.data[place];
  const signed = (first - second >= 0 ? "+" : "−") + Math.abs(first - second).toFixed(4);
  return t("cell", { ...values, a: first.toFixed(4), b: second.toFixed(4), d: signed });
}
