// A list of which only the rows in sight exist: rows of one height, nodes used again while it scrolls.

import { attribute, el } from "./dom.js";

/** `make()` gives a row's {node, ...}, `fill(row, index)` writes item `index` into it. */
export function makeWindow({ height, label, make, fill, scrolled = () => {} }) {
  const inside = el("div", { class: "inside", role: "rowgroup" });
  const node = el("div", { class: "window", role: "grid", "aria-label": label }, inside);
  let count = -1, rows = [], frame = 0;
  // Kept, not asked: asking in the middle of a paint makes the browser lay everything out once more.
  let top = 0, room = 600;
  node.addEventListener("scroll", () => { top = node.scrollTop; frame ||= requestAnimationFrame(() => { frame = 0; refresh(); scrolled(); }); });
  new ResizeObserver(() => { room = node.clientHeight || room; top = node.scrollTop; refresh(); scrolled(); }).observe(node);

  const range = () => [Math.max(0, Math.floor(top / height) - 2), Math.min(Math.max(0, count), Math.ceil((top + room) / height) + 2)];

  function refresh() {
    const [first, stop] = range();
    while (rows.length < stop - first) {
      const row = make();
      row.node.classList.add("item");
      row.index = undefined;
      inside.append(row.node);
      rows.push(row);
    }
    rows.forEach((row, place) => {
      // an item keeps its node while it stays in sight, so that focus stays with it
      const index = first + ((place - (first % rows.length) + rows.length) % rows.length);
      const seen = index < stop;
      const now = seen ? index : -1;
      if (row.index !== now) {
        row.index = now;
        row.node.hidden = !seen;
        row.node.style.transform = `translateY(${index * height}px)`;
        attribute(row.node, "aria-rowindex", index + 1);
      }
      if (!seen) return;
      fill(row, index);
    });
  }

  return {
    node, inside, range, refresh,
    resize(now) {
      if (now !== count) {
        count = now;
        inside.style.height = `${count * height}px`;
        attribute(node, "aria-rowcount", count);
        top = Math.min(top, Math.max(0, count * height - room));
      }
      refresh();
    },
    /** Bring an item into sight and give it the focus. */
    focus(index) {
      if (index * height < top) node.scrollTop = index * height;
      else if ((index + 1) * height > top + room) node.scrollTop = (index + 1) * height - room;
      top = node.scrollTop;
      refresh();
      rows.find((row) => row.index === index)?.node.focus({ preventScroll: true });
    },
  };
}
