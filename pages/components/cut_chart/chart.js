// The component: state, pointer and keyboard, and the conversation with the server.
// A drag is previewed here with cut.js at pointer speed; the server hears of it once, on release.

const STATES = new WeakMap();
const WAIT_FOR_KEYS = 350; // ms of silence after the last arrow key before the server is told

/** Shapes and words of the markers. */
function legend() {
  const list = tag("div", "legend");
  for (const [kind, word] of [["kept", "kept"], ["dropped", "dropped"], ["relevant", "relevant"], ["irrelevant", "irrelevant"], ["unjudged", "unjudged"]]) {
    const item = tag("span", "key");
    const svg = make("svg", { width: 16, height: 16, "aria-hidden": "true" });
    if (kind === "kept" || kind === "dropped") {
      const group = make("g", { class: `point ${kind}` });
      group.append(make("circle", { class: "marker", cx: 8, cy: 8, r: 5.5 }));
      svg.append(group);
    } else svg.append(labelGlyph(kind, 8, 8, 10));
    item.append(svg, tag("span", "", word));
    list.append(item);
  }
  return list;
}

/** Draw everything anew, keeping keyboard focus where it was. */
function paint(state) {
  const { host, data, local } = state;
  const view = makeView(data, local);
  state.view = view;
  const focused = host.getRootNode().activeElement?.dataset?.focus;
  const width = Math.max(280, Math.floor(host.clientWidth || 900));
  const two = data.gapPanel && width >= 680;
  const half = two ? Math.floor((width - 16) / 2) : width;
  const charts = tag("div", two ? "charts two" : "charts");
  charts.append(distancePanel(data.gapPanel ? half : width, view));
  if (data.gapPanel) charts.append(gapPanel(half, view));
  const status = tag("div", "summary", summary(view));
  status.setAttribute("role", "status");
  state.tip = tag("div", "tip");
  state.tip.hidden = true;
  host.replaceChildren(legend(), charts, status, state.tip);
  if (focused) host.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

/** Paint once per frame however many events ask for it. */
function schedule(state) {
  state.frame ??= requestAnimationFrame(() => {
    state.frame = null;
    paint(state);
  });
}

/** The setting's value for a limit dragged to a height: clamped to 0, on the setting's own scale and step. */
function valueAt(state, name, pixel) {
  const { view } = state;
  const range = name === "gap_threshold" ? [0, view.gapRange] : view.scoreRange;
  const inDistance = scale(range[0], range[1], HEIGHT - MARGIN.bottom, MARGIN.top).invert(pixel);
  const first = view.reaching.length ? view.reaching[0].score : 0;
  const looked = view.reaching.slice(0, view.settings.max_results);
  const span = looked.length ? looked[looked.length - 1].score - first : 0;
  const distance = name === "gap_threshold" ? inDistance : inDistance - first;
  const fraction = name === "relative_offset" || (name === "gap_threshold" && view.settings.gap_policy === "relative");
  return stepped(fraction ? distance / (span || 1) : distance, view.step[name]);
}

/** A value on its step, never below 0. */
function stepped(value, step) {
  return Math.max(0, Number((Math.round(value / step) * step).toFixed(6)));
}

/** Tell the server the previewed settings; the preview stays until its answer comes. */
function commit(state) {
  clearTimeout(state.timer);
  state.timer = null;
  if (Object.keys(state.local).length === 0) return;
  state.sent = true;
  state.setTriggerValue("limits", state.local);
}

/** Move a limit by keyboard; the server is told when the keys rest. */
function nudge(state, name, key, large) {
  const step = state.view.step[name] * (large ? 10 : 1);
  const now = state.view.settings[name];
  const moves = { ArrowUp: step, ArrowRight: step, ArrowDown: -step, ArrowLeft: -step, PageUp: step * 10, PageDown: -step * 10, Home: -now };
  if (!(key in moves)) return false;
  state.local = { ...state.local, [name]: stepped(now + moves[key], state.view.step[name]) };
  paint(state);
  clearTimeout(state.timer);
  state.timer = setTimeout(() => commit(state), WAIT_FOR_KEYS);
  return true;
}

/** Move focus along the chunks. */
function walk(state, element, key) {
  const marks = [...state.host.querySelectorAll("g.point[data-id]")];
  const at = marks.indexOf(element);
  const next = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: marks.length - 1 }[key];
  if (next === undefined) return false;
  const target = marks[Math.min(Math.max(next, 0), marks.length - 1)];
  for (const mark of marks) mark.setAttribute("tabindex", mark === target ? "0" : "-1");
  target.focus();
  return true;
}

