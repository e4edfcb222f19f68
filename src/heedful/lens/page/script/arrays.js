// The numbers: each array is read and inflated when a view asks for it, and kept as long as there is room.

const ROOM = 64 * 2 ** 20;

function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

// Rounded shares, as whole numbers of two bytes: all the low ones, then all the high ones.
function decimal(buffer, digits) {
  const all = new Uint8Array(buffer), n = all.length / 2;
  return Float32Array.from(all.subarray(0, n), (low, place) => (low + 256 * all[n + place]) / 10 ** digits);
}

// Typed arrays are little-endian on every machine that runs a browser today.
const READERS = {
  float32: (buffer) => new Float32Array(buffer),
  float16: (buffer) => Float32Array.from(new Uint16Array(buffer), half),
  uint8: (buffer) => new Uint8Array(buffer),
  decimal4: (buffer) => decimal(buffer, 4),
  decimal3: (buffer) => decimal(buffer, 3),
};

export const bytes = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));

async function inflated(base64) {
  const stream = new Blob([bytes(base64)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

// The arrays stand behind the script, so that the page opens before all of them are read.
function parsed() {
  if (document.readyState !== "loading") return Promise.resolve();
  return new Promise((resolve) => document.addEventListener("DOMContentLoaded", resolve, { once: true }));
}

async function packedText(id, description) {
  if (description.data) return description.data;
  if (!document.getElementById(`array-${id}`)?.nextSibling) await parsed();
  return document.getElementById(`array-${id}`).textContent;
}

async function read(id, description) {
  if (!description) throw new Error(`the document has no array ${id}`);
  const { shape, type } = description;
  const data = READERS[type](await inflated(await packedText(id, description)));
  const strides = shape.map((_, axis) => shape.slice(axis + 1).reduce((product, size) => product * size, 1));
  const at = (...indices) => data[indices.reduce((place, index, axis) => place + index * strides[axis], 0)];
  return { shape, data, at };
}

// The arrays asked for last, up to `room` bytes; the one in use is always kept, whatever its size.
export function createArrays(descriptions, room = ROOM) {
  const cache = new Map(); // the one asked for last is the last
  const size = (id) => 4 * (descriptions[id]?.shape ?? []).reduce((product, length) => product * length, 1);
  let used = 0;

  function forget(id) {
    cache.delete(id);
    used -= size(id);
  }
  return {
    get(id) {
      const array = cache.get(id) ?? read(id, descriptions[id]);
      if (cache.has(id)) forget(id);
      cache.set(id, array);
      used += size(id);
      for (const oldest of cache.keys()) {
        if (used <= room || oldest === id) break;
        forget(oldest);
      }
      return array;
    },
  };
}
