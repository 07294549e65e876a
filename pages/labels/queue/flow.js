// The queue's own course: which chunk is shown, what a press means, and the conversation with the server.
// A press counts for the chunk that is on the screen, at once; the server hears of it in batches, one at a time, and an
// entry is dropped only when the server says that it is on disk.

const RESEND = 2000; // ms without an answer after which the same entries are sent again, then twice as long each time
const PATIENT = 4; // times twice: a server that is late is not asked more for being late
const LOUD = 4000; // ms after which unsaved labels are said loudly

function freshState(host) {
  return {
    host, data: null, stream: newStream(), started: Date.now(), seq: 0, log: leftBehind(), tray: inTray(), handled: new Set(), later: [],
    history: [], current: null, back: null, note: "", noteOpen: false, keysOpen: false, plain: false, presses: [],
    waiting: false, attempt: 0, again: 0, unsavedSince: 0, shortcuts: shortcutsOn(), stored: true, whose: "", told: "",
  };
}

function shown(state) {
  return state.back === null ? state.current : state.history[state.back].item;
}

/** The grade given to the chunk that `back` shows, as it stands. */
function standing(state) {
  return state.back === null ? undefined : state.history[state.back].entry.grade;
}

/** Show the next chunk nobody has handled; the one on the screen stays until it is handled. */
function advance(state) {
  const late = new Set(state.later);
  const open = state.data.items.filter((item) => !state.handled.has(item.id));
  if (state.current && !state.handled.has(state.current.id) && !late.has(state.current.id)) return;
  state.current = open.find((item) => !late.has(item.id)) ?? open.find((item) => item.id !== state.current?.id) ?? open[0] ?? null;
}

function record(state, item, kind, changes) {
  const about = ["eval_set", "query_id", "query_hash", "chunk_id", "text_hash", "annotator", "others"];
  const entry = { session: state.stream, seq: state.seq++, started: state.started, pair: item.id, pressed: Date.now(), base: state.data.base, kind, grade: null, note: "", undoes: null };
  for (const name of about) entry[name] = item[name];
  Object.assign(entry, changes);
  state.stored = keepEntry(entry) && state.stored;
  state.log.push(entry);
  if (!state.unsavedSince) state.unsavedSince = Date.now();
  return entry;
}

/** A grade 0-3, or null for unsure. */
function give(state, grade) {
  const item = shown(state);
  if (!item) return;
  const entry = record(state, item, "label", { grade, note: state.note.trim() });
  state.history.push({ entry, item });
  if (state.history.length > HISTORY * 4) state.history.splice(0, HISTORY);
  state.handled.add(item.id);
  state.later = state.later.filter((id) => id !== item.id);
  state.presses.push(Date.now());
  Object.assign(state, { back: null, note: "", noteOpen: false, told: `${GRADE_WORDS[grade ?? "u"]}, said` });
  moved(state);
}

/** The grade that a model proposes, where the chunk shows one. */
function confirm(state) {
  if (state.back === null && state.current && state.current.proposed !== null) give(state, state.current.proposed);
}

/** Put the chunk off to the end; from a chunk that `back` shows, go on. */
function putOff(state) {
  if (state.back === null && state.current) {
    const { id } = state.current;
    state.later = [...state.later.filter((other) => other !== id), id];
  }
  Object.assign(state, { back: null, note: "", noteOpen: false, told: "put off" });
  moved(state);
}

/** Take back the last label of this tab and show its chunk again. */
function undo(state) {
  const last = state.history.pop();
  if (!last) return;
  record(state, last.item, "undo", { undoes: [last.entry.session, last.entry.seq] });
  const earlier = state.history.findLastIndex((one) => one.item.id === last.item.id);
  if (earlier < 0) {
    state.handled.delete(last.item.id);
    Object.assign(state, { back: null, current: last.item });
  } else state.back = earlier; // what was said of it before counts again
  Object.assign(state, { note: last.entry.note, noteOpen: Boolean(last.entry.note), told: "taken back" });
  moved(state);
}

