// What stands beside the lists, by lens: the curve with its cut, what A and B decide differently, where chunks are lost.

import { attribute, count, el, knobValue, measure, scale, svg, write } from "./dom.js";
import { knobOf, nearest } from "./read.js";

const LEFT = 46, RIGHT = 14, TOP = 26, BOTTOM = 34;

export function makeBeside(state) {
  const node = el("aside", { class: "beside", "aria-label": "Chart" });
  let drawn = null; // {paint} of what is there
  let width = 0, room = 0;
  new ResizeObserver(() => {
    if (node.clientWidth === width && Math.abs(node.clientHeight - room) < 20) return;
    drawn = null;
    state.paint();
  }).observe(node);

  function draw(header) {
    width = node.clientWidth;
    room = node.clientHeight;
    const one = header.zoom === "one";
    if (header.lens === "threshold") drawn = one ? curve(state, header, width, room) : sweep(state, header, width);
    else if (header.lens === "differences") drawn = one ? quarters(header) : waterfall(header, width);
    else drawn = losses(state, header);
    node.replaceChildren(drawn.node);
  }

  return {
    node,
    receive(header) { if (!drawn?.receive?.(header)) drawn = null; },
    paint(header, figures) {
      const knob = state.touched && `${state.touched.stage}.${state.touched.setting}`;
      if (!drawn || (drawn.knob && drawn.knob !== knob)) draw(header);
      drawn.paint?.(figures);
    },
  };
}

