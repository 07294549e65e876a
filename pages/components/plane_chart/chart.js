// The component: state, pointer, keyboard, and the conversation with the server.
// All that moves with the marker is computed here from data sent once; the server hears of it on release.

const STATES = new WeakMap();
const QUIET = 350; // ms of silence after the last arrow key before the server is told

/** A small picture and its word. */
function keyOf(drawn, word) {
  const key = tag("span", "key");
  const svg = make("svg", { width: 26, height: 14, viewBox: "-13 -7 26 14", "aria-hidden": "true" });
  svg.append(drawn);
  key.append(svg, tag("span", "", word));
  return key;
}

function lineKey(kind, word) {
  return keyOf(make("line", { class: kind, x1: -13, x2: 13, y1: 0, y2: 0 }), word);
}

function legend(data) {
  const list = tag("div", "legend");
  list.append(
    lineKey("path fixed", "fixed k"), lineKey("path best-of-plane", "best settings of the plane"),
    keyOf(sign("baseline", false), data.front.baselineName), keyOf(sign("chosen", false), "chosen setting"),
    keyOf(sign("now", false), "marker (drag, click, arrow keys)"),
  );
  if (data.front.signs.some((one) => one.heldOut)) list.append(keyOf(sign("chosen", true), "hollow: held-out queries, 95 % interval"));
  list.append(lineKey("line SetF", "SetF"), lineKey("line SetP", "SetP, precision"), lineKey("line SetR", "SetR, recall"));
  list.append(tag("span", "", "outlined: best cells"));
  return list;
}

/** The parts that stand still: built anew only for new data or another width. */
function build(state) {
  const { host, data } = state;
  const width = Math.max(280, Math.floor(host.clientWidth || 900));
  const two = width >= 760;
  const left = two ? Math.floor((width - 20) * 0.53) : width;
  const third = two ? Math.floor((width - 40) * 0.3) : width;
  const { svg, box } = planePanel(data, left);
  state.lists = prepare(data.lists, data.settings);
  state.change = new Float64Array(data.lists.length);
  Object.assign(state, { box, plane: svg, grip: markerOn(data, box) });
  svg.append(state.grip.group);
  state.front = frontPanel(data, two ? width - 20 - left : width, Number(svg.getAttribute("height")));
  state.byGap = curvePanel(third, data.gaps, data.gapTitle);
  state.byOffset = curvePanel(third, data.offsets, data.offsetTitle);
  state.strip = stripPanel(data, data.lists.map((list) => list.id), two ? width - 40 - 2 * third : width);
  state.status = tag("div", "summary");
  state.status.setAttribute("role", "status");
  const rows = [tag("div", "row"), tag("div", "row")];
  rows[0].append(svg, state.front.svg);
  rows[1].append(state.byGap.svg, state.byOffset.svg, state.strip.svg);
  host.replaceChildren(rows[0], legend(data), state.status, rows[1]);
}

/** Change all that follows the marker; nothing is built and nothing is measured here. */
function paint(state) {
  const { data, marker } = state;
  state.grip.move(marker);
  const [row, column] = [nearest(data.gaps, marker.gap), nearest(data.offsets, marker.offset)];
  const along = (pick) => ({ SetP: pick(data.means.SetP), SetR: pick(data.means.SetR), SetF: pick(data.means.SetF) });
  state.byGap.move(marker.gap, `by gap threshold, offset ${data.offsets[column].toFixed(4)}`, column, () => along((table) => table.map((one) => one[column])));
  state.byOffset.move(marker.offset, `by offset, gap threshold ${data.gaps[row].toFixed(4)}`, row, () => along((table) => table[row]));
  const now = measured(state);
  state.front.move(now);
  state.status.textContent = `marker: gap threshold ${marker.gap.toFixed(4)}, offset ${marker.offset.toFixed(4)}: SetP ${now.SetP.toFixed(3)}, SetR ${now.SetR.toFixed(3)}, SetF ${now.SetF.toFixed(3)}, ${now.kept.toFixed(1)} kept on average (macro over ${state.lists.length} dev queries)`;
  state.strip.move(state.change);
}

/** Paint once per frame however many events ask for it. */
function schedule(state) {
  state.waiting ??= requestAnimationFrame(() => { state.waiting = null; paint(state); });
}

/** Move the marker, held within the plane, to four digits. */
function move(state, gap, offset) {
  const { data } = state;
  const held = (value, high) => Number(Math.min(Math.max(value, 0), high).toFixed(4));
  state.marker = { gap: held(gap, data.gaps.at(-1)), offset: held(offset, data.offsets.at(-1)) };
  schedule(state);
}

function moveTo(state, event) {
  const { box, data, frame } = state;
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
    state.frame = state.plane.getBoundingClientRect(); // once: asking during the drag would force a layout each move
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
  const state = { host, drag: null, timer: null, waiting: null, width: 0 };
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
