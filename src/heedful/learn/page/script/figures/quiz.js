// Claims to be judged; each answer comes with what was measured and the chapter that explains it.
import { el } from "../../lens/dom.js";
import { chapterLink, figure, readout } from "../controls.js";

export const quiz = figure(Infinity, { answers: () => ({}) }, ({ data, message, state, redraw }) => {
  // A claim with its two buttons, and once it is answered the verdict and the measurement.
  function item({ name, chapter, holds, values }, n) {
    const answer = state.answers[name], link = chapterLink(chapter), answered = answer !== undefined;
    const button = (value) => el("button", {
      type: "button", "data-keep": `${name}.${value}`, "aria-pressed": String(answer === value), onclick: () => { state.answers[name] = value; redraw(); },
    }, message(String(value)));
    return el("li", { class: answered ? (answer === holds ? "hit" : "miss") : "" },
      el("p", { class: "claim" }, message(name)),
      el("div", { class: "either", role: "group", "aria-label": message("claim", { n: n + 1 }) }, button(true), button(false)),
      answered && el("p", { class: "why", role: "status" }, el("b", {}, message(answer === holds ? "right" : "wrong")), " ", message(`answer.${holds}`), " ",
        message(`${name}.why`, values), " ", link ? el("a", { href: link.href }, message("chapter", { n: Number(chapter) })) : ""));
  }
  const judged = data.claims.filter(({ name }) => state.answers[name] !== undefined);
  const right = judged.filter(({ name, holds }) => state.answers[name] === holds).length;
  return [
    readout(message(judged.length ? "score" : "start", { right, answered: judged.length, left: data.claims.length - judged.length })),
    el("ol", { class: "quiz" }, data.claims.map(item)),
    judged.length ? el("button", { type: "button", onclick: () => { state.answers = {}; redraw(); } }, message("reset")) : ""];
});
