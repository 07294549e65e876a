// The three panels: the plane with its marker, the curves through the marker, the strip of queries.

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

/** The marker with its guides, on top of the plane. */
function markerOn(data, box, marker) {
  const { x, y } = placeOf(data, box, marker.gap, marker.offset);
  const group = make("g");
  for (const kind of ["guide under", "guide"]) {
    group.append(make("line", { class: kind, x1: box.x, x2: box.x + box.width, y1: y, y2: y }));
    group.append(make("line", { class: kind, x1: x, x2: x, y1: box.y, y2: box.y + box.height }));
  }
  const grip = make("g", { class: "marker", tabindex: 0, role: "slider", "data-focus": "marker",
    "aria-label": "marker: arrow keys move it, up and down the gap threshold, left and right the offset",
    "aria-valuemin": 0, "aria-valuemax": data.gaps.at(-1), "aria-valuenow": marker.gap,
    "aria-valuetext": `gap threshold ${marker.gap.toFixed(4)}, offset ${marker.offset.toFixed(4)}` });
  grip.append(make("circle", { cx: x, cy: y, r: 9 }), make("circle", { class: "dot", cx: x, cy: y, r: 2.5 }));
  group.append(grip);
  return group;
}

/** Precision, recall and F along one axis, through the marker. */
function curvePanel(width, title, xs, series, at, xTitle) {
  const height = 205;
  const box = { x: 46, y: 26, width: width - 60, height: height - 26 - 46 };
  const svg = make("svg", { width, height, role: "img", "aria-label": title });
  svg.append(make("text", { class: "title", x: 0, y: 14 }, title));
  axes(svg, box, xs.at(-1), 1, xTitle, "mean");
  for (const [name, values] of Object.entries(series)) {
    const points = values.map((value, i) => `${box.x + (xs[i] / xs.at(-1)) * box.width},${box.y + box.height * (1 - value)}`);
    svg.append(make("polyline", { class: `line ${name}`, points: points.join(" ") }));
  }
  const x = box.x + (Math.min(at, xs.at(-1)) / xs.at(-1)) * box.width;
  svg.append(make("line", { class: "here", x1: x, x2: x, y1: box.y, y2: box.y + box.height }));
  return svg;
}

/** One bar per query: what the marker changes against the reference, largest loss first. */
function stripPanel(data, rows, width) {
  const height = 170;
  const box = { x: 46, y: 26, width: width - 56, height: height - 26 - 20 };
  const wins = rows.filter((row) => row.change > 1e-9).length;
  const losses = rows.filter((row) => row.change < -1e-9).length;
  const title = `${data.measure} per dev query, marker − ${data.referenceName}: ${wins} win, ${losses} lose, ${rows.length - wins - losses} stay`;
  const svg = make("svg", { width, height, class: "strip", role: "img", "aria-label": title });
  svg.append(make("text", { class: "title", x: 0, y: 14 }, title));
  const middle = box.y + box.height / 2;
  for (const value of [-1, 0, 1]) {
    const y = middle - (value * box.height) / 2;
    svg.append(make("line", { class: "grid", x1: box.x, x2: box.x + box.width, y1: y, y2: y }));
    svg.append(make("text", { class: "tick", x: box.x - 7, y: y + 4, "text-anchor": "end" }, value > 0 ? "+1" : String(value).replace("-", "−")));
  }
  const wide = box.width / rows.length;
  rows.forEach((row, i) => {
    const tall = Math.max(Math.abs(row.change) * box.height * 0.5, 1.5);
    const kind = row.change > 1e-9 ? "win" : row.change < -1e-9 ? "lose" : "same";
    const bar = make("rect", { class: `bar ${kind}`, x: box.x + i * wide, width: Math.max(Math.min(wide * 0.8, 28), 0.8), height: tall,
      y: row.change > 0 ? middle - tall : middle });
    bar.append(make("title", {}, `${row.id}: ${row.change >= 0 ? "+" : "−"}${Math.abs(row.change).toFixed(3)}`));
    svg.append(bar);
  });
  svg.append(make("text", { class: "axis", x: box.x + box.width / 2, y: height - 4, "text-anchor": "middle" }, "dev queries, largest loss first"));
  return svg;
}