function goBack(state) {
  const before = (state.back ?? state.history.length) - 1;
  if (before < 0) return;
  Object.assign(state, { back: before, note: state.history[before].entry.note, noteOpen: Boolean(state.history[before].entry.note) });
  paint(state);
}

function moved(state) {
  advance(state);
  rememberTab(state);
  paint(state);
  send(state);
}

/** One batch is under way at a time; what comes in between goes with the next. */
function send(state, again = false) {
  if (state.waiting && !again) return;
  if (!state.log.length && state.sentLater === state.later.join()) return;
  state.waiting = true;
  state.sentLater = state.later.join();
  clearTimeout(state.timer);
  state.again = again ? Math.min(state.again + 1, PATIENT) : 0;
  state.timer = setTimeout(() => send(state, true), RESEND * 2 ** state.again);
  state.attempt += 1;
  state.setStateValue("log", { entries: state.log.slice(0, MOST_AT_ONCE), later: state.later, attempt: state.attempt, stream: state.stream });
}

/** Entries that the server can never store leave the queue for the tray; their chunks may be labelled anew. */
function setAside(state) {
  for (const { session, seq, why } of state.data.unfit) {
    const at = state.log.findIndex((entry) => entry.session === session && entry.seq === seq);
    if (at < 0) continue;
    const [entry] = state.log.splice(at, 1);
    state.handled.delete(entry.pair);
    state.tray.push({ entry, why });
    layInTray({ entry, why });
  }
}

/** What is in the tray goes to the server once more, as after the right person logged in. */
function sendTray(state) {
  // under new numbers: later ones of their own streams are acknowledged, and these would count as saved with them
  const entries = state.tray.map(({ entry }) => ({ ...entry, session: state.stream, seq: state.seq++ }));
  emptyTray(state);
  entries.forEach(keepEntry);
  state.log.push(...entries);
  state.unsavedSince ||= Date.now();
  paint(state);
  send(state);
}

function saveTray(state) {
  const link = made("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(state.tray, null, 1)], { type: "application/json" }));
  link.download = "labels-not-stored.json";
  link.click();
  URL.revokeObjectURL(link.href);
}

function emptyTray(state) {
  clearTray(state.tray);
  state.tray = [];
  paint(state);
}

/** The server's answer: drop what is on disk, set aside what never will be, go on with the rest. */
function answered(state) {
  const { acks, attempt, answers } = state.data;
  setAside(state);
  const saved = (entry) => entry.seq <= (acks[entry.session] ?? -1);
  state.log.filter(saved).forEach(forgetEntry);
  state.log = state.log.filter((entry) => !saved(entry));
  if (!state.log.length) state.unsavedSince = 0;
  else if (state.saved !== state.log[0].seq) state.unsavedSince = Date.now();
  state.saved = state.log[0]?.seq;
  if (answers !== state.stream || attempt < state.attempt) return; // an answer to something earlier
  clearTimeout(state.timer);
  state.waiting = false;
  if (state.data.problem) state.timer = setTimeout(() => send(state, true), RESEND);
  else send(state);
}

const KEYS = {
  0: (state) => give(state, 0), 1: (state) => give(state, 1), 2: (state) => give(state, 2), 3: (state) => give(state, 3),
  u: (state) => give(state, null), y: confirm, s: putOff, z: undo, b: goBack,
  n: (state) => { state.noteOpen = true; paint(state); state.host.querySelector("textarea").focus(); },
  "?": (state) => { state.keysOpen = !state.keysOpen; paint(state); },
};

/** Whether a key belongs to something one types into. */
function typing(event) {
  const target = event.composedPath()[0];
  return target instanceof Element && (target.matches("input, textarea, select, [role=combobox], [role=textbox]") || target.isContentEditable);
}

function onKey(state, event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing || event.defaultPrevented) return;
  if (!state.shortcuts || typing(event) || document.querySelector("[role=dialog]:not([hidden])")) return;
  const action = KEYS[event.key.toLowerCase()];
  if (event.key === "Escape") Object.assign(state, { back: null, keysOpen: false }), paint(state);
  if (!action || !state.data) return;
  event.preventDefault();
  action(state);
}
