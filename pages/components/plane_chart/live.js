// What a setting does to every query, from lists that were sent once. The rule is that of cut.js, to which a test holds
// it; here each list's gaps are searched beforehand, so that a move of the marker asks one comparison per list.

/** The lists in whole units of 1e-9 as typed arrays, with the largest gap up to each place (the first gap left out). */
function prepare(lists, settings) {
  return lists.map((list) => {
    const looked = Math.min(list.distances.length, settings.max_results);
    const whole = Float64Array.from(list.distances.slice(0, looked), units);
    const largest = new Float64Array(Math.max(looked - 2, 0));
    let at = 0;
    for (let i = 0; i < largest.length; i += 1) {
      const gap = whole[i + 2] - whole[i + 1];
      if (i === 0 || gap > largest[i - 1]) at = i;
      largest[i] = at === i ? gap : largest[i - 1];
    }
    return { ...list, looked, whole, largest, at, span: looked ? whole[looked - 1] - whole[0] : 0 };
  });
}

/** The first place of an ascending typed array with at least (or, with `over`, more than) a value. */
function place(values, wanted, over) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (over ? values[middle] > wanted : values[middle] >= wanted) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** How many of a prepared list are kept. */
function keptOf(list, settings) {
  const { largest, whole, span, looked } = list;
  if (looked === 0) return 0;
  const relative = settings.gap_policy === "relative";
  const threshold = relative ? Math.floor(settings.gap_threshold * span + 0.5) : units(settings.gap_threshold);
  let ruled;
  if (largest.length && largest[largest.length - 1] >= threshold && !(relative && span === 0)) {
    ruled = (settings.gap_policy === "first" ? place(largest, threshold, false) : list.at) + 2;
  } else {
    const share = settings.relative_offset ?? null;
    const offset = share === null ? units(settings.distance_offset) : Math.floor(share * span + 0.5);
    ruled = place(whole, whole[0] + offset, true);
  }
  return Math.min(Math.max(ruled, settings.min_results), looked);
}

/** The means over the queries at the marker, and each query's change of the measure against the reference. */
function measured(state) {
  const { data, marker, lists, change } = state;
  const settings = { ...data.settings, gap_threshold: marker.gap, distance_offset: marker.offset };
  const sums = { SetP: 0, SetR: 0, SetF: 0, kept: 0 };
  lists.forEach((list, i) => {
    const keep = keptOf(list, settings);
    const found = list.found[keep] + list.foundAlways;
    const kept = keep + list.keptAlways;
    const values = { SetP: found / Math.max(kept, 1), SetR: found / list.total, SetF: (2 * found) / (kept + list.total) };
    sums.SetP += values.SetP;
    sums.SetR += values.SetR;
    sums.SetF += values.SetF;
    sums.kept += kept;
    change[i] = values[data.measure] - data.reference[i];
  });
  for (const name of Object.keys(sums)) sums[name] /= Math.max(lists.length, 1);
  return sums;
}

/** The place of the value nearest to a number in an ascending list. */
function nearest(values, wanted) {
  const at = Math.min(place(values, wanted, false), values.length - 1);
  return at > 0 && wanted - values[at - 1] <= values[at] - wanted ? at - 1 : at;
}
