// What the reader has chosen. Views listen to it; nothing else is shared between them.

const same = (a, b) => a === b || JSON.stringify(a) === JSON.stringify(b);

// `reconcile(next)` may correct what does not fit together before anyone hears of it.
export function createState(initial, reconcile = () => ({})) {
  let values = { ...initial };
  const listeners = [];
  const waiting = new Set();
  let planned = false;

  function notify() {
    planned = false;
    const now = [...waiting];
    waiting.clear();
    for (const listener of now) listener.callback();
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
      const next = { ...before, ...changes };
      values = { ...next, ...reconcile(next) };
      const moved = Object.keys(values).filter((key) => !same(values[key], before[key]));
      for (const listener of listeners) if (moved.some((key) => listener.keys.has(key))) waiting.add(listener);
      if (waiting.size) plan();
    },

    // Calls back at once, as if the key had changed.
    notify(key) {
      for (const listener of listeners) if (listener.keys.has(key)) listener.callback();
    },

    // Calls back after a change of one of the keys, at most once a frame.
    on(keys, callback) {
      listeners.push({ keys: new Set([keys].flat()), callback });
    },
  };
}
