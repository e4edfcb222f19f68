// One request at a time, with its button and its troubles.

import { Refused } from "./api.js";
import { clear, el } from "./look/dom.js";
import { complaint } from "./speech.js";

// One question at a time: the button that asks, the one that stops, and what went wrong, beside the form.
// `act(signal)` asks and shows the answer. Asking again ends what still runs. What was typed is never touched.
export function asking({ speech }, word, act) {
  let running = null;
  const end = () => running?.abort();
  const go = speech.say("button", word, {}, { type: "submit", class: "go" });
  const stop = speech.say("button", "stop", {}, { type: "button", class: "plain", hidden: true, onclick: end });
  const status = el("p", { class: "status soft", role: "status" });
  const trouble = el("div", { class: "trouble" });
  const row = el("div", { class: "acts" }, go, stop, status);

  function busy(is) {
    stop.hidden = !is;
    row.classList.toggle("busy", is);
    if (is) status.replaceChildren(speech.say("span", "working"));
    else clear(status);
  }

  async function run() {
    end();
    const ticket = (running = new AbortController());
    clear(trouble);
    busy(true);
    try {
      await act(ticket.signal);
    } catch (error) {
      if (error instanceof Refused) trouble.append(complaint(speech, error));
      else if (error.name !== "AbortError") {
        trouble.append(complaint(speech, new Refused("refusedPage", error.message)));
        throw error;
      }
    } finally {
      if (running === ticket) {
        running = null;
        busy(false);
      }
    }
  }

  // Enter in a one-line field asks; in a text it takes Ctrl or ⌘ with it.
  function listen(form) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      run();
    });
    form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        run();
      }
    });
    return form;
  }

  return { row, trouble, run, end, listen };
}
