// What is to be drawn: the server's data with the local preview laid over it, and every sentence about it.
// Pure; drawing is in draw.js, events and the conversation with the server in chart.js.

/** What is to be drawn: the server's data with the local preview laid over it. */
function makeView(data, local) {
  const settings = data.adaptive ? { ...data.adaptive, ...local } : null;
  const byId = new Map(data.points.map((p) => [p.id, p]));
  const reaching = data.reaching.map((id) => byId.get(id));
  const cut = settings ? cutList(reaching.map((p) => p.score), settings) : null;
  const kept = new Set(data.points.filter((p) => p.kept).map((p) => p.id));
  const previewing = settings !== null && Object.keys(local).length > 0;
  if (previewing) {
    for (const point of reaching) kept.delete(point.id);
    for (const point of reaching.slice(0, Math.min(cut.keep, data.keepAtMost ?? Infinity))) kept.add(point.id);
    for (const id of data.droppedLater ?? []) kept.delete(id);
  }
  const view = { ...data, settings, reaching, cut, kept, previewing };
  return { ...view, ...words(view), verdict: (point) => verdictOf(point, view) };
}

/** The sentences and names of a view. */
function words(view) {
  const { settings, cut, reaching } = view;
  if (!settings) return { offsetName: "distance_offset" };
  const relativeOffset = settings.relative_offset !== null && settings.relative_offset !== undefined;
  const relative = settings.gap_policy === "relative";
  return {
    offsetName: relativeOffset ? "relative_offset" : "distance_offset",
    offsetWord: cut.gapIndex < 0 ? "offset limit" : "offset limit (a gap decides)",
    thresholdWord: relative
      ? `gap threshold ${settings.gap_threshold.toFixed(3)} of the span = ${four(cut.threshold ?? 0)}`
      : `gap threshold ${four(settings.gap_threshold)}`,
    cutWord: reaching.length ? `cut after rank ${reaching[Math.max(cut.keep - 1, 0)].rank}: ${why(cut, settings)}` : "",
  };
}

/** Why the cut is where it is. */
function why(cut, settings) {
  if (cut.raised) return `min results ${settings.min_results}`;
  if (cut.gapIndex >= 0) return `gap ${four(cut.gap)} ≥ ${four(cut.threshold)}`;
  return cut.looked === settings.max_results && cut.keep === cut.looked ? `max results ${settings.max_results}` : `distance ≤ ${four(cut.reach)}`;
}

/** A chunk's verdict as a word and a reason; while previewing, by the preview. */
function verdictOf(point, view) {
  const kept = view.kept.has(point.id);
  if (!view.previewing || kept === point.kept) return { word: point.kept ? "kept" : point.verdict, reason: point.reason };
  return { word: kept ? "kept (preview)" : "dropped by AdaptiveGap (preview)", reason: kept ? "" : view.cutWord };
}

/** The sentence under the charts, also read aloud. */
function summary(view) {
  const counted = `keeps ${view.kept.size + view.keptElsewhere} of ${view.total}`;
  if (!view.settings) return view.gapPanel ? `${counted}; adaptive is off` : counted;
  if (!view.reaching.length) return `${counted}: no chunk reaches AdaptiveGap`;
  const whole = view.cut.keep === view.reaching.length;
  const reach = view.cut.gapIndex < 0 ? `no gap from the second on is ≥ ${four(view.cut.threshold)}; ` : "";
  const cut = whole ? `AdaptiveGap cuts nothing, all ${view.reaching.length} lie within ${four(view.cut.reach)}` : view.cutWord;
  return `${view.previewing ? "preview: " : ""}${counted}; ${reach}${cut}`;
}
