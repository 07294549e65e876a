// The panels: the plane with its marker, the curves through it, the strip of queries. Built once; `move` changes them.

const SIDE = { left: 62, top: 30, bottom: 46, right: 78 };

/** Outline of the cells that are as good as the best. */
function outline(table, top, box) {
  const rows = table.length;
  const columns = table[0].length;
  const [wide, high] = [box.width / columns, box.height / rows];
  const is = (y, x) => y >= 0 && x >= 0 && y < rows && x < columns && table[y][x] >= top - 1e-9;
  let path = "";
  for (let y = 0; y < rows; y += 1) for (let x = 0; x < columns; x += 1) {
    if (!is(y, x)) continue;
    const [left, up] = [box.x + x * wide, box.y + box.height - (y + 1) * high];
    if (!is(y + 1, x)) path += `M${left} ${up}h${wide}`;
    if (!is(y - 1, x)) path += `M${left} ${up + high}h${wide}`;
    if (!is(y, x - 1)) path += `M${left} ${up}v${high}`;
    if (!is(y, x + 1)) path += `M${left + wide} ${up}v${high}`;
  }
  return path;
}

/** The bar that says which colour is which value. */
function scaleBar(svg, box, low, high) {
  const x = box.x + box.width + 14;
  for (let i = 0; i < 40; i += 1) {
    const y = box.y + box.height - ((i + 1) / 40) * box.height;
    svg.append(make("rect", { x, y, width: 14, height: box.height / 40 + 0.6, fill: `rgb(${colour(i / 39).join(",")})` }));
  }
  for (const share of [0, 0.5, 1]) {
    const y = box.y + box.height - share * box.height + 4;
    svg.append(make("text", { class: "tick", x: x + 19, y }, (low + share * (high - low)).toFixed(3)));
  }
}

/** Where a setting lies on the picture: cells are centred on their values. */
function placeOf(data, box, gap, offset) {
  const cell = [box.width / data.offsets.length, box.height / data.gaps.length];
  const [wide, tall] = [data.offsets.at(-1), data.gaps.at(-1)];
  return {
    x: box.x + cell[0] / 2 + (Math.min(offset, wide) / wide) * (box.width - cell[0]),
    y: box.y + box.height - cell[1] / 2 - (Math.min(gap, tall) / tall) * (box.height - cell[1]),
  };
}

/** The plane without its marker: drawn once for its data and width. */
function planePanel(data, width) {
  const height = Math.min(440, Math.max(300, width * 0.66));
  const box = { x: SIDE.left, y: SIDE.top, width: width - SIDE.left - SIDE.right, height: height - SIDE.top - SIDE.bottom };
  const svg = make("svg", { width, height, class: "plane", role: "group", "aria-label": data.title });
  const flat = data.table.flat();
  const [low, high] = [Math.min(...flat), Math.max(...flat)];
  svg.append(make("text", { class: "title", x: 0, y: 14 }, data.title));
  axes(svg, box, data.offsets.at(-1), data.gaps.at(-1), data.offsetTitle, data.gapTitle);
  svg.append(make("image", { href: picture(data.table, low, high), x: box.x, y: box.y, width: box.width, height: box.height,
    preserveAspectRatio: "none", style: "image-rendering: pixelated" }));
  const path = outline(data.table, high, box);
  svg.append(make("path", { class: "best under", d: path }), make("path", { class: "best", d: path }));
  if (data.chosen) {
    const { x, y } = placeOf(data, box, data.chosen[0], data.chosen[1]);
    const star = `M${x - 8} ${y}h16M${x} ${y - 8}v16`;
    svg.append(make("path", { class: "chosen under", d: star }), make("path", { class: "chosen", d: star }));
  }
  scaleBar(svg, box, low, high);
  svg.append(make("rect", { class: "area", x: box.x, y: box.y, width: box.width, height: box.height, fill: "transparent" }));
  return { svg, box };
}

/** The marker with its guides, on top of the plane: built once, then only moved. */
function markerOn(data, box) {
  const across = make("g");
  const down = make("g");
  for (const kind of ["guide under", "guide"]) {
    across.append(make("line", { class: kind, x1: box.x, x2: box.x + box.width, y1: 0, y2: 0 }));
    down.append(make("line", { class: kind, x1: 0, x2: 0, y1: box.y, y2: box.y + box.height }));
  }
  const grip = make("g", { class: "marker", tabindex: 0, role: "slider", "data-focus": "marker",
    "aria-label": "marker: arrow keys move it, up and down the gap threshold, left and right the offset",
    "aria-valuemin": 0, "aria-valuemax": data.gaps.at(-1) });
  grip.append(make("circle", { r: 9 }), make("circle", { class: "dot", r: 2.5 }));
  const group = make("g");
  group.append(across, down, grip);
  const move = (marker) => {
    const { x, y } = placeOf(data, box, marker.gap, marker.offset);
    across.setAttribute("transform", `translate(0 ${y})`);
    down.setAttribute("transform", `translate(${x} 0)`);
    grip.setAttribute("transform", `translate(${x} ${y})`);
    grip.setAttribute("aria-valuenow", marker.gap);
    grip.setAttribute("aria-valuetext", `gap threshold ${marker.gap.toFixed(4)}, offset ${marker.offset.toFixed(4)}`);
  };
  return { group, move };
}

