// A list of which only the rows in sight exist: rows of one height, nodes used again while it scrolls.

import { attribute, el } from "./dom.js";

/** `make()` gives a row's {node, ...}, `fill(row, index)` writes item `index` into it. */
export function makeWindow({ height, label, make, fill, scrolled = () => {} }) {
  const inside = el("div", { class: "inside", role: "rowgroup" });
  const node = el("div", { class: "window", role: "grid", "aria-label": label }, inside);
  let count = 0, rows = [], frame = 0;
  node.addEventListener("scroll", () => { frame ||= requestAnimationFrame(() => { frame = 0; refresh(); scrolled(); }); });

  const range = () => {
    const first = Math.max(0, Math.floor(node.scrollTop / height) - 2);
    return [first, Math.min(count, Math.ceil((node.scrollTop + (node.clientHeight || 600)) / height) + 2)];
  };

  function refresh() {
    const [first, stop] = range();
    while (rows.length < stop - first) {
      const row = make();
      row.node.classList.add("item");
      inside.append(row.node);
      rows.push(row);
    }
    rows.forEach((row, place) => {
      // an item keeps its node while it stays in sight, so that focus stays with it
      const index = first + ((place - (first % rows.length) + rows.length) % rows.length);
      const seen = index < stop;
      row.node.hidden = !seen;
      row.index = seen ? index : -1;
      if (!seen) return;
      row.node.style.transform = `translateY(${index * height}px)`;
      attribute(row.node, "aria-rowindex", index + 1);
      fill(row, index);
    });
  }

  return {
    node, inside, range, refresh,
    resize(now) {
      count = now;
      inside.style.height = `${count * height}px`;
      attribute(node, "aria-rowcount", count);
      refresh();
    },
    /** Bring an item into sight and give it the focus. */
    focus(index) {
      const top = index * height;
      if (top < node.scrollTop) node.scrollTop = top;
      else if (top + height > node.scrollTop + node.clientHeight) node.scrollTop = top + height - node.clientHeight;
      refresh();
      rows.find((row) => row.index === index)?.node.focus({ preventScroll: true });
    },
  };
}
