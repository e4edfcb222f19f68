// A small note beside what is looked at; spoken to those who listen.
import { el } from "../../dom.js";

export function tip(root) {
  const node = el("output", { class: "figure-tip", "aria-live": "polite" });
  node.hidden = true;
  root.append(node);
  return {
    node,
    show(box, text) {
      const frame = root.getBoundingClientRect();
      node.textContent = text;
      node.hidden = false;
      const room = frame.width - node.offsetWidth;
      const left = box.left + box.width / 2 - frame.left - node.offsetWidth / 2;
      node.style.left = `${Math.max(0, Math.min(room, left))}px`;
      node.style.top = `${box.top - frame.top - node.offsetHeight - 6}px`;
    },
    hide() {
      node.hidden = true;
    },
  };
}
