// The component: state, pointer, keyboard, and the conversation with the server.
// All that moves with the marker is computed here from data sent once; the server hears of it on release.

const STATES = new WeakMap();
const QUIET = 350; // ms of silence after the last arrow key before the server is told

function legend() {
  const list = tag("div", "legend");
  for (const [name, word] of [["SetF", "SetF"], ["SetP", "SetP, precision"], ["SetR", "SetR, recall"]]) {
    const key = tag("span", "key");
    const svg = make("svg", { width: 26, height: 10, "aria-hidden": "true" });
    svg.append(make("line", { class: `line ${name}`, x1: 0, x2: 26, y1: 5, y2: 5 }));
    key.append(svg, tag("span", "", word));
    list.append(key);
  }
  list.append(tag("span", "", "outlined: best cells · + chosen setting, exact, so it may lie between cells · ○ marker (drag, click, arrow keys)"));
  return list;
}

/** The parts that stand still: built anew only for new data or another width. */
function build(state) {
  const { host, data } = state;
  const width = Math.max(280, Math.floor(host.clientWidth || 900));
  const two = width >= 760;
  state.half = two ? Math.floor((width - 20) * 0.42) : width;
  state.wide = width;
  const { svg, box } = planePanel(data, two ? width - 20 - state.half : width);
  Object.assign(state, { box, plane: svg, grip: make("g"), curves: tag("div"), strip: tag("div") });
  svg.append(state.grip);
  state.status = tag("div", "summary");
  state.status.setAttribute("role", "status");
  const row = tag("div", "row");
  row.append(svg, state.curves);
  host.replaceChildren(row, legend(), state.status, state.strip);
}

/** Draw all that follows the marker. */
function paint(state) {
  const { data, marker } = state;
  const focused = state.host.getRootNode().activeElement?.dataset?.focus === "marker";
  state.grip.replaceChildren(markerOn(data, state.box, marker));
  const [row, column] = [nearest(data.gaps, marker.gap), nearest(data.offsets, marker.offset)];
  const along = (pick) => Object.fromEntries(["SetP", "SetR", "SetF"].map((name) => [name, pick(data.means[name])]));
  state.curves.replaceChildren(
    curvePanel(state.half, `by gap threshold, offset ${data.offsets[column].toFixed(4)}`, data.gaps, along((table) => table.map((one) => one[column])), marker.gap, data.gapTitle),
    curvePanel(state.half, `by offset, gap threshold ${data.gaps[row].toFixed(4)}`, data.offsets, along((table) => table[row]), marker.offset, data.offsetTitle),
  );
  const now = measured(data, marker);
  state.status.textContent = `marker: gap threshold ${marker.gap.toFixed(4)}, offset ${marker.offset.toFixed(4)}: SetP ${now.SetP.toFixed(3)}, SetR ${now.SetR.toFixed(3)}, SetF ${now.SetF.toFixed(3)}, ${now.kept.toFixed(1)} kept on average (macro over ${now.rows.length} dev queries)`;
  state.strip.replaceChildren(stripPanel(data, changes(data, now.rows), state.wide));
  if (focused) state.host.querySelector(".marker").focus({ preventScroll: true });
}

/** Paint once per frame however many events ask for it. */
function schedule(state) {
  state.frame ??= requestAnimationFrame(() => { state.frame = null; paint(state); });
}

/** Move the marker, held within the plane, to four digits. */
function move(state, gap, offset) {
  const { data } = state;
  const held = (value, high) => Number(Math.min(Math.max(value, 0), high).toFixed(4));
  state.marker = { gap: held(gap, data.gaps.at(-1)), offset: held(offset, data.offsets.at(-1)) };
  schedule(state);
}

function moveTo(state, event) {
  const { box, data } = state;
  const frame = state.plane.getBoundingClientRect();
  const cell = [box.width / data.offsets.length, box.height / data.gaps.length];
  const x = (event.clientX - frame.left - box.x - cell[0] / 2) / (box.width - cell[0]);
  const y = (box.y + box.height - cell[1] / 2 - (event.clientY - frame.top)) / (box.height - cell[1]);
  move(state, y * data.gaps.at(-1), x * data.offsets.at(-1));
}

/** Tell the server where the marker stands. */
function send(state) {
  clearTimeout(state.timer);
  state.timer = null;
  state.setTriggerValue("marker", state.marker);
}

function listen(state) {
  const { host } = state;
  host.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !event.target.closest?.(".area, .marker")) return;
    state.drag = event.pointerId;
    host.setPointerCapture(event.pointerId);
    host.classList.add("dragging");
    moveTo(state, event);
    event.preventDefault();
    host.querySelector(".marker")?.focus({ preventScroll: true });
  });
  host.addEventListener("pointermove", (event) => { if (state.drag === event.pointerId) moveTo(state, event); });
  const release = (event) => {
    if (state.drag !== event.pointerId) return;
    state.drag = null;
    host.classList.remove("dragging");
    send(state);
  };
  host.addEventListener("pointerup", release);
  host.addEventListener("pointercancel", release);
  host.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
    if (!step || !event.target.closest?.(".marker")) return;
    const size = event.shiftKey ? 5 : 1;
    const { data, marker } = state;
    move(state, marker.gap + step[0] * size * data.gaps[1], marker.offset + step[1] * size * data.offsets[1]);
    event.preventDefault();
    event.stopPropagation();
    clearTimeout(state.timer);
    state.timer = setTimeout(() => send(state), QUIET);
  });
}

function start(host) {
  const state = { host, drag: null, timer: null, frame: null, width: 0 };
  listen(state);
  state.observer = new ResizeObserver(() => {
    if (state.width === host.clientWidth || state.drag !== null || !state.data) return;
    state.width = host.clientWidth;
    build(state);
    paint(state);
  });
  state.observer.observe(host);
  return state;
}

export default function (component) {
  const { parentElement, data, setTriggerValue } = component;
  const host = parentElement.querySelector(".plane-chart");
  if (!STATES.has(host)) STATES.set(host, start(host));
  const state = STATES.get(host);
  const mark = JSON.stringify([data.key, data.chosen]);
  state.setTriggerValue = setTriggerValue;
  const fresh = state.mark !== mark || state.width !== host.clientWidth;
  Object.assign(state, { data, mark, width: host.clientWidth });
  if (state.drag === null && !state.timer) state.marker = { gap: data.marker[0], offset: data.marker[1] };
  if (fresh || !state.plane) build(state);
  paint(state);
  return () => {
    clearTimeout(state.timer);
    state.observer.disconnect();
    STATES.delete(host);
  };
}
