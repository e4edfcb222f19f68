// The numbers: each array is read and inflated when a view first asks for it, and kept.

function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

// Typed arrays are little-endian on every machine that runs a browser today.
const READERS = {
  float32: (buffer) => new Float32Array(buffer),
  float16: (buffer) => Float32Array.from(new Uint16Array(buffer), half),
  uint8: (buffer) => new Uint8Array(buffer),
};

async function inflated(base64) {
  const packed = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
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

export function createArrays(descriptions) {
  const known = new Map();
  return {
    get(id) {
      if (!known.has(id)) known.set(id, read(id, descriptions[id]));
      return known.get(id);
    },
  };
}
