// SVG for the two panels: distance by rank and gap to the next. Pure drawing from a view; events live in chart.js.
// Every text from data is set as textContent: nothing here parses markup.

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 316;
const MARGIN = { top: 60, right: 16, bottom: 44, left: 62 };

/** An SVG element with attributes, and text where given. */
function make(name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  if (text !== undefined) element.textContent = text;
  return element;
}

/** An HTML element with a class and text. */
function tag(name, className, text) {
  const element = document.createElement(name);
  element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

/** Linear map from a data range to pixels, with its inverse. */
function scale(low, high, start, end) {
  const span = high - low || 1;
  const map = (value) => start + ((value - low) / span) * (end - start);
  map.invert = (pixel) => low + ((pixel - start) / (end - start)) * span;
  map.low = low;
  map.high = high;
  return map;
}

/** About `count` round numbers inside a range. */
function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) found.push(i * step);
  return { values: found, digits: Math.min(6, Math.max(0, -Math.floor(Math.log10(step) + 1e-9) + (step / power === 2.5 ? 1 : 0))) };
}

/** Ranks to write on the axis: all of a short list, round ones of a long list. */
function ranks(last) {
  if (last <= 16) return Array.from({ length: last }, (_, i) => i + 1);
  return ticks(1, last, 10).values.filter((rank) => Number.isInteger(rank));
}

/** Four digits, as every distance on every screen. */
const four = (value) => value.toFixed(4);

