// What was said and is not on the server's disk yet: in memory, and in the browser's storage with a key for each entry.
// Every page load has a stream of its own, so two tabs never use one (session, seq); what a closed or reloaded tab left
// behind is sent by the next one. The server takes an entry twice without harm.

const PREFIX = "winnow.label.";
const TRAY = "winnow.label-tray.";
const SHORTCUTS = "winnow.label-shortcuts";
const TAB = "winnow.label-tab";
const MOST_AT_ONCE = 200;
const HISTORY = 30;

function newStream() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function quietly(action, otherwise) {
  try {
    return action();
  } catch {
    return otherwise; // storage is switched off or full: the entry is in memory, and the page says how many are unsaved
  }
}

function keyOf(entry) {
  return `${PREFIX}${entry.session}.${entry.seq}`;
}

function keepEntry(entry) {
  return quietly(() => { localStorage.setItem(keyOf(entry), JSON.stringify(entry)); return true; }, false);
}

function forgetEntry(entry) {
  quietly(() => localStorage.removeItem(keyOf(entry)));
}

/** Entries that earlier pages left unsaved, oldest stream first, each stream in its order. */
function leftBehind() {
  const found = quietly(() => Object.keys(localStorage).filter((key) => key.startsWith(PREFIX)), []);
  const entries = found.map((key) => quietly(() => JSON.parse(localStorage.getItem(key)), null)).filter(Boolean);
  return entries.sort((a, b) => a.started - b.started || (a.session < b.session ? -1 : a.session > b.session ? 1 : a.seq - b.seq));
}

/** The tray: entries that can never be stored as they are, with why; they wait here for a person. */
function layInTray(kept) {
  quietly(() => localStorage.setItem(`${TRAY}${kept.entry.session}.${kept.entry.seq}`, JSON.stringify(kept)));
  forgetEntry(kept.entry);
}

function inTray() {
  const found = quietly(() => Object.keys(localStorage).filter((key) => key.startsWith(TRAY)), []);
  return found.map((key) => quietly(() => JSON.parse(localStorage.getItem(key)), null)).filter((kept) => kept?.entry);
}

function clearTray(tray) {
  for (const { entry } of tray) quietly(() => localStorage.removeItem(`${TRAY}${entry.session}.${entry.seq}`));
}

function shortcutsOn() {
  return quietly(() => localStorage.getItem(SHORTCUTS) !== "off", true);
}

function setShortcuts(on) {
  quietly(() => localStorage.setItem(SHORTCUTS, on ? "on" : "off"));
}

/** What this tab put off and what it labelled last, for `back` and `undo` after a reload. */
function rememberTab(state) {
  const tab = { whose: state.whose, later: state.later, history: state.history.slice(-HISTORY) };
  quietly(() => sessionStorage.setItem(TAB, JSON.stringify(tab)));
}

function recallTab(whose) {
  const tab = quietly(() => JSON.parse(sessionStorage.getItem(TAB)), null);
  return tab && tab.whose === whose ? tab : { later: [], history: [] };
}
