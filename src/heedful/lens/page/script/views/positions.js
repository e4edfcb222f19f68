// How the model knows where its tokens stand: the scheme it uses, as map, waves and similarity, or as bias.
import { biases, fading } from "./figures/biases.js";
import { drawn } from "./figures/drawn.js";
import { flow } from "./figures/flow.js";
import { plane } from "./figures/grid.js";
import { dials, likeness, table, waves } from "./figures/waves.js";
import { en, ko } from "./figures/positions_words.js";

export const name = "positions";

export const words = { en, ko };

const OPENING = [0, 10 / 127, 50 / 127, 100 / 127]; // of the way from the quickest dimension to the slowest
const MOST = 6; // hues that are told apart

export function fits(doc) {
  return doc.positions !== null && Boolean(doc.positions.table ?? doc.positions.bias);
}

// The dimensions the reader has chosen to see as waves: a click adds one or takes it away.
function choice(columns, changed) {
  let chosen = [...new Set(OPENING.map((part) => Math.round(part * (columns - 1))))];
  return {
    get: () => chosen,
    toggle(dimension) {
      const without = chosen.filter((other) => other !== dimension);
      const added = without.length < chosen.length ? without : [...chosen.slice(chosen.length < MOST ? 0 : 1), dimension];
      if (added.length) chosen = added.sort((a, b) => a - b);
      changed();
    },
  };
}

export async function mount(root, { doc, arrays, state, t }) {
  const { scheme, ...ids } = doc.positions;
  const read = async (id) => (id ? arrays.get(id) : null);
  const [values, alike, bias] = await Promise.all([read(ids.table), read(ids.similarity), read(ids.bias)]);
  const dimensions = values && choice(values.shape[1], () => again());
  const said = (part, ...more) => ({
    title: t(`${part}.title`), text: [`${part}.${state.get("level")}`, ...more].map((word) => t(word, { table: "PE" })).join(" "),
  });
  const course = { learned: "courses", rotary: "turns" }[scheme] ?? "waves";

  const again = drawn(root, state, ["head"], (width, note) => {
    const shared = { t, note, column: t(scheme === "rotary" ? "pair" : "dimension") };
    const head = state.get("head");
    const turning = scheme === "rotary";
    const step = (part, draw, ...more) => ({ ...said(part, ...more), draw });
    const steps = [
      values && step(scheme, (room) => table(plane(values), dimensions, room, shared)),
      values && step(course, (room) => waves(plane(values), dimensions.get(), room, shared)),
      turning && step("dials", (room) => dials(plane(values), dimensions.get(), room, shared)),
      alike && step(turning ? "turned" : "alike", (room) => likeness(plane(alike), room, shared), ...(doc.image ? ["alike.image"] : [])),
      bias && step(scheme, (room) => biases(bias, head, room, shared)),
      bias && step("fading", (room) => fading(bias, head, room, shared)),
    ];
    return [flow(width, steps.filter(Boolean), t("title"))];
  });
}
