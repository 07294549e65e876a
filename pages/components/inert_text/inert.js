// Blocks of runs as elements whose text is set with textContent: nothing in the data is ever parsed as markup.

const STYLES = new Set(["lead", "text", "chips", "note", "box"]);
const MARKS = new Set(["word", "held", "missing", "plain"]);

function element(name, className, text) {
  const made = document.createElement(name);
  made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

export default function (component) {
  const { parentElement, data } = component;
  const host = parentElement.querySelector(".inert");
  const blocks = data.blocks.map((block) => {
    const style = STYLES.has(block.style) ? block.style : "text";
    const made = element("div", style);
    if (style === "box") made.tabIndex = 0;
    for (const run of block.runs) {
      const mark = MARKS.has(run.mark) ? run.mark : "";
      made.append(element(mark === "word" ? "mark" : "span", mark, run.text));
    }
    return made;
  });
  host.replaceChildren(...blocks);
}
