// Nodes, numbers and marks: how things are made and written, nothing about what they mean.
// Text of other people only ever becomes a text node or an attribute, never markup.

/** An element with attributes; children are nodes or text. Names that begin with "on" are listeners. */
export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element, made like el(). */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** Write a text where it differs: a frame of a drag touches only what moved. */
export function write(node, text) {
  if (node.firstChild?.nodeType === 3 && node.childNodes.length === 1) {
    if (node.firstChild.data !== text) node.firstChild.data = text;
  } else node.textContent = text;
}

/** Set an attribute where it differs; null takes it away. */
export function attribute(node, name, value) {
  if (value === null || value === false) { if (node.hasAttribute(name)) node.removeAttribute(name); }
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/** A number with so many digits, halves to the even digit as Python rounds them. */
export function digits(value, count) {
  const halves = value * 2 ** (count + 1);
  // only an odd multiple of 1/2^(count+1) lies exactly between two decimals
  if (count > 0 && Number.isInteger(halves) && Math.abs(halves % 2) === 1) {
    const low = Math.floor(value * 10 ** count);
    return ((low % 2 === 0 ? low : low + 1) / 10 ** count).toFixed(count);
  }
  return value.toFixed(count);
}

/** A distance, score or setting: so many digits, without the leading nought. */
export function knobValue(value, count) {
  return value === 0 ? "0" : digits(value, count).replace(/^(-?)0\./, "$1.");
}

/** A measure: three digits without the leading nought; "–" where it is not defined. */
export function measure(value) {
  return value === null || Number.isNaN(value) ? "–" : digits(value, 3).replace(/^(-?)0\./, "$1.");
}

/** A mean of counts: one digit, none where it is whole. */
export function count(value) {
  if (value === null || Number.isNaN(value)) return "–";
  return Number.isInteger(value) ? String(value) : digits(value, 1);
}

/** A figure against another: which way and how far, as shape and digits; "" where nothing moved that three digits show. */
export function change(a, b, written = measure) {
  if (a === null || b === null || Number.isNaN(a) || Number.isNaN(b)) return { way: "", text: "" };
  const text = written(Math.abs(a - b));
  if (!/[1-9]/.test(text)) return { way: "same", text: "=" };
  return a > b ? { way: "up", text: `▲\u2009${text}` } : { way: "down", text: `▼\u2009${text}` };
}

const GLYPHS = {
  relevant: "M3.2 8.4 6.6 11.8 12.8 4.6",
  irrelevant: "M4 4 12 12M12 4 4 12",
  unjudged: "M5.4 6a2.6 2.6 0 1 1 4 2.2c-.9.6-1.4 1-1.4 2M8 12.4v.6",
  right: "M6 3.5 10.5 8 6 12.5", left: "M10 3.5 5.5 8 10 12.5", up: "M3.5 10 8 5.5 12.5 10", down: "M3.5 6 8 10.5 12.5 6",
  remove: "M4.5 4.5 11.5 11.5M11.5 4.5 4.5 11.5", plus: "M8 3.5V12.5M3.5 8H12.5", swap: "M3 6H12.5L10 3.5M13 10H3.5L6 12.5",
};

/** A small line drawing, 16 × 16, that screen readers pass over. */
export function glyph(name) {
  return svg("svg", { class: `glyph ${name}`, viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" }, svg("path", { d: GLYPHS[name] }));
}

/** The mark of a label that can change: all three drawings, of which the class shows one. */
export function labelMark() {
  const mark = svg("svg", { class: "label-mark", viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true" });
  for (const name of ["relevant", "irrelevant", "unjudged"]) mark.append(svg("path", { class: `glyph ${name}`, d: GLYPHS[name] }));
  return mark;
}

/** A button that is only a drawing, with its word for those who cannot see it. */
export function iconButton(name, word, press, extra = {}) {
  return el("button", { type: "button", class: "icon", title: word, "aria-label": word, onclick: press, ...extra }, glyph(name));
}

/** A linear scale from numbers to pixels. */
export function scale(low, high, from, to) {
  const span = high - low || 1;
  const at = (value) => from + ((value - low) / span) * (to - from);
  at.invert = (pixel) => low + ((pixel - from) / (to - from)) * span;
  return at;
}
