// Columns of chunks with lines between equal ones. Everything foreign is set with textContent.

const SIGNS = { relevant: "✓", irrelevant: "✕", unjudged: "?" };
const SVG = "http://www.w3.org/2000/svg";

function element(name, className, text) {
  const made = document.createElement(name);
  made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function chunkOf(chunk, selected, choose) {
  const label = SIGNS[chunk.label] ? chunk.label : "unjudged";
  const made = element("button", `chunk ${label}${chunk.only ? " only" : ""}`);
  made.type = "button";
  made.dataset.id = chunk.id;
  made.setAttribute("aria-pressed", String(chunk.id === selected));
  const grade = chunk.grade === null || chunk.grade === undefined ? "" : ` ${chunk.grade}`;
  made.append(
    element("span", "place", String(chunk.place)),
    element("span", "sign", `${SIGNS[label]}${grade}`),
    element("span", "title", chunk.title),
  );
  if (chunk.only) made.append(element("span", "tag", "only"));
  made.title = `${chunk.place}. ${chunk.title} (${label}${grade})`;
  made.addEventListener("click", () => choose(chunk.id));
  return made;
}

function columnOf(column, selected, choose) {
  const made = element("div", "column");
  const head = element("div", "head");
  head.append(element("span", "name", column.name), element("span", "figure", `${column.figure} · kept ${column.total}`));
  made.append(head);
  if (!column.chunks.length) made.append(element("div", "none", "nothing kept"));
  for (const chunk of column.chunks) made.append(chunkOf(chunk, selected, choose));
  if (column.total > column.chunks.length) {
    made.append(element("div", "none", `and ${column.total - column.chunks.length} more`));
  }
  return made;
}

function drawLines(host, svg) {
  const frame = host.getBoundingClientRect();
  svg.setAttribute("width", String(host.scrollWidth));
  svg.setAttribute("height", String(host.scrollHeight));
  const lines = [];
  const columns = [...host.querySelectorAll(".column")];
  for (let at = 0; at + 1 < columns.length; at += 1) {
    const right = new Map([...columns[at + 1].querySelectorAll(".chunk")].map((one) => [one.dataset.id, one]));
    for (const one of columns[at].querySelectorAll(".chunk")) {
      const two = right.get(one.dataset.id);
      if (!two) continue;
      const [a, b] = [one.getBoundingClientRect(), two.getBoundingClientRect()];
      if (b.left < a.right) continue; // columns stand under each other on a narrow page
      const [x1, x2] = [a.right - frame.left, b.left - frame.left];
      const [y1, y2] = [a.top + a.height / 2 - frame.top, b.top + b.height / 2 - frame.top];
      const line = document.createElementNS(SVG, "path");
      const middle = (x1 + x2) / 2;
      line.setAttribute("d", `M${x1},${y1} C${middle},${y1} ${middle},${y2} ${x2},${y2}`);
      line.setAttribute("class", one.classList.contains("relevant") ? "line relevant" : "line");
      lines.push(line);
    }
  }
  svg.replaceChildren(...lines);
}

export default function (component) {
  const { parentElement, data, setTriggerValue } = component;
  const host = parentElement.querySelector(".beside");
  const choose = (id) => setTriggerValue("chosen", id);
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "lines");
  svg.setAttribute("aria-hidden", "true");
  host.replaceChildren(svg, ...data.columns.map((column) => columnOf(column, data.selected, choose)));
  drawLines(host, svg);
  const watch = new ResizeObserver(() => drawLines(host, svg));
  watch.observe(host);
  return () => watch.disconnect();
}
