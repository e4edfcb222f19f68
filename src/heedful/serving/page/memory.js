// What outlives the page: language and theme in this browser, as on the pages that `heedful look` writes; the tool in
// the address.

const ALLOWED = { language: ["en", "ko"], theme: ["light", "dark"] };

// A browser may be told to keep nothing.
function stored(key) {
  try {
    const value = localStorage.getItem(`heedful.${key}`);
    return ALLOWED[key].includes(value) ? value : null;
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

const spoken = () => navigator.languages.map((tag) => tag.slice(0, 2)).find((tag) => ALLOWED.language.includes(tag));
const darkness = matchMedia("(prefers-color-scheme: dark)");

// The tool that the address names; anyone can write an address.
function named() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

export function firstChoice() {
  return {
    language: stored("language") ?? spoken() ?? "en",
    theme: stored("theme") ?? (darkness.matches ? "dark" : "light"),
    tool: named(),
  };
}

// Keep what the reader changes from here on, and follow the address and the system.
export function remember(state) {
  for (const key of Object.keys(ALLOWED)) {
    let known = state.get(key);
    state.on(key, () => {
      if (state.get(key) !== known) store(key, (known = state.get(key)));
    });
  }
  addEventListener("hashchange", () => {
    if (location.hash !== "#tool") state.set({ tool: named() }); // that one is the way past the bar
  });
  darkness.addEventListener("change", () => {
    if (!stored("theme")) state.set({ theme: darkness.matches ? "dark" : "light" });
  });
}
