// Four cards with dots, one dot a chunk: filled kept, hollow dropped, ✓ relevant, ✕ irrelevant. Text as textContent.

const SIGNS = { relevant: "✓", irrelevant: "✕", unjudged: "?" };

function element(name, className, text) {
  const made = document.createElement(name);
  made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function dots(list) {
  const row = element("div", "dots");
  for (const dot of list) {
    const chunk = element("span", `chunk ${dot.kept ? "kept" : "dropped"} ${dot.label}`);
    chunk.append(element("i", "sign", SIGNS[dot.label] ?? "?"), element("i", "dot"));
    row.append(chunk);
  }
  return row;
}

function card(content) {
  const made = element("div", "card");
  made.append(element("div", "title", content.title));
  if (content.dots) made.append(dots(content.dots));
  made.append(element("div", content.dots ? "small" : "question", content.text));
  return made;
}

export default function (component) {
  const { parentElement, data } = component;
  const host = parentElement.querySelector(".picture");
  host.setAttribute("aria-label", data.alt);
  const parts = [];
  data.cards.forEach((content, i) => {
    if (i > 0) parts.push(element("div", "arrow", "→"));
    parts.push(card(content));
  });
  host.replaceChildren(...parts);
}
