// The stage list of A: what each stage did, its switch, and its knobs as native sliders over the positions that have figures.

import { attribute, el, glyph, iconButton, knobValue, svg, write } from "./dom.js";
import { nearest } from "./read.js";

const SPARK = { width: 100, height: 14 };

export function makeStages(state) {
  const list = el("ol", { class: "stage-list" });
  const add = el("button", { type: "button", class: "add", onclick: () => state.send("add") }, glyph("plus"), "stage");
  const node = el("section", { class: "stages", "aria-label": "Stages of A" }, el("h2", { class: "part" }, "Stages of A"), list, add);
  let cards = [], shape = "";

  function receive(header) {
    // Sliders keep focus and the hand on them as long as the same stages with the same knobs are there.
    const now = JSON.stringify(header.stages.map((stage) => [stage.name, stage.knobs.map((knob) => knob.setting)]));
    if (now !== shape) {
      const focused = node.getRootNode().activeElement?.dataset?.focus;
      shape = now;
      cards = header.stages.map((stage, index) => makeCard(state, stage, index));
      list.replaceChildren(...cards.map((card) => card.node));
      if (focused) node.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    }
    cards.forEach((card, index) => card.receive(header, header.stages[index]));
  }

  function paint(header, figures) {
    cards.forEach((card, index) => card.paint(header, header.stages[index], figures));
  }

  return { node, receive, paint };
}

function makeCard(state, stage, index) {
  const tell = (kind, fields = {}) => () => state.send(kind, { stage: index, ...fields });
  const title = el("span", { class: "stage-title" });
  const note = el("span", { class: "stage-note" });
  const did = el("span", { class: "did" });
  const power = el("button", { type: "button", class: "switch", role: "switch", "data-focus": `switch:${index}`, onclick: tell("toggle") }, el("span", { class: "thumb" }));
  const up = iconButton("up", "Move up", tell("move", { by: -1 }), { "data-focus": `up:${index}` });
  const down = iconButton("down", "Move down", tell("move", { by: 1 }), { "data-focus": `down:${index}` });
  const remove = iconButton("remove", "Remove", tell("remove"), { "data-focus": `remove:${index}` });
  const drawer = iconButton("right", "Open", tell("drawer"), { class: "icon drawer", "data-focus": `drawer:${index}` });
  const tools = el("span", { class: "tools" }, up, down, remove);
  const knobs = stage.knobs.map((knob, place) => makeKnob(state, index, place));
  const node = el("li", { class: "stage", "data-stage": stage.name },
    el("div", { class: "stage-head" }, power, el("span", { class: "stage-words" }, title, note), tools, did, drawer), ...knobs.map((knob) => knob.node));

  function receive(header, now) {
    write(title, now.title);
    write(note, now.note);
    attribute(node, "title", now.meaning || null);
    attribute(power, "aria-checked", now.on);
    attribute(power, "aria-label", `${now.title} on`);
    power.hidden = !now.switchable;
    for (const [button, can, word] of [[up, now.up, "Move up"], [down, now.down, "Move down"], [remove, now.removable, "Remove"], [drawer, now.drawer, "Settings of"]]) {
      button.hidden = !can;
      attribute(button, "aria-label", `${word} ${now.title}`);
    }
    node.classList.toggle("off", !now.on);
    node.classList.toggle("simulated", now.simulated);
    knobs.forEach((knob, place) => knob.receive(header, now.knobs[place]));
  }

  function paint(header, now, figures) {
    write(did, now.did);
    did.classList.toggle("old", figures.moved);
    knobs.forEach((knob, place) => knob.paint(header, now.knobs[place]));
  }

  return { node, receive, paint };
}

