// Both lines: the figures of A over all questions and for the question in sight, each against B.

import { attribute, change, count, el, iconButton, measure, write } from "./dom.js";

const HEADS = [["Precision", "share of the kept chunks that are relevant"], ["Recall", "share of the relevant chunks that are kept"], ["F₁", "harmonic mean of both, per question"]];

export function makeLines(state) {
  const head = el("tr", {}, el("td", {}, "of the list that A keeps"), ...HEADS.map(([word, help]) => el("th", { scope: "col", title: `${word} of the kept list: ${help}` }, word)),
    el("th", { scope: "col", class: "kept-head", title: "chunks kept, in the mean" }, "kept"), el("th", { scope: "col", class: "counts-head" }, "against B"));
  const all = makeLine(state, "all"), one = makeLine(state, "one");
  const caption = el("caption", { class: "unseen" }, "Figures of A's kept list, with their change against B");
  const node = el("table", { class: "lines" }, caption, el("thead", {}, head), el("tbody", {}, all.node, one.node));

  function paint(header, figures) {
    all.paint(header.all, figures.all, figures.counts, figures, header);
    one.node.hidden = !header.one;
    if (header.one) one.paint(header.one, figures.one, null, figures, header);
  }
  return { node, paint };
}

function makeLine(state, which) {
  const name = el("span", { class: "line-name" }), note = el("span", { class: "line-note" });
  const previous = iconButton("left", "Previous question ([)", () => state.send("question", { id: state.header.question.previous, zoom: "" }));
  const next = iconButton("right", "Next question (])", () => state.send("question", { id: state.header.question.next, zoom: "" }));
  const turn = which === "one" ? [el("span", { class: "turn" }, previous, next)] : [];
  const cells = [0, 1, 2, 3].map((place) => {
    const value = el("span", { class: place === 3 ? "figure kept-figure" : "figure" }), delta = el("span", { class: "delta" });
    return { value, delta, node: el("td", { class: "cell" }, value, delta) };
  });
  const counts = ["better", "worse", "same"].map((word) => {
    const button = el("button", { type: "button", class: `tally ${word}`, onclick: () => state.send("filter", { to: state.header.filter === word ? "" : word }) });
    return { word, button };
  });
  const remark = el("span", { class: "remark" });
  const last = el("td", { class: "tallies" }, ...(which === "all" ? counts.map((one) => one.button) : []), remark);
  const node = el("tr", { class: `line ${which}` }, el("th", { scope: "row" }, el("span", { class: "line-head" }, ...turn, name, note)), ...cells.map((cell) => cell.node), last);

  function paint(line, values, tally, figures, header) {
    write(name, which === "one" && header.question ? header.question.text : line.label);
    attribute(name, "title", which === "one" && header.question ? header.question.text : null);
    // an own question and one that is held out have no number among those that are walked through
    write(note, which === "one" && header.question?.number ? `${header.question.number} of ${header.question.count}` : "");
    write(remark, line.note);
    attribute(remark, "title", line.note || null);
    const b = line.b && [line.b.precision, line.b.recall, line.b.f, line.b.kept];
    cells.forEach((cell, place) => {
      const written = place === 3 ? count : measure;
      write(cell.value, written(values[place]));
      const moved = b ? change(values[place], b[place], written) : { way: "", text: "" };
      write(cell.delta, moved.text);
      attribute(cell.delta, "data-way", place === 3 ? "" : moved.way);
      attribute(cell.node, "title", b ? `A ${written(values[place])}, B ${written(b[place])}` : null);
    });
    if (which === "one") {
      previous.disabled = !header.question?.previous;
      next.disabled = !header.question?.next;
      return;
    }
    counts.forEach(({ word, button }, place) => {
      button.hidden = !tally;
      if (!tally) return;
      write(button, `${{ better: "▲ ", worse: "▼ ", same: "= " }[word]}${tally[place]} ${word}`);
      attribute(button, "aria-pressed", header.filter === word);
    });
  }
  return { node, paint };
}