/** Show the tooltip of a chunk beside its marker. */
function tell(state, element) {
  const point = state.data.points.find((p) => p.id === element.dataset.id);
  const [rank, title, ...rest] = tooltipLines(point, state.view);
  state.tip.replaceChildren(tag("strong", "", `${rank}  ${title}`), ...rest.map((line) => tag("div", "", line)));
  state.tip.hidden = false;
  const marker = element.querySelector(".marker").getBoundingClientRect();
  const box = state.host.getBoundingClientRect();
  // Distances rise to the right, so the room beside and below a marker is free of other markers.
  const chart = element.closest("svg").getBoundingClientRect();
  const onTheLeft = marker.left < chart.left + chart.width / 2;
  const left = onTheLeft ? marker.right + 14 : marker.left - state.tip.offsetWidth - 14;
  const room = Math.max(0, box.width - state.tip.offsetWidth);
  state.tip.style.left = `${Math.min(Math.max(left - box.left, 0), room)}px`;
  state.tip.style.top = `${marker.top - box.top + (onTheLeft ? 0 : 22)}px`;
}

/** Pointer: hover tells, click selects, a grip drags. */
function listenToPointer(state) {
  const { host } = state;
  const nearest = (event, selector) => event.target.closest?.(selector);
  host.onpointerdown = (event) => {
    const limit = nearest(event, "g.limit");
    if (!limit || event.button !== 0) return;
    event.preventDefault();
    limit.focus({ preventScroll: true });
    state.drag = { name: limit.dataset.limit, top: limit.closest("svg").getBoundingClientRect().top, moved: false };
    host.setPointerCapture(event.pointerId);
    host.classList.add("dragging");
  };
  host.onpointermove = (event) => {
    if (!state.drag) return;
    const pixel = Math.min(Math.max(event.clientY - state.drag.top, MARGIN.top), HEIGHT - MARGIN.bottom);
    state.drag.moved = true;
    state.local = { ...state.local, [state.drag.name]: valueAt(state, state.drag.name, pixel) };
    schedule(state);
  };
  host.onpointerup = host.onpointercancel = () => {
    if (!state.drag) return;
    const { moved } = state.drag;
    state.drag = null;
    host.classList.remove("dragging");
    if (moved) commit(state);
  };
  host.onclick = (event) => {
    const mark = nearest(event, "g.point[data-id]");
    if (mark) state.setTriggerValue("selected", mark.dataset.id);
  };
  host.onpointerover = (event) => {
    const mark = nearest(event, "g.point[data-id]");
    if (mark && !state.drag) tell(state, mark);
    else state.tip.hidden = true;
  };
  host.onpointerleave = () => { state.tip.hidden = true; };
}

/** Keyboard: arrows move along chunks or move a limit, Enter selects. */
function listenToKeys(state) {
  const { host } = state;
  host.onkeydown = (event) => {
    const limit = event.target.closest?.("g.limit");
    const mark = event.target.closest?.("g.point[data-id]");
    let done = false;
    if (limit) done = nudge(state, limit.dataset.limit, event.key, event.shiftKey);
    else if (mark && (event.key === "Enter" || event.key === " ")) {
      state.setTriggerValue("selected", mark.dataset.id);
      done = true;
    } else if (mark) done = walk(state, mark, event.key);
    if (event.key === "Escape") state.tip.hidden = true;
    if (done) { event.preventDefault(); event.stopPropagation(); }
  };
  host.addEventListener("focusin", (event) => {
    const mark = event.target.closest?.("g.point[data-id]");
    if (mark) tell(state, mark);
  });
  host.addEventListener("focusout", () => { state.tip.hidden = true; });
}

/** A new instance: listeners and a watcher of the width, once. */
function start(host) {
  const state = { host, local: {}, drag: null, timer: null, frame: null, width: 0 };
  listenToPointer(state);
  listenToKeys(state);
  state.observer = new ResizeObserver(() => {
    if (state.width !== host.clientWidth && !state.drag) { state.width = host.clientWidth; schedule(state); }
  });
  state.observer.observe(host);
  return state;
}

export default function (component) {
  const { parentElement, data: [data], setTriggerValue } = component;
  const host = parentElement.querySelector(".cut-chart");
  if (!STATES.has(host)) STATES.set(host, start(host));
  const state = STATES.get(host);
  state.setTriggerValue = setTriggerValue;
  state.data = data;
  if (!state.drag && !state.timer) { state.local = {}; state.sent = false; }
  state.width = host.clientWidth;
  paint(state);
  return () => {
    clearTimeout(state.timer);
    state.observer.disconnect();
    STATES.delete(host);
  };
}