function makeKnob(state, stage, place) {
  const name = el("span", { class: "knob-name" });
  const value = el("button", { type: "button", class: "knob-value", onclick: () => type() });
  const spark = svg("svg", { class: "spark", viewBox: `0 0 ${SPARK.width} ${SPARK.height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  const area = svg("path", { class: "spark-area" });
  const line = svg("path", { class: "spark-line" });
  spark.append(area, line);
  let knob = null, pointer = false;
  const input = el("input", {
    type: "range", min: 0, step: 1,
    onpointerdown: () => { pointer = true; },
    oninput: () => state.drags(stage, knob.setting, Number(input.value), pointer ? "pointer" : "keys"),
    onchange: () => { if (pointer) { pointer = false; state.letGo(); } },
    onpointercancel: () => { pointer = false; },
    onblur: () => { pointer = false; state.letGo(); },
  });
  const node = el("div", { class: "knob" }, name, value, el("span", { class: "track" }, spark, input));

  /** The number as a field, for a value that lies between the slider's positions. */
  function type() {
    const field = el("input", { type: "number", class: "knob-field", step: "any", value: knob.value, "aria-label": `${knob.title}, typed` });
    let open = true;
    const close = (take) => {
      if (!open) return;
      open = false;
      const number = field.value === "" ? NaN : Number(field.value);
      field.replaceWith(value);
      value.focus({ preventScroll: true });
      if (take && Number.isFinite(number) && number !== knob.value) state.types(stage, knob.setting, number);
    };
    field.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault(); // or the same Enter would press the button that comes back
      close(event.key === "Enter");
    });
    field.addEventListener("blur", () => close(false));
    value.replaceWith(field);
    field.focus({ preventScroll: true });
    field.select();
  }

  function receive(header, now) {
    knob = now;
    const positions = header.array(now.positions);
    write(name, now.title);
    attribute(node, "title", now.help || null);
    attribute(input, "max", positions.length - 1);
    attribute(input, "data-focus", `knob:${stage}:${now.setting}`);
    attribute(input, "data-setting", now.setting);
    attribute(input, "aria-label", now.title);
    node.classList.toggle("dear", !now.steps);
    const means = header.array(now.steps?.means);
    const path = means ? outline([...means.subarray(2 * positions.length, 3 * positions.length)]) : "";
    attribute(line, "d", path);
    attribute(area, "d", path && `${path}V${SPARK.height}H${path.slice(1).split(" ", 1)[0]}Z`);
  }

  function paint(header, now) {
    const held = state.drag && state.drag.stage === stage && state.drag.setting === now.setting;
    const positions = header.array(now.positions);
    const position = held && state.drag.position !== null ? state.drag.position : nearest(positions, held ? state.drag.value : now.value);
    if (Number(input.value) !== position) input.value = position;
    const text = knobValue(held ? state.drag.value : now.value, now.digits);
    write(value, text);
    attribute(input, "aria-valuetext", text);
    attribute(value, "aria-label", `${now.title} ${text}, type a value`);
    node.classList.toggle("held", Boolean(held));
    // Figures of the other knobs hold only while this one stands still.
    node.classList.toggle("stale", Boolean(state.drag && !held && state.drag.value !== undefined && state.host.classList.contains("moving")));
    input.style.setProperty("--at", positions.length > 1 ? position / (positions.length - 1) : 0);
  }

  return { node, receive, paint };
}

/** F₁ over the positions as an outline under the slider: where it pays to drag, seen before dragging. */
function outline(values) {
  const known = values.filter((value) => !Number.isNaN(value));
  const low = Math.min(...known), high = Math.max(...known);
  if (!(high > low)) return "";
  const x = (i) => ((i / (values.length - 1)) * SPARK.width).toFixed(2);
  const y = (value) => (SPARK.height - 1 - ((value - low) / (high - low)) * (SPARK.height - 2)).toFixed(2);
  return values.map((value, i) => (Number.isNaN(value) ? "" : [x(i), y(value)].join(" "))).filter(Boolean).map((at, i) => `${i ? "L" : "M"}${at}`).join("");
}
