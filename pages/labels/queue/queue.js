// The component: one state per mounted element, made once, given the server's data at every run.

const STATES = new WeakMap();

function start(host) {
  const state = freshState(host);
  build(state);
  state.listener = (event) => onKey(state, event);
  document.addEventListener("keydown", state.listener);
  state.clock = setInterval(() => state.data && paintAlarm(state, (selector) => host.querySelector(selector)), 1000);
  for (const entry of state.log) if (entry.kind === "label") state.handled.add(entry.pair);
  if (state.log.length) state.unsavedSince = Date.now();
  return state;
}

/** Another person or eval set: what was put off and the way back belong to the one before. */
function settleOwner(state) {
  if (state.whose === state.data.whose) return;
  state.whose = state.data.whose;
  const tab = recallTab(state.whose);
  Object.assign(state, { later: tab.later, history: tab.history, current: null, back: null, drawn: null });
  state.handled = new Set(state.log.filter((entry) => entry.kind === "label").map((entry) => entry.pair));
}

export default function (component) {
  const { parentElement, data, setStateValue } = component;
  const host = parentElement.querySelector(".label-queue");
  if (!STATES.has(host)) STATES.set(host, start(host));
  const state = STATES.get(host);
  state.setStateValue = setStateValue;
  state.data = data;
  settleOwner(state);
  if (state.guidelines !== data.guidelines) {
    state.guidelines = data.guidelines;
    host.querySelector(".guidelines .content").replaceChildren(readable(data.guidelines));
  }
  answered(state);
  state.current = data.items.find((item) => item.id === state.current?.id) ?? state.current;
  advance(state);
  if (!shown(state)) state.drawn = null;
  paint(state);
  send(state);
  return () => {
    document.removeEventListener("keydown", state.listener);
    clearInterval(state.clock);
    clearTimeout(state.timer);
    STATES.delete(host);
  };
}
