// The chunks of the question in sight: A's list, lines between equal chunks, B's list.

import { attribute, count, digits, el, knobValue, labelMark, svg, write } from "./dom.js";
import { knobOf } from "./read.js";
import { makeWindow } from "./window.js";

const HEIGHT = 46, GUTTER = 44;
const GRADES = ["irrelevant", "related", "relevant", "answers it"];

export function makeRows(state) {
  const headA = sideHead("A"), headB = sideHead("B");
  const lines = svg("svg", { class: "ranks", width: GUTTER, "aria-hidden": "true" });
  const list = makeWindow({ height: HEIGHT, label: "Chunks of A beside those of B", make: makeRow, fill, scrolled: connect });
  const empty = el("p", { class: "empty", hidden: true });
  list.inside.append(lines);
  const node = el("div", { class: "rows", style: `--gutter: ${GUTTER}px` }, el("div", { class: "heads" }, headA.node, el("span", {}), headB.node), empty, list.node);
  let left = [], right = [], place = new Map(), figures = null, dragged = "", paths = [];

  /** Which rows are in sight: all, those that A and B decide differently, or the relevant ones, kept and lost. */
  function shown(header, row) {
    if (header.lens === "differences") return (row.a?.kept ?? false) !== (row.b?.kept ?? false);
    if (header.lens === "losses") return row.relevant === true;
    return true;
  }

  function receive(header) {
    node.hidden = header.zoom !== "one";
    const rows = header.rows.filter((row) => shown(header, row));
    left = rows.filter((row) => row.a).sort((one, other) => one.a.place - other.a.place);
    left.push(...rows.filter((row) => !row.a));
    right = rows.filter((row) => row.b).sort((one, other) => one.b.place - other.b.place);
    place = new Map(right.map((row, index) => [row.id, index]));
    node.classList.toggle("alone", !header.pipelines[1]);
    // B's list in A's order says only what B decides: the title beside it is the same
    node.classList.toggle("aligned", right.length === left.length && right.every((row, index) => row === left[index]));
    state.row = Math.min(state.row, Math.max(0, left.length - 1));
    empty.hidden = left.length > 0;
    write(empty, { differences: "A and B decide alike on every chunk of this question.", losses: "No chunk of this list is known to be relevant." }[header.lens] ?? "No candidates.");
  }

  function paint(header, now) {
    if (node.hidden) return;
    figures = now;
    const knob = state.drag && knobOf(header, state.drag.stage, state.drag.setting)?.knob;
    dragged = knob ? `${knob.title} ${knobValue(state.drag.value, knob.digits)}` : "";
    const [a, b] = header.pipelines;
    // not the rows: a chunk that a stage would bring has none before the knob is let go
    write(headA.name, `${a.name}, keeps ${now.moved && now.one ? count(now.one[3]) : a.kept}`);
    write(headB.name, b ? `${b.name}${b.kept ? `, keeps ${b.kept}` : ""}` : "");
    list.resize(Math.max(left.length, right.length));
    connect();
  }

  function makeRow() {
    const a = makeSide(), b = makeSide();
    const grades = GRADES.map((word, grade) => el("button", { type: "button", class: "grade", tabindex: -1, "aria-label": `${grade}: ${word}`, title: `${grade}: ${word} (key ${grade})`,
      onclick: (event) => { event.stopPropagation(); label(grade, row.index); } }, String(grade)));
    a.node.append(el("div", { class: "grades", role: "group", "aria-label": "label" }, ...grades));
    const row = { a, b, grades, index: -1, node: null };
    row.node = el("div", { class: "row", role: "row", tabindex: -1, onclick: () => choose(row.index), onfocus: () => { state.row = row.index; mark(); },
      onmouseenter: () => point(row.index), onmouseleave: () => point(-1), onkeydown: (event) => { if (event.key === "Enter" && event.target === row.node) choose(row.index); } }, a.node, b.node);
    return row;
  }

  function fill(row, index) {
    const { header } = state;
    const one = left[index], other = right[index];
    attribute(row.node, "tabindex", index === state.row ? 0 : -1);
    attribute(row.node, "data-id", one?.id ?? null);
    attribute(row.node, "aria-selected", Boolean(one) && one.id === header.selected);
    fillSide(row.a, one, one?.a, one ? figures.kept(one) : null, header);
    fillSide(row.b, other, other?.b, other?.b?.kept ?? null, header);
    row.b.node.classList.toggle("missing", !other);
    const waiting = one && state.labels.get(one.id);
    const grade = waiting ? waiting.grade : one?.grade;
    row.grades.forEach((button, value) => {
      attribute(button, "aria-pressed", grade === value);
      button.hidden = !one;
    });
  }

  function fillSide(side, row, at, kept, header) {
    side.node.classList.toggle("missing", !row);
    if (!row) return;
    const moved = at && kept !== at.kept;
    attribute(side.node, "data-kept", at ? String(kept) : "none");
    attribute(side.node, "data-label", row.relevant === null ? "unjudged" : row.relevant ? "relevant" : "irrelevant");
    write(side.rank, at?.rank ? String(at.rank) : "–");
    write(side.head, row.head);
    write(side.rest, row.rest);
    attribute(side.words, "title", `${row.rest ? `${row.rest} ` : ""}${row.head}\n${row.id}`);
    write(side.score, !at || at.score === null ? "" : knobValue(at.score, 4));
    write(side.verdict, !at ? "no candidate" : moved ? (kept ? "kept" : "dropped") : at.verdict);
    const reason = !at ? "" : moved ? `at ${dragged}` : at.reason;
    write(side.reason, reason);
    attribute(side.why, "title", reason || null);
  }

  /** Lines between equal chunks, for what is in sight. */
  function connect() {
    if (!figures || !state.header.pipelines[1]) return;
    const [first, stop] = list.range();
    const y = (at) => (at + 0.5) * HEIGHT;
    let used = 0;
    left.forEach((row, index) => {
      const other = place.get(row.id);
      if (other === undefined || Math.max(index, other) < first || Math.min(index, other) >= stop) return;
      const path = (paths[used++] ??= lines.appendChild(svg("path")));
      attribute(path, "class", `rank ${figures.kept(row) ? "kept" : "dropped"}-${row.b.kept ? "kept" : "dropped"}`);
      attribute(path, "d", `M0 ${y(index)}C${GUTTER / 2} ${y(index)} ${GUTTER / 2} ${y(other)} ${GUTTER} ${y(other)}`);
    });
    while (paths.length > used) paths.pop().remove();
    attribute(lines, "height", Math.max(left.length, right.length) * HEIGHT);
  }

  function mark() {
    for (const row of list.inside.querySelectorAll(".row")) attribute(row, "tabindex", Number(row.getAttribute("aria-rowindex")) - 1 === state.row ? 0 : -1);
  }

  /** The row under the pointer is the dot that lights up in the chart. */
  function point(index) {
    state.pointed = left[index]?.id ?? "";
    state.paint();
  }

  /** Bring a chunk into sight, as a click on its dot does. */
  function show(id) {
    const index = left.findIndex((row) => row.id === id);
    if (index < 0) return;
    state.row = index;
    list.focus(index);
  }

  function choose(index) {
    if (left[index]) state.send("select", { id: left[index].id });
  }

  /** A grade for the row in focus: shown at once, figures follow with Python's answer. */
  function label(grade, index = state.row) {
    const row = left[index];
    if (!row) return;
    state.row = index;
    state.labels.set(row.id, { grade, sequence: state.send("label", { id: row.id, grade, pressed_at: Date.now() }) });
  }

  function step(by) {
    if (!left.length) return;
    const within = list.node.contains(node.getRootNode().activeElement);
    state.row = Math.max(0, Math.min(left.length - 1, state.row + (within ? by : 0)));
    list.focus(state.row);
  }

  return { node, receive, paint, step, label, show };
}

function sideHead(key) {
  const name = el("span", {});
  return { name, node: el("div", { class: "side-head" }, el("b", {}, key), " ", name) };
}

function makeSide() {
  const side = { rank: el("span", { class: "rank-number" }), head: el("span", { class: "head" }), rest: el("span", { class: "rest" }), score: el("span", { class: "score" }), verdict: el("span", { class: "verdict" }), reason: el("span", { class: "reason" }) };
  side.words = el("div", { class: "title" }, side.head, side.rest);
  side.why = el("div", { class: "why" }, side.score, side.verdict, side.reason);
  const marker = svg("svg", { class: "marker", viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true" }, svg("circle", { cx: 8, cy: 8, r: 5.5 }));
  side.node = el("div", { class: "side", role: "gridcell" }, side.rank, el("span", { class: "marks" }, marker, labelMark()), el("div", { class: "words" }, side.words, side.why));
  return side;
}
