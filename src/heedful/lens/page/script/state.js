// What the reader has chosen. Views listen to it; nothing else is shared between them.

const same = (a, b) => a === b || JSON.stringify(a) === JSON.stringify(b);

// `reconcile(next, changed)` may correct what does not fit together before anyone hears of it.
export function createState(initial, reconcile = () => ({})) {
  let values = { ...initial };
  const listeners = new Set();
  const waiting = new Set();
  let planned = false;

  function notify() {
    planned = false;
    const now = [...waiting];
    waiting.clear();
    for (const listener of now) if (listeners.has(listener)) listener.callback();
  }

  function plan() {
    if (planned) return;
    planned = true;
    if (document.hidden) setTimeout(notify);
    else requestAnimationFrame(notify);
  }

  return {
    get: (key) => values[key],

    set(changes) {
      const before = values;
      const changed = Object.keys(changes).filter((key) => !same(changes[key], before[key]));
      if (changed.length === 0) return;
      const next = { ...before, ...changes };
      values = { ...next, ...reconcile(next, changed) };
      const moved = Object.keys(values).filter((key) => !same(values[key], before[key]));
      for (const listener of listeners) if (moved.some((key) => listener.keys.has(key))) waiting.add(listener);
      if (waiting.size) plan();
    },

    // Calls back at once, as if the key had changed.
    notify(key) {
      for (const listener of listeners) if (listener.keys.has(key)) listener.callback();
    },

    // Calls back after a change of one of the keys, at most once a frame; gives a function that ends it.
    on(keys, callback) {
      const listener = { keys: new Set([keys].flat()), callback };
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
