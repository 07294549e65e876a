// The entry: state by parent element, one paint a frame, events to Python, keys.
// Streamlit calls the default export after every answer with the same parent; the DOM is built at the first call only.

import { el } from "./dom.js";
import { decode, figuresAt, knobOf, nearest } from "./read.js";
import { makeStages } from "./stages.js";
import { makeLines } from "./lines.js";
import { makeBar } from "./bar.js";
import { makeRows } from "./rows.js";
import { makeMatrix } from "./matrix.js";
import { makeBeside } from "./beside.js";

const STATES = new WeakMap();
const REST = 250; // ms without an arrow key after which a knob counts as let go
const CHANGES = new Set(["set", "toggle", "move", "remove", "label", "swap", "question", "zoom", "lens"]);
const KEYS = "winnow.bench-keys";

export default function bench({ parentElement, data, setTriggerValue }) {
  let state = STATES.get(parentElement);
  try {
    if (!state) {
      state = build(parentElement.querySelector(".bench"));
      STATES.set(parentElement, state);
    }
    state.trigger = setTriggerValue;
    receive(state, decode(data));
  } catch (error) {
    // Streamlit would show a stack trace in place of the whole component.
    console.error(error);
    const host = parentElement.querySelector(".bench");
    STATES.delete(parentElement);
    host?.replaceChildren(el("p", { class: "problem", role: "alert" }, `The Bench cannot be drawn: ${error.message}. Reload the page.`));
  }
  return () => {
    STATES.get(parentElement)?.stop();
    STATES.delete(parentElement);
  };
}