/** Frame shared by both panels: title, axes with titles, grid. Returns the svg. */
function frame(width, title, xTitle, yTitle, y) {
  const svg = make("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "group", "aria-label": title });
  svg.append(make("text", { class: "title", x: 4, y: 16 }, title));
  const { values, digits } = ticks(y.low, y.high, 5);
  for (const value of values) {
    svg.append(make("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(value), y2: y(value) }));
    svg.append(make("text", { class: "tick", x: MARGIN.left - 8, y: y(value) + 4, "text-anchor": "end" }, value.toFixed(digits)));
  }
  const middle = (MARGIN.top + HEIGHT - MARGIN.bottom) / 2;
  svg.append(make("text", { class: "axis", x: (MARGIN.left + width - MARGIN.right) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, xTitle));
  svg.append(make("text", { class: "axis", transform: `translate(13 ${middle}) rotate(-90)`, "text-anchor": "middle" }, yTitle));
  return svg;
}

/** A check, a cross or a question mark above a marker: the label's shape, beside its word in the tooltip. */
function labelGlyph(label, x, y, size) {
  if (label === "unjudged") {
    return make("text", { class: "glyph unjudged", x, y: y + size * 0.45, "text-anchor": "middle", "font-size": size * 1.3 }, "?");
  }
  const h = size / 2;
  const path = label === "relevant"
    ? `M${x - h} ${y} L${x - h * 0.25} ${y + h * 0.75} L${x + h} ${y - h * 0.8}`
    : `M${x - h * 0.75} ${y - h * 0.75} L${x + h * 0.75} ${y + h * 0.75} M${x + h * 0.75} ${y - h * 0.75} L${x - h * 0.75} ${y + h * 0.75}`;
  return make("path", { class: `glyph ${label}`, d: path });
}

/** One chunk: its marker (filled kept, hollow dropped), its label glyph, a ring where selected. */
function pointMark(point, x, y, radius, reach, view) {
  const kept = view.kept.has(point.id);
  const group = make("g", {
    class: `point ${kept ? "kept" : "dropped"}`, role: "button", tabindex: "-1", "data-focus": `point:${point.id}`, "data-id": point.id,
    "aria-label": tooltipLines(point, view).join(", "), "aria-pressed": String(point.id === view.selected),
  });
  group.append(make("rect", { class: "hit", x: x - reach, y: y - radius - 16, width: 2 * reach, height: 2 * radius + 22 }));
  if (point.id === view.selected) group.append(make("circle", { class: "ring", cx: x, cy: y, r: radius + 5 }));
  group.append(make("circle", { class: "marker", cx: x, cy: y, r: radius }));
  const glyph = Math.max(6, Math.min(10, radius * 1.6));
  if (radius > 4 || point.label !== "unjudged") group.append(labelGlyph(point.label, x, y - radius - glyph, glyph));
  return group;
}

/** What the tooltip and the screen reader say of a chunk. */
function tooltipLines(point, view) {
  const grade = point.label === "unjudged" ? "unjudged" : `${point.label} (grade ${point.grade})`;
  const verdict = view.verdict(point);
  const lines = [`rank ${point.rank}`, point.title, `${view.scoreName} ${four(point.score)}`, grade, verdict.word];
  return verdict.reason ? [...lines, verdict.reason] : lines;
}

/** A limit that can be dragged: a dashed line with its value written on it, a grip, and slider semantics. */
function limitLine(name, text, value, y, width, view, used) {
  const inside = value <= y.high && value >= y.low;
  const at = inside ? y(value) : value > y.high ? MARGIN.top : HEIGHT - MARGIN.bottom;
  const group = make("g", {
    class: `limit ${used ? "used" : "unused"}`, role: "slider", tabindex: "0", "data-focus": `limit:${name}`, "data-limit": name,
    "aria-label": name.replaceAll("_", " "), "aria-orientation": "vertical", "aria-valuemin": 0,
    "aria-valuemax": Math.max(view.limitMaximum[name], view.settings[name]), "aria-valuenow": view.settings[name], "aria-valuetext": text,
  });
  group.append(make("rect", { class: "hit", x: MARGIN.left, y: at - 9, width: width - MARGIN.left - MARGIN.right, height: 18 }));
  group.append(make("line", { class: "dash", x1: MARGIN.left, x2: width - MARGIN.right, y1: at, y2: at }));
  const grip = width - MARGIN.right - 17;
  group.append(make("rect", { class: "grip", x: grip - 9, y: at - 8, width: 18, height: 16, rx: 4 }));
  for (const dy of [-3, 0, 3]) group.append(make("line", { class: "ridge", x1: grip - 4, x2: grip + 4, y1: at + dy, y2: at + dy }));
  const label = inside ? text : `${text} ${value > y.high ? "▲ above this chart" : "▼ below this chart"}`;
  group.append(make("text", { class: "limit-text", x: grip - 16, y: at - 6, "text-anchor": "end" }, label));
  return group;
}

/** The panel of distances by rank. */
function distancePanel(width, view) {
  const { points } = view;
  const y = scale(view.scoreRange[0], view.scoreRange[1], HEIGHT - MARGIN.bottom, MARGIN.top);
  const last = Math.max(...points.map((p) => p.rank), 2);
  const x = scale(1, last, MARGIN.left + 14, width - MARGIN.right - 40);
  const svg = frame(width, view.scoreKind === "distance" ? "Distance by rank" : "Score by rank", "rank", view.scoreTitle, y);
  for (const rank of ranks(last)) {
    svg.append(make("text", { class: "tick", x: x(rank), y: HEIGHT - MARGIN.bottom + 16, "text-anchor": "middle" }, rank));
  }
  svg.append(make("polyline", { class: "trail", points: points.map((p) => `${x(p.rank)},${y(p.score)}`).join(" ") }));
  if (view.settings) svg.append(...cutMarks(width, x, y, view));
  const radius = Math.max(3.2, Math.min(6.5, (x(2) - x(1)) * 0.52)); // neighbours of a long list stay apart
  const reach = Math.max(radius, Math.min(12, (x(2) - x(1)) / 2)); // a click never lands on a neighbour
  const marks = points.map((p) => pointMark(p, x(p.rank), y(p.score), radius, reach, view));
  const first = marks.find((m) => m.dataset.id === view.selected) ?? marks[0];
  if (first) first.setAttribute("tabindex", "0");
  svg.append(...marks);
  return svg;
}

/** The cut as a vertical line with its value, and the offset limit. */
function cutMarks(width, x, y, view) {
  const { cut, reaching } = view;
  const marks = [];
  if (cut.reach !== null) {
    const name = view.offsetName;
    marks.push(limitLine(name, `${view.offsetWord} ${four(cut.reach)}`, cut.reach, y, width, view, cut.gapIndex < 0));
  }
  if (cut.keep > 0 && cut.keep < reaching.length) {
    const at = (x(reaching[cut.keep - 1].rank) + x(reaching[cut.keep].rank)) / 2;
    const flip = at > width * 0.6;
    marks.push(make("line", { class: "cut", x1: at, x2: at, y1: MARGIN.top - 18, y2: HEIGHT - MARGIN.bottom }));
    marks.push(make("text", { class: "cut-text", x: at, y: MARGIN.top - 23, "text-anchor": flip ? "end" : "start" }, view.cutWord));
  }
  return marks;
}

/** The panel of gaps between one chunk and the next, among those that reach the adaptive filter. */
function gapPanel(width, view) {
  const { reaching, cut } = view;
  const gaps = reaching.slice(1).map((p, i) => p.score - reaching[i].score);
  const y = scale(0, view.gapRange, HEIGHT - MARGIN.bottom, MARGIN.top);
  const svg = frame(width, "Gap to the next", "gap after rank", `difference of ${view.scoreName}`, y);
  svg.append(hatch());
  const slot = Math.min(64, (width - MARGIN.left - MARGIN.right - 34) / Math.max(gaps.length, 1));
  const every = Math.ceil(gaps.length / 15);
  gaps.forEach((gap, i) => {
    const left = MARGIN.left + 6 + i * slot;
    svg.append(gapBar(gap, i, left + slot * 0.16, slot * 0.68, y, view));
    if (i % every === 0) {
      svg.append(make("text", { class: "tick", x: left + slot / 2, y: HEIGHT - MARGIN.bottom + 16, "text-anchor": "middle" }, reaching[i].rank));
    }
    if (i === 0 && view.settings) svg.append(sidewaysNote("skipped", left + slot / 2, y(gap) - 6));
    if (view.settings && i === cut.gapIndex) {
      svg.append(make("text", { class: "chosen-text", x: left + slot / 2, y: y(gap) - 7, "text-anchor": "middle" }, `▼ ${four(gap)}`));
    }
  });
  if (gaps.length === 0) svg.append(make("text", { class: "axis", x: MARGIN.left + 10, y: HEIGHT / 2 }, "fewer than two chunks reach this filter"));
  if (view.settings && cut.threshold !== null) {
    svg.append(limitLine("gap_threshold", view.thresholdWord, cut.threshold, y, width, view, cut.gapIndex >= 0));
  }
  return svg;
}

/** A note that stands upright beside a thin bar. */
function sidewaysNote(text, x, y) {
  return make("text", { class: "note", transform: `translate(${x + 4} ${y}) rotate(-90)` }, text);
}

/** One gap: hatched where skipped, faint where not looked at, marked where it ends the list. */
function gapBar(gap, i, left, width, y, view) {
  const { cut, reaching, settings } = view;
  const kind = !settings ? "plain" : i === 0 ? "skipped" : i >= cut.looked - 1 ? "unseen" : i === cut.gapIndex ? "chosen" : "plain";
  const height = Math.max(1.5, y(0) - y(gap));
  const said = { skipped: ", skipped: no cut after the first", unseen: ", beyond max results", chosen: ", ends the list", plain: "" }[kind];
  const bar = make("rect", { class: `bar ${kind}`, x: left, y: y(0) - height, width, height, role: "img",
    "aria-label": `gap ${four(gap)} after rank ${reaching[i].rank}${said}` });
  bar.append(make("title", {}, `gap ${four(gap)} between rank ${reaching[i].rank} and ${reaching[i + 1].rank}${said}`));
  return bar;
}

/** The pattern of a gap that is skipped. */
function hatch() {
  const pattern = make("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
  pattern.append(make("line", { class: "hatch", x1: 0, y1: 0, x2: 0, y2: 6 }));
  const defs = make("defs", {});
  defs.append(pattern);
  return defs;
}
