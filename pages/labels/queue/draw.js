// What is seen: the query, the chunk, the grades, the progress. The frame is built once, so that focus stays.

const GRADE_WORDS = { 0: "irrelevant", 1: "related", 2: "relevant", 3: "answers it", u: "unsure" };
const ACTIONS = [["y", "as proposed"], ["s", "later"], ["z", "undo"], ["b", "back"], ["n", "note"], ["?", "keys"]];
const SHEET = [
  ["0 1 2 3", "irrelevant · related · relevant · answers it"],
  ["u", "unsure: counts as unjudged"],
  ["y", "yes: the grade that a model proposes, where one is shown"],
  ["s", "later: the chunk comes again at the end"],
  ["z", "undo: takes the last label back and shows its chunk"],
  ["b", "back: the chunk before, with what you said; Esc returns"],
  ["n", "note: typed now, kept with the grade you give next; Esc leaves the box"],
  ["?", "opens and closes this sheet"],
];

function press(key, word, action) {
  const button = made("button", "press");
  button.type = "button";
  button.dataset.key = key;
  button.append(made("kbd", "", key), made("span", "", word));
  button.onclick = action;
  return button;
}

/** The frame, once. */
function build(state) {
  const { host } = state;
  const top = made("div", "top");
  const bar = made("progress");
  bar.setAttribute("aria-label", "labelled of the pool");
  top.append(bar, made("div", "counts"), made("div", "settled"));
  const alarm = made("div", "alarm");
  alarm.setAttribute("role", "alert");
  const left = made("div", "left");
  const query = made("h2", "query");
  const card = made("div", "card");
  card.tabIndex = 0;
  card.setAttribute("role", "region");
  card.setAttribute("aria-label", "Chunk");
  left.append(made("div", "asks", "Is the chunk relevant to this question?"), query, made("div", "mine"), card, made("div", "origin"), made("div", "proposal"));
  host.replaceChildren(top, alarm, trayBox(state), left, side(state), live());
}

/** Labels that can never be stored as they are: how many, why, and what to do with them. */
function trayBox(state) {
  const box = made("div", "tray");
  box.setAttribute("role", "status");
  box.append(made("span", "words"));
  for (const [word, action] of [["Send again", sendTray], ["Save as file", saveTray], ["Discard", emptyTray]]) {
    const button = made("button", "press", word);
    button.type = "button";
    button.onclick = () => action(state);
    box.append(button);
  }
  return box;
}

function paintTray(state, find) {
  const box = find(".tray");
  box.hidden = !state.tray.length;
  const reasons = [...new Set(state.tray.map(({ why }) => why))].slice(0, 3).join("; ");
  box.querySelector(".words").textContent = `${state.tray.length} ${state.tray.length === 1 ? "label cannot be stored as it is" : "labels cannot be stored as they are"} (${reasons}). The others go on.`;
}

function live() {
  const said = made("div", "live");
  said.setAttribute("role", "status");
  return said;
}

function side(state) {
  const box = made("div", "side");
  const grades = made("div", "grades");
  grades.setAttribute("role", "group");
  grades.setAttribute("aria-label", "Grade");
  for (const key of ["0", "1", "2", "3", "u"]) grades.append(press(key, GRADE_WORDS[key], () => KEYS[key](state)));
  const actions = made("div", "actions");
  for (const [key, word] of ACTIONS) actions.append(press(key, word, () => KEYS[key](state)));
  box.append(grades, actions, noteBox(state), switches(state), sheet(), folded("Why this one next", "why"), folded("Guidelines", "guidelines"));
  return box;
}

function noteBox(state) {
  const area = made("textarea", "note");
  area.rows = 3;
  area.maxLength = 2000;
  area.setAttribute("aria-label", "Note, kept with the next grade");
  area.placeholder = "Note, kept with the grade you give next";
  area.oninput = () => { state.note = area.value; };
  area.onkeydown = (event) => {
    if (event.key === "Escape" || (event.key === "Enter" && !event.shiftKey)) {
      event.preventDefault();
      state.host.querySelector(".card").focus({ preventScroll: true });
    }
  };
  return area;
}

function toggle(text, className, checked, change) {
  const label = made("label", className);
  const box = made("input");
  box.type = "checkbox";
  box.checked = checked;
  box.onchange = () => change(box.checked);
  label.append(box, made("span", "", text));
  return label;
}

function switches(state) {
  const box = made("div", "switches");
  box.append(
    toggle("single-key shortcuts", "keys-on", state.shortcuts, (on) => { state.shortcuts = on; setShortcuts(on); paint(state); }),
    toggle("text as it stands", "as-is", state.plain, (on) => { state.plain = on; state.drawn = null; paint(state); }),
  );
  return box;
}

