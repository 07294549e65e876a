// The bar between figures and lists: zoom, lens, swap, and the switch of the single keys.

import { attribute, el, iconButton } from "./dom.js";

const LENSES = [["threshold", "Threshold"], ["differences", "Differences"], ["losses", "Losses"]];

export function makeBar(state) {
  const zoom = choices("Zoom", [["all", "All"], ["one", "One"]], (to) => state.send("zoom", { to }));
  const lens = choices("Lens", LENSES, (to) => state.send("lens", { to }));
  const swap = iconButton("swap", "Swap A and B (x)", () => state.send("swap"));
  const keys = el("button", { type: "button", class: "keys", role: "switch", onclick: () => state.switchKeys(),
    title: "Single keys while the Bench has focus: j k rows, 0 1 2 3 label, [ ] question, x swap" }, "keys");
  const node = el("div", { class: "bar" }, zoom.node, lens.node, el("span", { class: "space" }), swap, keys);

  function paint(header) {
    zoom.paint(header.zoom);
    lens.paint(header.lens);
    swap.hidden = header.pipelines.length < 2;
    attribute(keys, "aria-checked", state.keys);
  }
  return { node, paint };
}

/** One of a few: a row of buttons of which one is pressed. */
function choices(name, options, choose) {
  const buttons = options.map(([value, word]) => ({ value, button: el("button", { type: "button", onclick: () => choose(value) }, word) }));
  const node = el("div", { class: "choices", role: "group", "aria-label": name }, ...buttons.map((one) => one.button));
  return { node, paint: (now) => buttons.forEach(({ value, button }) => attribute(button, "aria-pressed", value === now)) };
}
