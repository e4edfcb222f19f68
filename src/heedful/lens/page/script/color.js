// Colors that are read by lightness first, so that color-blind eyes and gray printers read them too.
// Ramps are mixed in OKLab, where equal steps look equal.

const RAMPS = {
  light: ["#f6f4ee", "#d5e7de", "#8cc5c0", "#4594b3", "#2f5f9a", "#2e3479", "#1d0f45"],
  dark: ["#1d2027", "#2a3160", "#2f5692", "#2b86a5", "#4cb9a0", "#a9dd94", "#fbf7c8"],
};
const OPPOSED = {
  light: ["#8a3a00", "#cf6a1c", "#f0b987", "#f6f4ee", "#a5c9e6", "#3b86c2", "#0b4a86"],
  dark: ["#ffd0a0", "#f2944e", "#8a4a1e", "#1d2027", "#1f4e7c", "#4c9fe0", "#c4e4ff"],
};
const SERIES = {
  light: ["#0067a5", "#c2570c", "#00856a", "#a84f86", "#7a6a12", "#3f88b8"],
  dark: ["#5eb3f0", "#f2944e", "#3ecfa4", "#e08cc0", "#d8c23f", "#9bd0f5"],
};
const STEPS = 256;
const tables = new Map();

const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
const gamma = (part) => (part <= 0.0031308 ? part * 12.92 : 1.055 * part ** (1 / 2.4) - 0.055);

function bytes(color) {
  if (color[0] === "#") return [1, 3, 5].map((place) => parseInt(color.slice(place, place + 2), 16));
  return color.match(/[\d.]+/g).slice(0, 3).map(Number);
}

function toLab(color) {
  const [r, g, b] = bytes(color).map((part) => linear(part / 255));
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function fromLab([L, a, b]) {
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const rgb = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return rgb.map((part) => Math.round(255 * Math.min(1, Math.max(0, gamma(Math.max(0, part))))));
}

function table(stops) {
  const key = stops[0] + stops[1];
  if (!tables.has(key)) {
    const labs = stops.map(toLab);
    const rows = Array.from({ length: STEPS }, (_, step) => {
      const way = (step / (STEPS - 1)) * (stops.length - 1);
      const before = Math.min(Math.floor(way), stops.length - 2);
      return fromLab(labs[before].map((part, axis) => part + (labs[before + 1][axis] - part) * (way - before)));
    });
    tables.set(key, { rows, texts: rows.map((rgb) => `rgb(${rgb.join(",")})`) });
  }
  return tables.get(key);
}

const theme = () => (document.documentElement.dataset.theme === "dark" ? "dark" : "light");
const place = (share) => Math.round(Math.min(1, Math.max(0, share || 0)) * (STEPS - 1));
// 0 … 1: from the paper to deep ink, in a dark page from the ground to light.
export const shade = (value) => table(RAMPS[theme()]).texts[place(value)];
// The same as [red, green, blue], for pixels.
export const shadeBytes = (value) => table(RAMPS[theme()]).rows[place(value)];
// −1 … 1: orange below, blue above, the paper at nothing.
export const diverging = (value) => table(OPPOSED[theme()]).texts[place((value + 1) / 2)];
export const divergingBytes = (value) => table(OPPOSED[theme()]).rows[place((value + 1) / 2)];

// Hues that are told apart, for lines and bars.
export function hue(index) {
  const hues = SERIES[theme()];
  return hues[index % hues.length];
}

// Black or white text, whichever is read better on this color; at 0.179 both are read equally well.
export function ink(background) {
  const [r, g, b] = bytes(background).map((part) => linear(part / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
}