/** The state with its DOM, empty still. */
function build(host) {
  const session = [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const state = {
    host, session, sequence: 0, waiting: [], header: null, drag: null, touched: null, frame: 0, timer: 0, again: 0,
    keys: localStorage.getItem(KEYS) !== "off", row: 0, pointed: "", labels: new Map(),
    send: (kind, fields) => send(state, kind, fields),
    drags: (stage, setting, position, how) => dragged(state, stage, setting, position, how),
    letGo: () => commit(state),
    types: (stage, setting, value) => typed(state, stage, setting, value),
    paint: () => schedule(state),
    switchKeys: () => { state.keys = !state.keys; localStorage.setItem(KEYS, state.keys ? "on" : "off"); schedule(state); },
  };
  state.parts = { stages: makeStages(state), lines: makeLines(state), bar: makeBar(state), rows: makeRows(state), matrix: makeMatrix(state), beside: makeBeside(state) };
  const { stages, lines, bar, rows, matrix, beside } = state.parts;
  const lists = el("div", { class: "lists" }, rows.node, matrix.node);
  state.notice = el("p", { class: "notice", role: "status" });
  const body = el("div", { class: "body" }, lists, beside.node);
  host.replaceChildren(el("div", { class: "layout" }, stages.node, el("div", { class: "right" }, lines.node, bar.node, state.notice, body)));
  // Streamlit fades an element whole while its script runs; here only what is not true any more grows pale (bench.css).
  host.getRootNode().host?.closest("[data-testid=stElementContainer]")?.style.setProperty("opacity", "1", "important");
  const resized = () => { fit(state); schedule(state); };
  const size = new ResizeObserver(resized);
  size.observe(host);
  window.addEventListener("resize", resized);
  host.addEventListener("keydown", (event) => pressed(state, event));
  state.stop = () => { size.disconnect(); window.removeEventListener("resize", resized); cancelAnimationFrame(state.frame); clearTimeout(state.timer); clearTimeout(state.again); };
  return state;
}

/** A new answer of Python. What is being dragged stays in the hand; what Python has taken in is no longer waiting. */
function receive(state, header) {
  const ack = header.acks[state.session] ?? 0;
  state.waiting = state.waiting.filter((event) => event.sequence > ack);
  clearTimeout(state.again);
  if (state.waiting.length) state.again = setTimeout(() => tell(state), 500);
  const elsewhere = state.header?.question?.id !== header.question?.id;
  state.header = header;
  if (elsewhere) state.row = 0;
  for (const [id, sequence] of state.labels) if (elsewhere || sequence.sequence <= ack) state.labels.delete(id);
  if (state.drag) {
    const { stage, setting, value, sent } = state.drag;
    const at = knobOf(header, stage, setting);
    if (!at || (sent && sent <= ack)) state.drag = null;
    else if (!sent) state.drag.position = nearest(header.array(at.knob.positions), value);
  }
  if (!state.touched || !knobOf(header, state.touched.stage, state.touched.setting)) state.touched = firstKnob(header);
  for (const part of Object.values(state.parts)) part.receive?.(header);
  fit(state);
  paint(state);
  state.host.dataset.version = header.version;
}

/** The knob that a chart shows before one was touched: the first dashed line's, else the last stage's first. */
function firstKnob(header) {
  const line = header.curve?.lines[0];
  if (line && knobOf(header, line.stage, line.setting)) return { stage: line.stage, setting: line.setting };
  for (let stage = header.stages.length - 1; stage >= 0; stage--) {
    const knob = header.stages[stage].knobs[0];
    if (knob) return { stage, setting: knob.setting };
  }
  return null;
}

/** An event, sent with all that Python has not taken in yet: Streamlit drops a trigger when the next comes too soon. */
function send(state, kind, fields = {}) {
  const event = { kind, sequence: ++state.sequence, version: state.header.version, ...fields };
  // of one knob only the newest value counts
  state.waiting = state.waiting.filter((one) => !(kind === "set" && one.kind === "set" && one.stage === event.stage && one.setting === event.setting));
  state.waiting.push(event);
  tell(state);
  setTimeout(() => schedule(state)); // after Streamlit has sent it: a frame drawn before would hold it back
  return event.sequence;
}

/** Everything Python has not taken in, now and, as a trigger can get lost between two runs, again until it has. */
function tell(state, patience = 4000) {
  state.trigger("did", { session: state.session, events: state.waiting });
  clearTimeout(state.again);
  state.again = setTimeout(() => { if (state.waiting.length) tell(state, patience * 2); }, patience);
}

/** A knob at another position: drawn in the next frame, not sent. */
function dragged(state, stage, setting, position, how = "pointer") {
  const { header } = state;
  const { knob } = knobOf(header, stage, setting);
  const other = state.drag && (state.drag.stage !== stage || state.drag.setting !== setting);
  if (other) commit(state);
  const held = !other && state.drag;
  const value = header.array(knob.positions)[position];
  state.drag = { stage, setting, position, value, grabbed: held ? state.drag.grabbed : false };
  state.touched = { stage, setting };
  const lacks = !knob.steps || (header.zoom === "all" && !knob.steps.per_question);
  if (lacks && !state.drag.grabbed) {
    state.drag.grabbed = true;
    send(state, "grab", { stage, setting });
  }
  clearTimeout(state.timer);
  if (how === "keys") state.timer = setTimeout(() => commit(state), REST);
  schedule(state);
}

/** A value between the positions, typed: nothing is known of it until Python has answered. */
function typed(state, stage, setting, value) {
  commit(state);
  state.drag = { stage, setting, value, position: null };
  state.touched = { stage, setting };
  commit(state);
  schedule(state);
}

/** The knob is let go: Python hears of it once. The hand's value stays on the screen until the answer is there. */
function commit(state) {
  clearTimeout(state.timer);
  const { drag, header } = state;
  if (!drag || drag.sent) return;
  const at = knobOf(header, drag.stage, drag.setting);
  if (!at || drag.value === at.knob.value) { state.drag = null; schedule(state); return; }
  drag.sent = state.sequence + 1;
  send(state, "set", { stage: drag.stage, setting: drag.setting, value: drag.value });
}

/** Paint in the next frame, once, however many events ask for it. */
function schedule(state) {
  state.frame ||= requestAnimationFrame(() => { state.frame = 0; paint(state); });
}

function paint(state) {
  const { header, host, drag } = state;
  if (!header) return;
  const figures = figuresAt(header, drag);
  const waits = state.waiting.some((event) => CHANGES.has(event.kind));
  host.classList.toggle("waiting", waits);
  host.classList.toggle("moving", figures.moved);
  host.classList.toggle("unknown", !figures.known);
  host.classList.toggle("zoom-all", header.zoom === "all");
  host.setAttribute("aria-busy", String(waits));
  state.notice.textContent = header.notice;
  state.notice.hidden = !header.notice;
  for (const part of Object.values(state.parts)) part.paint?.(header, figures);
}

/** The lists end where the window does, less what the page has under the component. */
function fit(state) {
  if (!state.header) return;
  let top = state.host.querySelector(".body").getBoundingClientRect().top;
  // Where it stands when nothing is scrolled: the page scrolls in a part of its own, and lists that grew with it would run away.
  for (let node = state.host; node; node = node.parentElement ?? node.getRootNode().host) top += node.scrollTop;
  const room = window.innerHeight - Math.min(top, window.innerHeight / 2) - state.header.below;
  state.host.style.setProperty("--room", `${Math.max(300, Math.floor(room))}px`);
}

/** Single keys: only with focus in the component, never while text is typed, never with a modifier, and they can be off. */
function pressed(state, event) {
  const target = event.composedPath()[0];
  const slider = target.matches?.("input[type=range]");
  const typing = target.matches?.("textarea, select, [contenteditable], input:not([type=range])");
  if (typing || !state.keys || event.ctrlKey || event.metaKey || event.altKey || !state.header) return;
  const { header, parts } = state;
  const list = header.zoom === "all" ? parts.matrix : parts.rows;
  const steps = { j: 1, k: -1, ...(slider ? {} : { ArrowDown: 1, ArrowUp: -1 }) };
  if (event.key in steps) list.step(steps[event.key]);
  else if (event.key === "[" && header.question?.previous) state.send("question", { id: header.question.previous, zoom: "" });
  else if (event.key === "]" && header.question?.next) state.send("question", { id: header.question.next, zoom: "" });
  else if (event.key === "x" && header.pipelines.length > 1) state.send("swap");
  else if (/^[0-3]$/.test(event.key) && header.zoom === "one") parts.rows.label(Number(event.key));
  else return;
  event.preventDefault();
}
