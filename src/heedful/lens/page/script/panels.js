// A panel for each view: heading, one sentence, the buttons, and a place that the view draws into when it comes near.
import { bytes } from "./arrays.js";
import { clear, el, set, svg } from "./dom.js";
import { section, translator } from "./i18n.js";

const AHEAD = "500px 0px";

// A view's word, in the variant that fits this document and what is chosen, where there is one.
function varied(view, { doc, state, t }) {
  return (key) => {
    const special = `${key}.${view.variant?.(doc, state)}`;
    return t(t.has(special) ? special : key);
  };
}

function headed(view, root, { state, t }, message) {
  const title = el("h2", { id: `title-${view.name}` });
  const sentence = el("p", { class: "sentence" });
  const saves = downloadable(root, `heedful-${view.name}`);
  function draw() {
    title.textContent = message("title");
    sentence.textContent = t.has(state.get("level")) ? message(state.get("level")) : "";
    [...saves.children].forEach((button, index) => {
      const name = t(index ? "savePng" : "saveSvg", { title: message("title") });
      set(button, { "aria-label": name, title: name });
    });
  }
  draw();
  state.on(["language", "level", "attention"], draw);
  return el("div", { class: "panel-head" }, el("div", {}, title, sentence), saves);
}

// The state as a view sees it: while the view is far away, what it should hear waits.
function patient(state) {
  const waiting = new Set();
  let near = true;
  return {
    state: {
      ...state,
      on: (keys, callback) => state.on(keys, () => (near ? callback() : waiting.add(callback))),
    },
    come() {
      near = true;
      const now = [...waiting];
      waiting.clear();
      now.forEach((callback) => callback());
    },
    leave: () => (near = false),
  };
}

// A panel, with functions for its coming near and its leaving. The view is mounted when it first comes.
export function panel(view, shared) {
  const t = translator([section(shared.messages, view.name), section(shared.messages, "common")], shared.state);
  const { state, come, leave } = patient(shared.state);
  const place = el("section", { class: "view", "data-view": view.name, "aria-labelledby": `title-${view.name}` });
  const message = varied(view, { ...shared, t });
  const head = headed(view, place, { ...shared, t }, message);
  const root = el("article", { class: "panel waiting", id: `view-${view.name}` }, head, place);
  let mounted = null;

  async function mount() {
    root.classList.remove("waiting");
    try {
      await view.mount(place, { ...shared, state, t });
    } catch (error) {
      console.error(error);
      clear(place).append(el("p", { class: "failure" }, t("failed", { reason: error.message })));
    }
  }

  function arrive() {
    come();
    return (mounted ??= mount());
  }
  return { name: view.name, root, title: () => message("title"), arrive, leave };
}

// Let each panel arrive as it comes near; all at once where a browser cannot tell, and before printing.
export function arriveWhenNear(panels, signal) {
  const byRoot = new Map(panels.map((each) => [each.root, each]));
  const all = () => Promise.all(panels.map((each) => each.arrive()));
  addEventListener("beforeprint", all, { signal });
  if (!panels.length || !("IntersectionObserver" in window)) return all();
  return new Promise((resolve) => {
    const observer = new IntersectionObserver((entries) => {
      const [near, far] = [true, false].map((seen) => entries.filter((entry) => entry.isIntersecting === seen));
      far.forEach((entry) => byRoot.get(entry.target).leave());
      resolve(Promise.all(near.map((entry) => byRoot.get(entry.target).arrive())));
    }, { rootMargin: AHEAD });
    panels.forEach((each) => observer.observe(each.root));
    signal.addEventListener("abort", () => observer.disconnect());
  });
}

// Any view as a picture: an SVG that needs no style sheet, or a PNG at twice the size.
const INHERITED = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin",
  "stroke-opacity", "font-family", "font-size", "font-weight", "font-style", "letter-spacing", "text-anchor",
  "font-variant-numeric", "image-rendering", "visibility",
];
const OWN = { opacity: "1", "dominant-baseline": "auto" };
const MEANT_FOR_HANDS = /^(class|style|tabindex|role|cursor|pointer-events|data-.*|aria-(?!label$).*)$/;
const LARGEST = 8192; // larger canvases are refused

const area = ({ width, height }) => width * height;

// The view's main drawing: the largest that is seen.
function drawingOf(section) {
  const drawings = [...section.querySelectorAll("svg:not(svg svg)")];
  return drawings.sort((a, b) => area(b.getBoundingClientRect()) - area(a.getBoundingClientRect()))[0];
}

// Style sheets and variables stay behind: whatever a node does not inherit is written out, what is not seen left out.
function plain(original, node, inherited) {
  const computed = getComputedStyle(original);
  if (computed.display === "none") return node.remove();
  const looks = Object.fromEntries(INHERITED.map((name) => [name, computed.getPropertyValue(name)]));
  for (const { name } of [...node.attributes]) {
    if (name in looks || name in OWN || MEANT_FOR_HANDS.test(name)) node.removeAttribute(name);
  }
  for (const name of INHERITED) if (looks[name] !== inherited[name]) node.setAttribute(name, looks[name]);
  for (const [name, usual] of Object.entries(OWN)) if (computed[name] !== usual) node.setAttribute(name, computed[name]);
  const copies = [...node.children];
  [...original.children].forEach((child, place) => plain(child, copies[place], looks));
}

// The drawing as an SVG that stands alone, on the page's paper.
function standing(drawing) {
  const copy = drawing.cloneNode(true);
  plain(drawing, copy, {});
  const { x, y, width, height } = drawing.viewBox.baseVal;
  const paper = getComputedStyle(document.body).backgroundColor;
  copy.prepend(svg("rect", { x, y, width, height, fill: paper, stroke: "none" }));
  set(copy, { xmlns: "http://www.w3.org/2000/svg", width: Math.round(width), height: Math.round(height) });
  const blob = new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
  return { blob, width, height };
}

async function painted({ blob, width, height }) {
  const address = URL.createObjectURL(blob);
  const picture = el("img", { src: address });
  await picture.decode();
  const scale = Math.min(2, LARGEST / Math.max(width, height));
  const canvas = el("canvas", { width: Math.round(width * scale), height: Math.round(height * scale) });
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(address);
  // Not toBlob: it waits for an idle moment, often for seconds.
  return new Blob([bytes(canvas.toDataURL().split(",")[1])], { type: "image/png" });
}

function save(blob, name) {
  const address = URL.createObjectURL(blob);
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// The two buttons of a view; `name` is what its files are called.
function downloadable(section, name) {
  const button = (ending, encode) => el("button", {
    type: "button",
    onclick: async () => save(await encode(standing(drawingOf(section))), `${name}.${ending}`),
  }, ending.toUpperCase());
  return el("div", { class: "saves" }, button("svg", ({ blob }) => blob), button("png", painted));
}
