// What a setting does to every query, from lists that were sent once; the cut itself is cut.js.

/** Per query what is kept and how good it is, and the means over the queries. */
function measured(data, marker) {
  const settings = { ...data.settings, gap_threshold: marker.gap, distance_offset: marker.offset };
  const rows = data.lists.map((list) => {
    const keep = cutList(list.distances, settings).keep;
    const found = list.found[keep] + list.foundAlways;
    const kept = keep + list.keptAlways;
    return { id: list.id, kept, SetP: found / Math.max(kept, 1), SetR: found / list.total, SetF: (2 * found) / (kept + list.total) };
  });
  const mean = (name) => rows.reduce((sum, row) => sum + row[name], 0) / rows.length;
  return { rows, SetP: mean("SetP"), SetR: mean("SetR"), SetF: mean("SetF"), kept: mean("kept") };
}

/** Change of the measure per query against the reference, largest loss first. */
function changes(data, rows) {
  return rows.map((row, i) => ({ id: row.id, change: row[data.measure] - data.reference[i] }))
    .sort((a, b) => a.change - b.change);
}

/** The place of the value nearest to a number in an ascending list. */
function nearest(values, wanted) {
  let best = 0;
  values.forEach((value, i) => { if (Math.abs(value - wanted) < Math.abs(values[best] - wanted)) best = i; });
  return best;
}