function sheet() {
  const list = made("dl", "sheet");
  for (const [keys, words] of SHEET) list.append(made("dt", "", keys), made("dd", "", words));
  return list;
}

function folded(title, name) {
  const box = made("details", name);
  box.append(made("summary", "", title), made("div", "content"));
  return box;
}

/** Bring the frame up to the state. */
function paint(state) {
  const find = (selector) => state.host.querySelector(selector);
  const item = shown(state);
  paintProgress(state, find);
  paintAlarm(state, find);
  paintTray(state, find);
  if (state.drawn !== (item?.id ?? "")) {
    state.drawn = item?.id ?? "";
    find(".query").textContent = item ? item.query : "";
    find(".card").replaceChildren(...(item ? chunkOf(item, state.plain) : [emptyOf(state)]));
    find(".card").scrollTop = 0;
  }
  find(".origin").textContent = item?.origin ?? "";
  const proposed = item && state.back === null && item.proposed !== null;
  find(".proposal").textContent = proposed ? `${item.proposer} proposes: ${item.proposed} ${GRADE_WORDS[item.proposed]} (y to say so too)` : "";
  find(".actions [data-key=y]").hidden = !proposed;
  find(".why .content").textContent = item?.why ?? "";
  find(".left").dataset.pair = item?.id ?? "";
  find(".asks").hidden = find(".query").hidden = !item;
  find(".mine").textContent = state.back === null ? "" : `You said: ${GRADE_WORDS[standing(state) ?? "u"]}. A grade changes it, Esc goes on.`;
  for (const button of state.host.querySelectorAll(".grades button")) {
    button.disabled = !item;
    const mine = state.back !== null && String(standing(state) ?? "u") === button.dataset.key;
    button.setAttribute("aria-pressed", String(mine));
  }
  const area = find("textarea");
  area.hidden = !state.noteOpen;
  if (area.value !== state.note) area.value = state.note;
  find(".sheet").hidden = !state.keysOpen;
  state.host.classList.toggle("no-keys", !state.shortcuts);
  find(".live").textContent = state.told;
}

function chunkOf(item, plain) {
  const first = item.text.trimStart().split("\n", 1)[0].replace(/^#+\s*/, "").trim();
  const parts = item.title && item.title !== first ? [made("div", "title", item.title)] : []; // a heading of the text says it
  if (item.others.length) parts.push(made("div", "many", `Your label also counts for ${item.others.length} more with this content.`));
  parts.push(item.text ? readable(item.text, plain) : made("div", "many", "This list was recorded without the chunk’s text."));
  return parts;
}

function emptyOf(state) {
  const { total, done } = state.data;
  const open = total - done - state.log.length;
  return made("div", "empty", open > 0 ? "Waiting for the server to send more …" : `Every one of the ${total} pairs is labelled.`);
}

function paintProgress(state, find) {
  const { total, done, coverage, settled } = state.data;
  const unsaved = state.log.length;
  const fresh = new Set(state.log.filter((entry) => entry.kind === "label").map((entry) => entry.pair)).size;
  const labelled = Math.min(total, done + fresh);
  find("progress").max = Math.max(1, total);
  find("progress").value = labelled;
  const parts = [`${labelled} of ${total} labelled`, ...coverage, timeLeft(state, total - labelled)];
  const counts = find(".counts");
  const saving = made("span", unsaved ? "unsaved some" : "unsaved", `${unsaved} unsaved`);
  counts.replaceChildren(made("span", "", parts.filter(Boolean).join(" · ")), saving);
  find(".settled").textContent = settled;
}

/** Minutes left at the pace of the last labels, '' before there is one. */
function timeLeft(state, open) {
  const last = state.presses.slice(-20);
  const gaps = last.slice(1).map((at, i) => at - last[i]).filter((gap) => gap < 120000).sort((a, b) => a - b);
  if (gaps.length < 3 || open <= 0) return "";
  const minutes = (gaps[Math.floor(gaps.length / 2)] * open) / 60000;
  return minutes < 1 ? "under a minute left" : `about ${Math.round(minutes)} min left`;
}

function paintAlarm(state, find) {
  const unsaved = state.log.length;
  const late = unsaved > 0 && Date.now() - state.unsavedSince > LOUD;
  const kept = state.stored ? "They are kept in this browser and sent again by themselves." : "This browser cannot keep them: leave this page open.";
  const words = state.data.problem
    ? `${unsaved} labels are NOT saved: ${state.data.problem}. ${kept}`
    : late ? `${unsaved} labels are NOT saved: the server does not answer. ${kept}` : "";
  const alarm = find(".alarm");
  if (alarm.textContent !== words) alarm.textContent = words;
  alarm.hidden = !words;
}
