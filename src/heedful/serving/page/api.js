// The server's public routes. What it refuses comes as a Refused, with a kind that the catalogs have a sentence for.
// The server's key, where it wants one, is asked for in a box, kept until the tab closes, and nowhere else.

import { el } from "./look/dom.js";

const PLACE = "heedful.key";

function askForKey({ speech }) {
  let current = null;
  let open = null;
  try {
    current = sessionStorage.getItem(PLACE);
  } catch {
    // The browser keeps nothing: a key is for this page alone.
  }

  // True once there is a key to try; false if the reader has none. Several that ask share one box.
  function ask() {
    open ??= box().finally(() => (open = null));
    return open;
  }

  function box() {
    const input = el("input", { type: "password", autocomplete: "off", required: true, id: "key" });
    const dialog = el("dialog", { class: "box", "aria-labelledby": "key-title" },
      el("form", { method: "dialog" },
        speech.say("h2", "keyTitle", {}, { id: "key-title" }),
        speech.say("p", current ? "keyWrong" : "keyWhy"),
        speech.say("label", "key", {}, { for: "key" }), input,
        el("div", { class: "acts" },
          speech.say("button", "keyGive", {}, { class: "go", value: "give" }),
          speech.say("button", "close", {}, { type: "submit", value: "", formnovalidate: true, class: "plain" }))));
    document.body.append(dialog);
    dialog.showModal();
    return new Promise((resolve) => dialog.addEventListener("close", () => {
      dialog.remove();
      if (dialog.returnValue === "give") keep(input.value);
      resolve(dialog.returnValue === "give");
    }));
  }

  function keep(value) {
    current = value.trim();
    try {
      sessionStorage.setItem(PLACE, current);
    } catch {
      // As above.
    }
  }

  return { current: () => current, ask };
}

export class Refused extends Error {
  constructor(kind, message = "", retryAfter = null) {
    super(message);
    this.kind = kind;
    this.retryAfter = retryAfter;
  }
}

const KINDS = { 401: "refusedKey", 403: "refusedKey", 413: "refusedSize", 429: "refusedBusy", 503: "refusedBusy" };

async function refusal(response) {
  const kind = KINDS[response.status] ?? (response.status < 500 ? "refusedInput" : "refusedServer");
  const body = await response.json().catch(() => ({}));
  const message = body.error?.message ?? body.error ?? "";
  return new Refused(kind, String(message), Number(response.headers.get("Retry-After")) || null);
}

// The data lines of a stream of server-sent events, each a JSON value, until [DONE].
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader(); // not every browser can loop over it
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split(/\r?\n/);
      rest = lines.pop();
      for (const line of lines.filter((line) => line.startsWith("data:"))) {
        const data = line.slice(5).trim();
        if (data === "[DONE]") return;
        const event = JSON.parse(data);
        if (event.error) throw new Refused("refusedServer", String(event.error.message ?? event.error));
        yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

export function createApi({ speech }) {
  const key = askForKey({ speech });

  async function fetched(path, options) {
    const headers = { ...options.headers, ...(key.current() ? { Authorization: `Bearer ${key.current()}` } : {}) };
    try {
      return await fetch(path, { ...options, headers });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refused("refusedAway");
    }
  }

  // Where a key is needed it is asked for once, and again only if it was wrong.
  async function send(path, options = {}) {
    let response = await fetched(path, options);
    while ([401, 403].includes(response.status) && (await key.ask())) response = await fetched(path, options);
    if (!response.ok) throw await refusal(response);
    return response;
  }

  const post = (path, body, signal) => send(path, {
    method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, signal,
  });
  const model = encodeURIComponent;

  return {
    get: async (path) => (await send(path)).json(),
    post: async (path, body, signal) => (await post(path, body, signal)).json(),
    predict: async (name, inputs, signal) => (await (await post(`v1/predict/${model(name)}`, { inputs }, signal)).json()).outputs,
    look: async (name, body, signal) => (await post(`look/${model(name)}`, body, signal)).blob(),
    document: async (name, body, signal) => (await post(`look/${model(name)}`, { ...body, format: "json" }, signal)).json(),
    async *complete(body, signal) {
      yield* events(await post("v1/completions", { ...body, stream: true }, signal));
    },
  };
}
