// The list of views: where the reader is, and a way to each.

import { el } from "../dom.js";

const HELD = 1500;

export function contents(panels, { state, t }) {
  const links = new Map(panels.map((each) => [each.root, el("a", { href: `#view-${each.name}` })]));
  const label = el("p", { class: "label" });
  const list = el("ul", {}, [...links.values()].map((link) => el("li", {}, link)));
  const root = el("nav", { class: "contents" }, label, list);

  // The address keeps the reader's choices, so a link must not replace it.
  for (const each of panels) {
    links.get(each.root).addEventListener("click", (event) => {
      event.preventDefault();
      state.set({ view: each.name });
      go(each);
    });
  }

  function draw() {
    label.textContent = t("contents");
    root.setAttribute("aria-label", t("contents"));
    for (const each of panels) links.get(each.root).textContent = each.title();
  }
  draw();
  state.on("language", draw);
  follow(links, root);
  return root;
}

// To a view, for the eye and for the keyboard.
export function go(panel) {
  panel.arrive();
  panel.root.scrollIntoView();
  hold(panel.root);
  const title = panel.root.querySelector("h2");
  title.setAttribute("tabindex", "-1");
  title.focus({ preventScroll: true });
}

// Views above draw themselves as they come near and push this one away; stay with it until the reader moves.
function hold(root) {
  const observer = new ResizeObserver(() => root.scrollIntoView());
  const stop = () => observer.disconnect();
  observer.observe(root.parentNode);
  for (const moved of ["wheel", "touchstart", "pointerdown", "keydown"]) {
    addEventListener(moved, stop, { once: true, passive: true });
  }
  setTimeout(stop, HELD);
}

// Mark the view that is read now: the last that has come up to a third of the window.
function follow(links, root) {
  let current = null;
  let planned = false;
  function mark() {
    planned = false;
    const above = [...links.keys()].filter((panel) => panel.getBoundingClientRect().top < innerHeight / 3);
    const link = links.get(above.at(-1));
    if (link === current) return;
    current?.removeAttribute("aria-current");
    link?.setAttribute("aria-current", "true");
    current = link;
    const list = root.querySelector("ul");
    if (link && list.scrollWidth > list.clientWidth) list.scrollTo({ left: link.offsetLeft - list.clientWidth / 3 });
  }
  addEventListener("scroll", () => {
    if (!planned) requestAnimationFrame(mark);
    planned = true;
  }, { passive: true });
}