/** Axes of a panel: frame, ticks with values, titles. */
function panel(width, height, title, xTitle, yTitle, y, ticks, written) {
  const box = svg("svg", { width, height, class: "panel", role: "group", "aria-label": title });
  box.append(svg("text", { class: "panel-title", x: 0, y: 13 }, title));
  for (const tick of ticks) {
    box.append(svg("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick) }));
    box.append(svg("text", { class: "tick", x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, written(tick)));
  }
  box.append(svg("text", { class: "axis", x: width - RIGHT, y: height - 4, "text-anchor": "end" }, xTitle));
  box.append(svg("text", { class: "axis", x: width - RIGHT, y: 13, "text-anchor": "end" }, yTitle));
  return box;
}

/** Round numbers between two ends, about so many. */
function ticksOf(low, high, wanted = 4) {
  const raw = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= raw - 1e-12);
  const ticks = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-6; at += step) ticks.push(Number(at.toPrecision(10)));
  return { ticks, written: (tick) => knobValue(tick, Math.max(0, Math.min(4, -Math.floor(Math.log10(step) + 1e-9) + (step / power === 2.5 ? 1 : 0)))) };
}

/** Zoom One, Threshold: distance by rank and the gaps, with dashed lines that are knobs. */
function curve(state, header, width, room) {
  let now = pointsOf(header);
  const { data, points, reaching, gaps, gapHigh } = now;
  if (!data || points.length === 0) return { node: el("p", { class: "empty" }, "This list has no scores to draw.") };
  const holder = el("div", { class: "curves" });
  const hasGaps = data.lines.some((line) => line.panel === "gap") || data.cut_stage !== null;
  const abreast = hasGaps && width > 600;
  const usable = abreast ? 240 : Math.max(260, Math.min(room || 420, 620) - 24);
  const heights = abreast ? [usable, usable] : hasGaps ? [Math.round(usable * 0.56), Math.round(usable * 0.43)] : [Math.min(usable, 380), 0];
  if (abreast) { width = Math.floor((width - 20) / 2); holder.classList.add("abreast"); }

  const lows = points.map((row) => row.a.score);
  const span = Math.max(...lows) - Math.min(...lows) || 1;
  const [low, high] = [Math.min(...lows) - span * 0.06, Math.max(...lows) + span * 0.08];
  const y = scale(low, high, heights[0] - BOTTOM, TOP);
  const last = Math.max(2, points.length);
  const x = scale(0, last - 1, LEFT + 10, width - RIGHT - 10);
  const one = ticksOf(low, high);
  const score = panel(width, heights[0], `${data.score_name} by rank`, "rank →", "", y, one.ticks, one.written);
  const every = Math.max(1, Math.ceil(points.length / 10));
  points.forEach((row, i) => { if (i % every === 0) score.append(svg("text", { class: "tick", x: x(i), y: heights[0] - BOTTOM + 15, "text-anchor": "middle" }, String(row.a.rank ?? i + 1))); });
  // where rows of the list are left out, the line breaks
  const joined = (i) => i > 0 && points[i].a.place === points[i - 1].a.place + 1;
  score.append(svg("path", { class: "trail", d: points.map((row, i) => `${joined(i) ? "L" : "M"}${x(i).toFixed(1)} ${y(row.a.score).toFixed(1)}`).join("") }));
  const radius = Math.max(2.4, Math.min(5.5, ((width - LEFT - RIGHT) / last) * 0.36));
  const marks = points.map((row, i) => {
    const label = row.relevant === null ? "unjudged" : row.relevant ? "relevant" : "irrelevant";
    const mark = svg("g", { class: `dot ${label}`, transform: `translate(${x(i)} ${y(row.a.score)})` },
      svg("title", {}, `rank ${row.a.rank ?? "–"}, ${data.score_name} ${knobValue(row.a.score, 4)}, ${label}\n${row.rest ? `${row.rest} ` : ""}${row.head}`), svg("circle", { class: "hit", r: Math.max(radius, 7) }), svg("circle", { class: "marker", r: radius }));
    if (label === "relevant") mark.append(svg("path", { class: "glyph relevant", d: "M-4 -11.5 -1.2 -8.8 4 -14.5", transform: last > 60 ? "translate(0 1.5) scale(.7)" : null }));
    mark.addEventListener("click", () => { state.parts.rows.show(row.id); state.send("select", { id: row.id }); });
    return mark;
  });
  const cut = svg("g", { class: "cut" }, svg("line", { y1: TOP - 4, y2: heights[0] - BOTTOM }), svg("text", { y: TOP + 20 }));
  score.append(cut, ...marks);

  const gapY = scale(0, gapHigh, heights[1] - BOTTOM, TOP);
  const bars = [];
  let gapBox = null;
  if (hasGaps) {
    const two = ticksOf(0, gapHigh, 3);
    gapBox = panel(width, heights[1], "gap to the next", "after rank →", "", gapY, two.ticks, two.written);
    const slot = Math.min(34, (width - LEFT - RIGHT - 8) / Math.max(1, gaps.length));
    const step = Math.max(1, Math.ceil(gaps.length / 10));
    gaps.forEach((gap, i) => {
      const bar = svg("rect", { class: i === 0 && data.skips_first_gap ? "gap skipped" : "gap", x: LEFT + 6 + i * slot + slot * 0.15, width: Math.max(1, slot * 0.7), y: Math.min(gapY(gap), gapY(0) - 1), height: Math.max(1, gapY(0) - gapY(gap)) });
      bar.append(svg("title", {}, `gap ${knobValue(gap, 4)} after rank ${reaching[i].a.rank ?? i + 1}${i === 0 && data.skips_first_gap ? ", never the cut" : ""}`));
      bars.push(bar);
      gapBox.append(bar);
      if (i % step === 0) gapBox.append(svg("text", { class: "tick", x: LEFT + 6 + (i + 0.5) * slot, y: heights[1] - BOTTOM + 15, "text-anchor": "middle" }, String(reaching[i].a.rank ?? i + 1)));
    });
    if (!gaps.length) gapBox.append(svg("text", { class: "axis", x: LEFT, y: heights[1] / 2 }, "fewer than two chunks come to the cut"));
  }
  const limits = data.lines.map((line) => {
    const [box, at, height] = line.panel === "gap" ? [gapBox, gapY, heights[1]] : [score, y, heights[0]];
    const limit = dashed(state, line, box, at, width, height);
    box?.append(limit.node);
    return limit;
  });
  holder.append(legend(), score, ...(gapBox ? [gapBox] : []));

  function paint(figures) {
    const { data, points, reaching } = now;
    let end = null;
    const rank = new Map(points.map((row, i) => [row, i]));
    points.forEach((row, i) => {
      attribute(marks[i], "data-kept", String(figures.kept(row)));
      marks[i].classList.toggle("lit", row.id === state.pointed || row.id === state.header.selected);
    });
    const dragsCut = state.drag && state.drag.stage === data.cut_stage;
    if (figures.moved && dragsCut) {
      const stays = reaching.filter((row) => figures.kept(row));
      if (stays.length && stays.length < reaching.length) end = stays[stays.length - 1];
    } else if (data.cut_after !== null && !figures.moved) end = state.header.rows[data.cut_after];
    const follows = end && reaching[reaching.indexOf(end) + 1];
    attribute(cut, "visibility", end && rank.has(end) ? null : "hidden");
    if (end && rank.has(end)) {
      const at = follows && rank.has(follows) ? (x(rank.get(end)) + x(rank.get(follows))) / 2 : x(rank.get(end)) + radius + 3;
      const [line, text] = cut.children;
      attribute(line, "x1", at); attribute(line, "x2", at);
      const flip = at > width * 0.55;
      attribute(text, "x", flip ? at - 5 : at + 5);
      attribute(text, "text-anchor", flip ? "end" : "start");
      write(text, figures.moved ? `cut after rank ${end.a.rank ?? "–"}` : data.cut_word);
    }
    const decided = data.lines.some((line) => line.panel === "gap" && line.decides);
    bars.forEach((bar, i) => {
      const ends = reaching[i] === end && reaching[i + 1] === follows;
      bar.classList.toggle("ends", ends);
      bar.classList.toggle("decides", ends && !figures.moved && decided);
    });
    limits.forEach((limit, i) => limit.paint(data.lines[i].decides));
  }

  /** Of the same points only what is kept and where the cut lies can be new: hundreds of marks stay as they are. */
  function receive(header) {
    const next = pointsOf(header);
    if (next.key !== now.key) return false;
    now = next;
    return true;
  }
  return { node: holder, paint, receive };
}

/** What the curve is drawn from; charts with the same key have the same marks at the same places. */
function pointsOf(header) {
  const { curve: data } = header;
  const points = header.rows.filter((row) => row.a && row.a.score !== null).sort((one, other) => one.a.place - other.a.place);
  if (!data) return { data, points };
  const reaching = data.reaching.map((index) => header.rows[index]);
  const gaps = reaching.slice(1).map((row, i) => Math.abs(row.a.score - reaching[i].a.score));
  const gapHigh = Math.max(...gaps, ...data.lines.filter((line) => line.panel === "gap").map((line) => lineValue(header, line)), 1e-9) * 1.15;
  const drawn = points.map(({ id, relevant, head, rest, a }) => [id, relevant, head, rest, a.score, a.rank, a.place]);
  const axes = data.lines.map(({ decides, ...line }) => line);
  const key = JSON.stringify([header.zoom, header.lens, data.score_name, data.cut_stage, data.reaching, data.skips_first_gap, axes, gapHigh, drawn]);
  return { data, points, reaching, gaps, gapHigh, key };
}

/** Where a line stands by the value its knob has now. */
function lineValue(header, line) {
  const at = knobOf(header, line.stage, line.setting);
  return line.base + line.scale * (at?.knob.value ?? 0);
}

/** A dashed line with its value on it; dragging it drags its knob. */
function dashed(state, line, box, y, width, height) {
  const rule = svg("line", { class: "dash", x1: LEFT, x2: width - RIGHT });
  const grip = svg("rect", { class: "grip", x: width - RIGHT - 9, width: 16, height: 10, rx: 5 });
  const text = svg("text", { class: "dash-text", x: width - RIGHT - 16, "text-anchor": "end" });
  const hit = svg("rect", { class: "hit", x: LEFT, width: width - LEFT - RIGHT + 8, height: 18 });
  const node = svg("g", { class: "limit", "data-line": line.setting }, hit, rule, grip, text);
  const move = (event) => {
    const at = knobOf(state.header, line.stage, line.setting);
    const value = (y.invert(event.clientY - box.getBoundingClientRect().top) - line.base) / line.scale;
    state.drags(line.stage, line.setting, nearest(state.header.array(at.knob.positions), value));
  };
  node.addEventListener("pointerdown", (event) => {
    if (!knobOf(state.header, line.stage, line.setting)) return;
    node.setPointerCapture(event.pointerId);
    event.preventDefault();
    state.heldLine = true;
  });
  node.addEventListener("pointermove", (event) => { if (node.hasPointerCapture(event.pointerId)) move(event); });
  node.addEventListener("pointerup", () => state.letGo());
  return {
    node,
    paint(decides) {
      node.classList.toggle("decides", decides);
      const at = knobOf(state.header, line.stage, line.setting);
      attribute(node, "visibility", at ? null : "hidden");
      if (!at) return;
      const held = state.drag && state.drag.stage === line.stage && state.drag.setting === line.setting;
      const value = held ? state.drag.value : at.knob.value;
      const raw = y(line.base + line.scale * value);
      const place = Math.max(TOP - 2, Math.min(height - BOTTOM, raw));
      attribute(rule, "y1", place); attribute(rule, "y2", place);
      attribute(grip, "y", place - 5); attribute(hit, "y", place - 9); attribute(text, "y", place - 5);
      const off = raw < TOP - 2 ? " ↑" : raw > height - BOTTOM ? " ↓" : "";
      write(text, `${line.word} ${knobValue(value, at.knob.digits)}${off}`);
    },
  };
}

function legend() {
  const item = (kept, word) => el("span", {}, svg("svg", { class: "marker", "data-kept": kept, viewBox: "0 0 16 16", width: 12, height: 12, "aria-hidden": "true" }, svg("circle", { cx: 8, cy: 8, r: 5.5 })), word);
  return el("p", { class: "legend" }, item("true", "kept"), item("false", "dropped"),
    el("span", {}, svg("svg", { class: "glyph relevant", viewBox: "0 0 16 16", width: 12, height: 12, "aria-hidden": "true" }, svg("path", { d: "M3.2 8.4 6.6 11.8 12.8 4.6" })), "relevant"));
}

/** Zoom All, Threshold: Precision, Recall and F₁ over all questions at every position of the knob last touched. */
function sweep(state, header, width) {
  const { touched } = state;
  const at = touched && knobOf(header, touched.stage, touched.setting);
  const key = touched ? `${touched.stage}.${touched.setting}` : "none";
  if (!at) return { knob: key, node: el("p", { class: "empty" }, "No stage of A has a knob.") };
  const positions = header.array(at.knob.positions), means = header.array(at.knob.steps?.means);
  if (!means) return { knob: key, node: el("p", { class: "empty" }, `${at.knob.title}: drag it, and its figures are computed.`) };
  const n = positions.length, height = 330;
  const y = scale(0, 1, height - BOTTOM, TOP + 6);
  const x = scale(0, Math.max(1, n - 1), LEFT + 6, width - RIGHT - 26);
  const box = panel(width, height, `All questions by ${at.knob.title}`, `${at.knob.title} →`, "", y, [0, 0.25, 0.5, 0.75, 1], (tick) => knobValue(tick, 2));
  for (let i = 0; i < n; i += Math.max(1, Math.ceil(n / 5))) box.append(svg("text", { class: "tick", x: x(i), y: height - BOTTOM + 15, "text-anchor": "middle" }, knobValue(positions[i], at.knob.digits)));
  const names = ["P", "R", "F₁"].map((word, line) => ({ word, line, y: y(means[line * n + n - 1] || 0) }));
  [...names].sort((one, other) => one.y - other.y).forEach((name, i, all) => { if (i && name.y - all[i - 1].y < 12) name.y = all[i - 1].y + 12; });
  for (const { word, line, y: end } of names) {
    const values = means.subarray(line * n, line * n + n);
    // a position that the pipeline refuses leaves a hole
    const path = [...values].map((value, i) => (Number.isNaN(value) ? "" : `${i && !Number.isNaN(values[i - 1]) ? "L" : "M"}${x(i).toFixed(1)} ${y(value).toFixed(1)}`)).join("");
    box.append(svg("path", { class: `mean m${line}`, d: path }), svg("text", { class: "mean-name", x: width - RIGHT - 22, y: end + 4 }, word));
  }
  const rule = svg("line", { class: "dash", y1: TOP, y2: height - BOTTOM }), text = svg("text", { class: "dash-text", y: TOP - 1 });
  const dots = [0, 1, 2].map((line) => svg("circle", { class: `mean-dot m${line}`, r: 4 }));
  const hit = svg("rect", { class: "hit wide", x: LEFT, y: TOP, width: Math.max(1, width - LEFT - RIGHT), height: height - TOP - BOTTOM });
  const move = (event) => state.drags(touched.stage, touched.setting, Math.max(0, Math.min(n - 1, Math.round(x.invert(event.clientX - box.getBoundingClientRect().left)))));
  hit.addEventListener("pointerdown", (event) => { hit.setPointerCapture(event.pointerId); move(event); });
  hit.addEventListener("pointermove", (event) => { if (hit.hasPointerCapture(event.pointerId)) move(event); });
  hit.addEventListener("pointerup", () => state.letGo());
  box.append(rule, text, ...dots, hit);
  return {
    knob: key,
    node: el("div", { class: "curves" }, box),
    paint() {
      const held = state.drag && state.drag.stage === touched.stage && state.drag.setting === touched.setting;
      const value = held ? state.drag.value : at.knob.value;
      const position = held ? state.drag.position : nearest(positions, value);
      attribute(rule, "x1", x(position)); attribute(rule, "x2", x(position));
      const flip = x(position) > width * 0.6;
      attribute(text, "x", x(position) + (flip ? -5 : 5)); attribute(text, "text-anchor", flip ? "end" : "start");
      write(text, knobValue(value, at.knob.digits));
      dots.forEach((dot, line) => { 
        const mean = means[line * n + position];
        attribute(dot, "visibility", Number.isNaN(mean) ? "hidden" : null);
        attribute(dot, "cx", x(position));
        attribute(dot, "cy", y(mean || 0));
      });
    },
  };
}

/** Zoom One, Differences: who keeps what, counted by label. */
function quarters(header) {
  const cells = [["both keep", true, true], ["only A keeps", true, false], ["only B keeps", false, true], ["neither keeps", false, false]].map(([word, a, b]) => {
    const number = el("b", {}), more = el("span", {});
    return { a, b, number, more, node: el("div", { class: `quarter ${a ? "a" : ""} ${b ? "b" : ""}` }, el("span", { class: "quarter-word" }, word), number, more) };
  });
  return {
    node: el("div", { class: "quarters" }, el("h3", { class: "panel-head" }, "A and B, chunk by chunk"), ...cells.map((cell) => cell.node)),
    paint(figures) {
      for (const cell of cells) {
        const rows = header.rows.filter((row) => (figures.kept(row) ?? false) === cell.a && (row.b?.kept ?? false) === cell.b);
        const of = (label) => rows.filter((row) => row.relevant === label).length;
        write(cell.number, String(rows.length));
        write(cell.more, `✓ ${of(true)} relevant   ✕ ${of(false)} irrelevant   ? ${of(null)} unjudged`);
      }
    },
  };
}

/** Zoom All, Differences: every question's change as a bar, sorted as the rows are. */
function waterfall(header, width) {
  const [a, b] = header.pipelines.map((pipe) => header.array(pipe.f));
  if (!a || !b) return { node: el("p", { class: "empty" }, "There is no B to compare with.") };
  const height = 330;
  const changes = [...a].map((value, index) => ({ index, value: value - b[index] })).filter(({ value }) => !Number.isNaN(value)).sort((one, other) => one.value - other.value);
  const [low, high] = [Math.min(-0.05, ...changes.map(({ value }) => value)) * 1.05, Math.max(0.05, ...changes.map(({ value }) => value)) * 1.05];
  const y = scale(low, high, height - BOTTOM, TOP + 6);
  const { ticks, written } = ticksOf(low, high, 5);
  const box = panel(width, height, "F₁ of A − B, question by question", "questions, worst change first →", "", y, ticks, written);
  const slot = (width - LEFT - RIGHT) / Math.max(1, changes.length);
  const bars = changes.map((_, i) => svg("rect", { x: LEFT + i * slot + slot * 0.1, width: Math.max(0.8, slot * 0.8) }));
  const mean = svg("line", { class: "dash", x1: LEFT, x2: width - RIGHT }), text = svg("text", { class: "dash-text", x: LEFT + 6 });
  box.append(...bars, svg("line", { class: "zero", x1: LEFT, x2: width - RIGHT, y1: y(0), y2: y(0) }), mean, text);
  let stands = false;
  return {
    node: el("div", { class: "curves" }, box),
    paint(figures) {
      if (stands && !figures.moved) return;
      stands = !figures.moved;
      let sum = 0;
      changes.forEach(({ index, value }, i) => {
        const now = figures.moved ? (figures.f(index) ?? NaN) - b[index] : value;
        const seen = Math.max(low, Math.min(high, Number.isNaN(now) ? 0 : now));
        sum += now;
        attribute(bars[i], "class", `step ${seen > 1e-9 ? "up" : seen < -1e-9 ? "down" : "same"}`);
        attribute(bars[i], "y", Math.min(y(0), y(seen)) - 0.5);
        attribute(bars[i], "height", Math.max(1, Math.abs(y(seen) - y(0))));
      });
      const average = sum / Math.max(1, changes.length);
      const at = Number.isNaN(average) ? 0 : average;
      attribute(mean, "y1", y(at)); attribute(mean, "y2", y(at)); attribute(text, "y", y(at) - 5);
      write(text, Number.isNaN(average) ? "" : `mean ${at < 0 ? "−" : "+"}${measure(Math.abs(at))}`);
    },
  };
}

/** Losses: relevant chunks stage by stage, and the button that opens the stage which took them. */
function losses(state, header) {
  const most = Math.max(1e-9, ...header.losses.map((loss) => loss.entered));
  const rows = header.losses.map((loss) => {
    const bar = el("span", { class: "loss-bar" }, el("i", { class: "stays" }), el("i", { class: "lost" }));
    bar.style.setProperty("--stays", (loss.entered - loss.lost) / most);
    bar.style.setProperty("--lost", loss.lost / most);
    const open = loss.stage === null ? null : iconless(`Open ${loss.title}`, () => state.send("drawer", { stage: loss.stage }));
    return el("li", { class: "loss" }, el("div", { class: "loss-head" }, el("span", { class: "loss-title" }, loss.title), open), bar,
      el("span", { class: "loss-words" }, `loses ${count(loss.lost)} of ${count(loss.entered)} relevant${loss.dropped ? `, drops ${count(loss.dropped)} others` : ""}`));
  });
  return { node: el("div", { class: "losses" }, el("h3", { class: "panel-head" }, header.zoom === "one" ? "Where relevant chunks of this question are lost" : "Where relevant chunks of all questions are lost"), el("ol", {}, ...rows)) };
}

function iconless(word, press) {
  return el("button", { type: "button", class: "link", onclick: press }, word);
}
