// Zoom All: a row a question, a column a pipeline, worst change of A against B first.

import { attribute, change, count, el, measure, write } from "./dom.js";
import { makeWindow } from "./window.js";

const HEIGHT = 36;

export function makeMatrix(state) {
  const heads = el("div", { class: "matrix-heads" });
  const list = makeWindow({ height: HEIGHT, label: "Questions by pipelines", make: makeRow, fill });
  const empty = el("p", { class: "empty" }, "No question is in this group.");
  const node = el("div", { class: "matrix" }, heads, empty, list.node);
  let order = [], figures = null, at = 0;

  function receive(header) {
    node.hidden = header.zoom !== "all";
    if (node.hidden) return;
    const [a, b, c] = header.pipelines.map((pipe) => header.array(pipe.f));
    const delta = (index) => (a && b ? a[index] - b[index] : a ? a[index] : NaN);
    const group = (value) => (Number.isNaN(value) ? "" : value > 1e-9 ? "better" : value < -1e-9 ? "worse" : "same");
    order = header.questions.map((_, index) => index).filter((index) => !header.filter || group(delta(index)) === header.filter);
    // what C makes worse stands as high as what A does
    const worst = (index) => (b && c && !(c[index] - b[index] >= delta(index)) ? c[index] - b[index] : delta(index));
    const sortable = (index) => (Number.isNaN(worst(index)) ? Infinity : worst(index));
    const tally = (pipe, place) => {
      if (place !== 2 || !b) return null;
      const groups = header.questions.map((_, index) => group(c[index] - b[index]));
      const counted = (word) => groups.filter((one) => one === word).length;
      return el("span", { class: "pipe-tally", title: `${counted("better")} better and ${counted("worse")} worse than B` }, ` ▲${counted("better")} ▼${counted("worse")}`);
    };
    order.sort((one, other) => sortable(one) - sortable(other) || one - other);
    node.style.setProperty("--pipes", header.pipelines.length);
    node.classList.toggle("three", header.pipelines.length > 2);
    heads.replaceChildren(el("span", { class: "question-head" }, `${order.length} question${order.length === 1 ? "" : "s"}, worst change first`),
      ...header.pipelines.map((pipe, place) => el("span", { class: "pipe-head", title: pipe.name }, el("b", {}, pipe.key), tally(pipe, place), ` ${pipe.name}`)), el("span", { class: "delta-head" }, b ? "F₁ of A against B" : ""));
    at = Math.min(at, Math.max(0, order.length - 1));
    empty.hidden = order.length > 0;
  }

  function paint(header, now) {
    if (node.hidden) return;
    figures = now;
    list.resize(order.length);
  }

  function makeRow() {
    const text = el("span", { class: "question-text" }), tags = el("span", { class: "tags" });
    const pipes = [0, 1, 2].map(() => {
      const f = el("span", { class: "cell-f" }), more = el("span", { class: "cell-more" });
      const against = el("span", { class: "delta" });
      return { f, more, against, node: el("span", { class: "pipe", role: "gridcell" }, f, el("i", { class: "cell-bar" }), against, more) };
    });
    const bar = el("span", { class: "bar-delta" }, el("i", {})), delta = el("span", { class: "delta" });
    const row = { text, tags, pipes, bar, delta, index: -1, node: null };
    row.node = el("div", { class: "question", role: "row", tabindex: -1, onclick: () => open(row.index), onfocus: () => { at = row.index; },
      onkeydown: (event) => { if (event.key === "Enter") open(row.index); } },
      el("span", { class: "question-cell", role: "gridcell" }, text, tags), ...pipes.map((pipe) => pipe.node), el("span", { class: "change", role: "gridcell" }, bar, delta));
    return row;
  }

  function fill(row, index) {
    const { header } = state;
    const which = order[index], question = header.questions[which];
    attribute(row.node, "tabindex", index === at ? 0 : -1);
    attribute(row.node, "data-id", question.id);
    attribute(row.node, "aria-selected", question.id === header.question?.id);
    write(row.text, question.text);
    attribute(row.text, "title", `${question.text}\n${question.id}`);
    write(row.tags, question.tags.join(", "));
    const f = header.pipelines.map((pipe) => header.array(pipe.f)?.[which] ?? NaN);
    if (figures.moved) f[0] = figures.f(which) ?? NaN;
    row.pipes.forEach((pipe, place) => {
      const of = header.pipelines[place];
      pipe.node.hidden = !of;
      if (!of) return;
      const read = (reference) => header.array(reference)?.[which] ?? NaN;
      const moved = place === 0 && figures.moved;
      write(pipe.f, measure(f[place]));
      write(pipe.more, moved ? "" : `P ${measure(read(of.precision))}  R ${measure(read(of.recall))}  ${count(read(of.count))} kept`);
      const against = place === 2 ? change(f[2], f[1]) : { way: "", text: "" };
      write(pipe.against, against.text);
      attribute(pipe.against, "data-way", against.way);
      pipe.node.style.setProperty("--f", Number.isNaN(f[place]) ? 0 : f[place]);
    });
    const moved = f.length > 1 ? change(f[0], f[1]) : { way: "", text: "" };
    write(row.delta, moved.text);
    attribute(row.delta, "data-way", moved.way);
    const far = f.length > 1 && !Number.isNaN(f[0] - f[1]) ? f[0] - f[1] : 0;
    attribute(row.bar, "data-way", far < 0 ? "down" : "up");
    row.bar.style.setProperty("--far", Math.abs(far));
  }

  function open(index) {
    if (order[index] !== undefined) state.send("question", { id: state.header.questions[order[index]].id, zoom: "one" });
  }

  function step(by) {
    if (!order.length) return;
    const within = list.node.contains(node.getRootNode().activeElement);
    at = Math.max(0, Math.min(order.length - 1, at + (within ? by : 0)));
    list.focus(at);
  }

  return { node, receive, paint, step };
}
