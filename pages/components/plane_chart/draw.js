// Drawing: SVG pieces, the colour scale, axes. Knows no state and asks nobody.

const SVG = "http://www.w3.org/2000/svg";
// Cividis (Nuñez, Anderton and Renslow 2018) at nine places, straight lines between them.
const CIVIDIS = [[0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115], [138, 134, 120],
  [165, 156, 116], [195, 179, 105], [254, 232, 56]];

/** An SVG element with attributes and, if given, text. */
function make(name, attributes = {}, text = null) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  return element;
}

/** An HTML element with a class and, if given, text. */
function tag(name, className = "", text = null) {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== null) element.textContent = text;
  return element;
}

/** The colour of a share from 0 to 1. */
function colour(share) {
  const at = Math.min(Math.max(share, 0), 1) * (CIVIDIS.length - 1);
  const low = Math.min(Math.floor(at), CIVIDIS.length - 2);
  return CIVIDIS[low].map((one, i) => Math.round(one + (CIVIDIS[low + 1][i] - one) * (at - low)));
}

/** A picture of a table (rows from bottom to top), one pixel a cell. */
function picture(table, low, high) {
  const canvas = document.createElement("canvas");
  canvas.width = table[0].length;
  canvas.height = table.length;
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  table.forEach((row, y) => row.forEach((value, x) => {
    const at = 4 * ((canvas.height - 1 - y) * canvas.width + x);
    image.data.set([...colour(high > low ? (value - low) / (high - low) : 1), 255], at);
  }));
  context.putImageData(image, 0, 0);
  return canvas.toDataURL();
}

/** Numbers of an axis from 0 on: about five, round. */
function ticks(high) {
  const raw = high / 5;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= raw);
  const count = Math.floor(high / step + 1e-9);
  return Array.from({ length: count + 1 }, (_, i) => i * step);
}

/** A number of an axis, without digits that say nothing. */
function short(value) {
  return Number(value.toPrecision(6)).toString();
}

/** Both axes with titles and faint lines; `box` is {x, y, width, height} of the area. */
function axes(svg, box, xHigh, yHigh, xTitle, yTitle) {
  for (const value of ticks(xHigh)) {
    const x = box.x + (value / xHigh) * box.width;
    svg.append(make("line", { class: "grid", x1: x, x2: x, y1: box.y, y2: box.y + box.height + 4 }));
    svg.append(make("text", { class: "tick", x, y: box.y + box.height + 17, "text-anchor": "middle" }, short(value)));
  }
  for (const value of ticks(yHigh)) {
    const y = box.y + box.height - (value / yHigh) * box.height;
    svg.append(make("line", { class: "grid", x1: box.x - 4, x2: box.x + box.width, y1: y, y2: y }));
    svg.append(make("text", { class: "tick", x: box.x - 7, y: y + 4, "text-anchor": "end" }, short(value)));
  }
  const middle = box.y + box.height / 2;
  svg.append(make("text", { class: "axis", x: box.x + box.width / 2, y: box.y + box.height + 36, "text-anchor": "middle" }, xTitle));
  svg.append(make("text", { class: "axis", x: 12, y: middle, "text-anchor": "middle", transform: `rotate(-90 12 ${middle})` }, yTitle));
}
