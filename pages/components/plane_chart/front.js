// Precision against recall: fixed k, the front of the plane, the baseline, the chosen setting, held-out points, marker.

/** A sign at a place: square for the best fixed k, cross for the chosen setting, ring for the marker; hollow: held out. */
function sign(kind, hollow) {
  const group = make("g", { class: `sign ${kind}${hollow ? " hollow" : ""}` });
  if (kind === "baseline") group.append(make("rect", { x: -6, y: -6, width: 12, height: 12 }));
  else if (kind === "chosen" && hollow) group.append(make("path", { d: "M0 -8L8 0L0 8L-8 0Z" }));
  else if (kind === "chosen") group.append(make("path", { class: "under", d: "M-8 0H8M0 -8V8" }), make("path", { d: "M-8 0H8M0 -8V8" }));
  else group.append(make("circle", { r: 7 }));
  return group;
}

/** The bars of a held-out point's intervals. */
function intervals(point, at, box) {
  const group = make("g", { class: `interval ${point.kind}` });
  const [x, y] = at(point.SetR, point.SetP);
  if (point.recall) group.append(make("line", { x1: at(point.recall[0], 0)[0], x2: at(point.recall[1], 0)[0], y1: y, y2: y }));
  if (point.precision) group.append(make("line", { x1: x, x2: x, y1: at(0, point.precision[0])[1], y2: at(0, point.precision[1])[1] }));
  return group;
}

/** The panel; `move` puts the marker's ring at its own mean precision and recall. */
function frontPanel(data, width, height) {
  const box = { x: 56, y: 30, width: width - 72, height: height - 30 - 46 };
  const svg = make("svg", { width, height, class: "front", role: "img", "aria-label": data.front.title });
  svg.append(make("text", { class: "title", x: 0, y: 14 }, data.front.title));
  axes(svg, box, 1, 1, "SetR, mean recall of the kept list", "SetP, mean precision");
  const at = (recall, precision) => [box.x + recall * box.width, box.y + (1 - precision) * box.height];
  for (const [kind, points] of [["fixed", data.front.fixed], ["best-of-plane", data.front.plane]]) {
    svg.append(make("polyline", { class: `path ${kind}`, points: points.map((one) => at(one[0], one[1]).join(",")).join(" ") }));
    for (const [recall, precision, words] of points) {
      const [cx, cy] = at(recall, precision);
      const dot = make("circle", { class: `spot ${kind}`, cx, cy, r: 3 });
      dot.append(make("title", {}, `${words}: recall ${recall.toFixed(3)}, precision ${precision.toFixed(3)}`));
      svg.append(dot);
    }
  }
  for (const point of data.front.signs) {
    if (point.heldOut) svg.append(intervals(point, at, box));
    const mark = sign(point.kind, point.heldOut);
    mark.setAttribute("transform", `translate(${at(point.SetR, point.SetP).join(" ")})`);
    mark.append(make("title", {}, `${point.name}: recall ${point.SetR.toFixed(3)}, precision ${point.SetP.toFixed(3)}, SetF ${point.SetF.toFixed(3)}`));
    svg.append(mark);
  }
  const ring = sign("now", false);
  svg.append(ring);
  const move = (now) => ring.setAttribute("transform", `translate(${at(now.SetR, now.SetP).join(" ")})`);
  return { svg, move };
}