/** Precision, recall and F along one axis; `move` draws the curves through the marker and where it stands. */
function curvePanel(width, xs, xTitle) {
  const height = 205;
  const box = { x: 46, y: 26, width: width - 60, height: height - 26 - 46 };
  const svg = make("svg", { width, height, role: "img" });
  const title = make("text", { class: "title", x: 0, y: 14 });
  svg.append(title);
  axes(svg, box, xs.at(-1), 1, xTitle, "mean");
  const lines = {};
  for (const name of ["SetP", "SetR", "SetF"]) svg.append(lines[name] = make("polyline", { class: `line ${name}` }));
  const here = make("line", { class: "here", x1: 0, x2: 0, y1: box.y, y2: box.y + box.height });
  svg.append(here);
  const across = xs.map((x) => (box.x + (x / xs.at(-1)) * box.width).toFixed(1));
  let drawn = null;
  const move = (at, words, which, series) => {
    here.setAttribute("transform", `translate(${box.x + (Math.min(at, xs.at(-1)) / xs.at(-1)) * box.width} 0)`);
    if (drawn === which) return;
    drawn = which;
    title.textContent = words;
    svg.setAttribute("aria-label", words);
    for (const [name, values] of Object.entries(series())) {
      lines[name].setAttribute("points", values.map((value, i) => `${across[i]},${(box.y + box.height * (1 - value)).toFixed(1)}`).join(" "));
    }
  };
  return { svg, move };
}

/** One stroke per query: what the marker changes against the reference, largest loss first. Three paths, not n bars. */
function stripPanel(data, ids, width) {
  const height = 205;
  const box = { x: 40, y: 44, width: width - 50, height: height - 44 - 30 };
  const svg = make("svg", { width, height, class: "strip", role: "img" });
  const titles = [make("text", { class: "title", x: 0, y: 14 }), make("text", { class: "tick", x: 0, y: 32 })];
  svg.append(...titles);
  const middle = box.y + box.height / 2;
  for (const value of [-1, 0, 1]) {
    const y = middle - (value * box.height) / 2;
    svg.append(make("line", { class: "grid", x1: box.x, x2: box.x + box.width, y1: y, y2: y }));
    svg.append(make("text", { class: "tick", x: box.x - 7, y: y + 4, "text-anchor": "end" }, value > 0 ? "+1" : String(value).replace("-", "−")));
  }
  const wide = box.width / Math.max(ids.length, 1);
  const stroke = Math.max(Math.min(wide * 0.8, 28), 0.8);
  const paths = Object.fromEntries(["win", "lose", "same"].map((kind) => [kind, make("path", { class: `bar ${kind}`, "stroke-width": stroke })]));
  svg.append(...Object.values(paths));
  svg.append(make("text", { class: "axis", x: box.x + box.width / 2, y: height - 8, "text-anchor": "middle" }, "dev queries, largest loss first"));
  const order = Uint32Array.from(ids, (_, i) => i);
  let change = new Float64Array(ids.length);
  const move = (now) => {
    change = now;
    order.sort((a, b) => change[a] - change[b] || a - b);
    const parts = { win: [], lose: [], same: [] };
    order.forEach((query, i) => {
      const value = change[query];
      const tall = Math.max(Math.abs(value) * box.height * 0.5, 1.5);
      const kind = value > 1e-9 ? "win" : value < -1e-9 ? "lose" : "same";
      parts[kind].push(`M${(box.x + (i + 0.5) * wide).toFixed(1)} ${middle}v${(value > 0 ? -tall : tall).toFixed(1)}`);
    });
    for (const [kind, path] of Object.entries(paths)) path.setAttribute("d", parts[kind].join(""));
    const counts = `${parts.win.length} win, ${parts.lose.length} lose, ${parts.same.length} stay`;
    titles[0].textContent = `${data.measure} per dev query: ${counts}`;
    titles[1].textContent = `marker − ${data.referenceName}`;
    svg.setAttribute("aria-label", `${data.measure} per dev query, marker − ${data.referenceName}: ${counts}`);
  };
  svg.addEventListener("pointermove", (event) => {
    const at = Math.floor((event.offsetX - box.x) / wide);
    const query = order[at];
    if (query === undefined) return;
    titles[1].textContent = `${ids[query]}: ${change[query] >= 0 ? "+" : "−"}${Math.abs(change[query]).toFixed(3)}`;
  });
  svg.addEventListener("pointerleave", () => { titles[1].textContent = `marker − ${data.referenceName}`; });
  return { svg, move };
}
