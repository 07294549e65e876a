// Markdown made readable and inert: headings, lists, tables, code, emphasis as elements whose text is set with
// textContent. Pictures and links stay the characters they are; HTML stays text; nothing is ever fetched or followed.

const ROW = /^\s*\|.*\|\s*$/;
const RULE = /^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$/;
const BULLET = /^(\s*)([-*+]|\d{1,4}[.)])\s+(.*)$/;
const HEADING = /^(#{1,6})\s+(.*)$/;
const FENCE = /^\s*(```|~~~)/;
const STRONG = /(\*\*[^*\n]+\*\*|__[^_\n]+__|`[^`\n]+`)/;

function made(name, className = "", text) {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

/** A line with **strong** and `code` set apart. */
function inline(node, text) {
  for (const part of text.split(STRONG)) {
    if (/^(\*\*|__)/.test(part) && part.length > 4) node.append(made("strong", "", part.slice(2, -2)));
    else if (part.startsWith("`") && part.length > 2) node.append(made("code", "", part.slice(1, -1)));
    else if (part) node.append(part);
  }
  return node;
}

function cells(line) {
  return line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
}

function tableOf(lines) {
  const table = made("table");
  const withHead = lines.length > 1 && RULE.test(lines[1]);
  lines.forEach((line, at) => {
    if (withHead && at === 1) return;
    const row = made("tr");
    for (const cell of cells(line)) row.append(inline(made(withHead && at === 0 ? "th" : "td"), cell));
    table.append(row);
  });
  const scroll = made("div", "table");
  scroll.append(table);
  return scroll;
}

function listItem(line) {
  const [, indent, mark, text] = BULLET.exec(line);
  const item = made("div", "item");
  item.style.marginLeft = `${Math.min(indent.length, 12) * 0.5}em`;
  item.append(made("span", "bullet", /\d/.test(mark) ? mark : "•"), inline(made("span"), text));
  return item;
}

/** Elements for a text; `plain` leaves it as it is. */
function readable(text, plain = false) {
  const body = made("div", "readable");
  if (plain) {
    body.append(made("div", "paragraph", text));
    return body;
  }
  const lines = text.split(/\r\n|\r|\n/);
  let paragraph = [];
  const close = () => {
    if (paragraph.length) body.append(inline(made("div", "paragraph"), paragraph.join("\n")));
    paragraph = [];
  };
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at];
    if (FENCE.test(line)) {
      close();
      const code = [];
      while (++at < lines.length && !FENCE.test(lines[at])) code.push(lines[at]);
      body.append(made("pre", "", code.join("\n")));
    } else if (ROW.test(line)) {
      close();
      const rows = [line];
      while (at + 1 < lines.length && ROW.test(lines[at + 1])) rows.push(lines[++at]);
      body.append(tableOf(rows));
    } else if (HEADING.test(line)) {
      close();
      body.append(inline(made("div", "heading"), HEADING.exec(line)[2]));
    } else if (BULLET.test(line)) {
      close();
      body.append(listItem(line));
    } else if (line.trim() === "") close();
    else paragraph.push(line);
  }
  close();
  return body;
}
