// The slider of steps with its buttons. It sets state.step; everything else follows.
import { el, clear } from "../../dom.js";
import { currentRow, firstRow } from "./rows.js";
import { visible } from "./words.js";

const PAUSE = 900; // ms between two steps of a short answer; a long one runs through in about half a minute
const LONGEST = 30000;

export function player({ doc, state, t }) {
  const last = doc.written.length - 1;
  const back = el("button", { type: "button" }, "‹");
  const play = el("button", { type: "button", class: "play" });
  const on = el("button", { type: "button" }, "›");
  const slider = el("input", { type: "range", min: "0", max: String(last), step: "1" });
  const place = el("output", { class: "place" });
  const node = el("div", { class: "player" }, back, play, on, slider, place);
  let timer = null;

  const go = (row) => state.set({ step: Math.min(Math.max(row, 0), last) });
  const stop = () => {
    clearTimeout(timer);
    timer = null;
    name();
  };
  const tick = () => {
    const row = currentRow(doc, state);
    if (row >= last) return stop();
    go(row + 1);
    timer = setTimeout(tick, Math.min(PAUSE, LONGEST / doc.written.length));
  };
  const start = () => {
    if (currentRow(doc, state) >= last) go(firstRow(doc));
    timer = setTimeout(tick, 300);
    name();
  };
  const name = () => {
    clear(play);
    play.append(timer === null ? t("play") : t("pause"));
    back.setAttribute("aria-label", t("back"));
    on.setAttribute("aria-label", t("on"));
    slider.setAttribute("aria-label", t("slider"));
  };
  const show = () => {
    const row = currentRow(doc, state);
    slider.value = String(row);
    slider.setAttribute("aria-valuetext", `${row + 1}: ${visible(doc.written[row])}`);
    place.textContent = t("place", { step: row + 1, all: last + 1 });
    back.disabled = row === 0;
    on.disabled = row === last;
  };

  back.addEventListener("click", () => (stop(), go(currentRow(doc, state) - 1)));
  on.addEventListener("click", () => (stop(), go(currentRow(doc, state) + 1)));
  play.addEventListener("click", () => (timer === null ? start() : stop()));
  slider.addEventListener("input", () => (stop(), go(Number(slider.value))));
  state.on(["step"], show);
  state.on(["language"], () => (name(), show()));
  name();
  show();
  return { node, playing: () => timer !== null };
}
