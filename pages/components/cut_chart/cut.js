// The adaptive rule, twin of rag_core/filters/adaptive.py: where a list of ascending distances is cut.
// Only the rule. It draws nothing and knows no page; a test in Chromium holds it to Python's answers.

const UNIT = 1e-9;

/** The value in whole units of 1e-9, halves up: the same comparison in every language. */
function units(value) {
  return Math.floor(value * 1e9 + 0.5);
}

/** Index of the gap that ends the list, or -1; the first gap never does, and of equals the first stands. */
function chooseGap(gaps, threshold, policy) {
  let chosen = -1;
  for (let i = 1; i < gaps.length; i += 1) {
    if (gaps[i] < threshold) continue;
    if (policy === "first") return i;
    if (chosen < 0 || gaps[i] > gaps[chosen]) chosen = i;
  }
  return chosen;
}

/** Where the list is cut: how many are kept and looked at, by which gap (index or -1), and both limits in distance. */
function cutList(distances, settings) {
  const looked = Math.min(distances.length, settings.max_results);
  if (looked === 0) return { keep: 0, looked: 0, gapIndex: -1, gap: null, threshold: null, reach: null, raised: false };
  const whole = distances.slice(0, looked).map(units);
  const span = whole[looked - 1] - whole[0];
  const relative = settings.gap_policy === "relative";
  const threshold = relative ? Math.floor(settings.gap_threshold * span + 0.5) : units(settings.gap_threshold);
  const noOffset = settings.relative_offset === null || settings.relative_offset === undefined;
  const offset = noOffset ? units(settings.distance_offset) : Math.floor(settings.relative_offset * span + 0.5);
  const gaps = whole.slice(1).map((distance, i) => distance - whole[i]);
  const chosen = relative && span === 0 ? -1 : chooseGap(gaps, threshold, settings.gap_policy);
  const ruled = chosen < 0 ? whole.filter((distance) => distance <= whole[0] + offset).length : chosen + 1;
  const keep = Math.min(Math.max(ruled, settings.min_results), looked);
  return {
    keep,
    looked,
    gapIndex: chosen,
    gap: chosen < 0 ? null : gaps[chosen] * UNIT,
    threshold: threshold * UNIT,
    reach: (whole[0] + offset) * UNIT,
    raised: keep > ruled,
  };
}
