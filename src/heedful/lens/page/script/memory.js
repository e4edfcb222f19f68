// What outlives the page: level, language and theme in this browser, and every choice in the address.

const KEPT = ["level", "language", "theme"];
const SHARED = [...KEPT, "attention", "head", "step", "view"];
const ALLOWED = { level: ["simple", "deep"], language: ["en", "ko"], theme: ["light", "dark"] };

// A page from a file, or a browser that keeps nothing, may refuse.
function stored(key) {
  try {
    return localStorage.getItem(`heedful.${key}`);
  } catch {
    return null;
  }
}

function store(key, value) {
  try {
    localStorage.setItem(`heedful.${key}`, value);
  } catch {
    // Not remembered: the page works all the same.
  }
}

function readable(key, text, doc) {
  if (text === null) return undefined;
  if (ALLOWED[key]) return ALLOWED[key].includes(text) ? text : undefined;
  if (key === "attention") return doc.attentions.some((attention) => attention.id === text) ? text : undefined;
  if (key === "view") return text;
  if (key === "head" && text === "mean") return text;
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

// The choices that the address holds.
export function fromAddress(doc) {
  const given = new URLSearchParams(location.hash.slice(1));
  const entries = SHARED.map((key) => [key, readable(key, given.get(key), doc)]);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

export function remembered(doc) {
  const entries = KEPT.map((key) => [key, readable(key, stored(key), doc)]);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

// Keep what the reader changes from here on, and follow an address that changes.
export function remember(state, doc) {
  const opened = Object.fromEntries(SHARED.map((key) => [key, state.get(key)]));
  const touched = new Set(Object.keys(fromAddress(doc)));
  state.on(SHARED, () => {
    for (const key of SHARED) if (state.get(key) !== opened[key]) touched.add(key);
    for (const key of KEPT) if (touched.has(key)) store(key, state.get(key));
    const address = new URLSearchParams([...touched].map((key) => [key, state.get(key)]));
    try {
      history.replaceState(null, "", `#${address}`);
    } catch {
      // Some browsers count changes of the address and refuse too many.
    }
  });
  addEventListener("hashchange", () => state.set(fromAddress(doc)));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (query) => {
    if (!touched.has("theme") && !stored("theme")) state.set({ theme: query.matches ? "dark" : "light" });
  });
}
