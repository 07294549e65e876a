"""What a run means for the page: one row per chunk, the numbers of the chart, what would have kept a chunk.

Pure functions from an outcome of rag_core.evaluate to values that components draw. Nothing here draws or decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pages.components.cut_chart import ChartData, Point
from pages.components.view import View
from rag_core.filters.cut import DEFAULT_THRESHOLD
from rag_core.filters.cutoff import is_weak
from rag_core.measure.experiment import Outcome
from rag_core.rules.match import decide
from rag_core.rules.model import Rule
from rag_core.rules.parsing import read_rule
from rag_core.stage import flatten
from rag_core.types import SCORES, Candidates, Counterfactual, Drop, Grades, Hit, Metric

SCORE_NAMES = {
    "similarity": "similarity",
    "bm25": "BM25 score",
    "rrf": "fused score (RRF)",
    "score": "score",
}
DISTANCE_NAMES = {
    Metric.COSINE: "cosine distance",
    Metric.L2: "squared L2 distance",
    Metric.IP: "inner-product distance",
    Metric.UNKNOWN: "distance",
}
LATER = ("LLMFilter", "TopK")  # stages that run after the adaptive filter
SHALLOW, FIRST = 100, 60  # a list up to the one is drawn whole, of a deeper one the other at least


@dataclass(frozen=True, slots=True)
class Row:
    """One chunk of the list as it came: its label, what became of it and why."""

    hit: Hit
    grade: int | None
    label: str  # relevant | irrelevant | unjudged
    drop: Drop | None
    weak: bool = False  # a cosine similarity below 0.3

    @property
    def kept(self) -> bool:
        """Whether the pipeline kept it."""
        return self.drop is None

    @property
    def verdict(self) -> str:
        """The word "kept", or by which filter it was dropped."""
        return "kept" if self.drop is None else f"dropped by {self.drop.stage}"

    @property
    def reason(self) -> str:
        """Why it was dropped; of a kept one what the LLM filter said of it, '' where that did not run."""
        return str(self.hit.notes.get("LLMFilter", "")) if self.drop is None else self.drop.reason.text


def label_of(grade: int | None, min_grade: int) -> str:
    """Relevant (grade ≥ min_grade), irrelevant or unjudged."""
    if grade is None:
        return "unjudged"
    return "relevant" if grade >= min_grade else "irrelevant"


def rows_of(outcome: Outcome, min_grade: int) -> list[Row]:
    """One row per chunk of the list as it came, in its order, then what filters brought, by rank.

    A chunk that was dropped and brought again by references is one row, kept.
    """
    drops = {drop.hit.key: drop for drop in outcome.result.drops}
    kept = {hit.chunk.id: hit for hit in reversed(outcome.result.hits)}
    grades: Grades = outcome.case.grades
    found: dict[str, Hit] = {}
    for hit in (*outcome.start.hits, *read_beyond(outcome)):
        found.setdefault(hit.chunk.id, kept.get(hit.chunk.id, hit))
    return [
        Row(
            hit,
            grade := grades.get(hit.chunk.id),
            label_of(grade, min_grade),
            drops.get(hit.key),
            is_weak(hit, outcome.result.metric),
        )
        for hit in found.values()
    ]


def read_beyond(outcome: Outcome) -> list[Hit]:
    """The chunks that a filter brought beyond the list as it came, by rank."""
    had = {hit.key for hit in outcome.start.hits}
    found = (*outcome.result.hits, *(drop.hit for drop in outcome.result.drops))
    return sorted((hit for hit in found if hit.key not in had), key=lambda hit: hit.rank)


def score_kind(hits: Sequence[Hit]) -> str:
    """The score that is drawn: distance where any chunk has one, else the first kind that is there."""
    return next((kind for kind in SCORES if any(kind in hit.scores for hit in hits)), "distance")


def score_name(kind: str, metric: Metric) -> str:
    """The score in words: "cosine distance", or "distance" where the metric is not known."""
    return DISTANCE_NAMES[metric] if kind == "distance" else SCORE_NAMES[kind]


def score_title(kind: str, metric: Metric) -> str:
    """The axis title: name, and metric or direction."""
    if kind != "distance":
        return f"{SCORE_NAMES[kind]} (higher is better)"
    return "distance (metric unknown)" if metric is Metric.UNKNOWN else f"{DISTANCE_NAMES[metric]} (lower is nearer)"


def reaching(outcome: Outcome) -> tuple[Hit, ...]:
    """The chunks that come to the adaptive filter, or would, in its order: those it can judge."""
    cut = [drop.hit for drop in outcome.result.drops if drop.stage in ("AdaptiveGap", *LATER)]
    judged = [hit for hit in (*outcome.result.hits, *cut) if hit.distance is not None and not hit.origin]
    return tuple(sorted(judged, key=lambda hit: (hit.distance, hit.rank)))


def padded(values: Sequence[float]) -> tuple[float, float]:
    """A range around values with room for a marker below and a label above."""
    if not values:
        return (0.0, 1.0)
    low, high = min(values), max(values)
    span = (high - low) or max(abs(high), 1.0) * 0.1
    return (low - span * 0.08, high + span * 0.16)


def gap_top(gaps: Sequence[float], metric: Metric) -> float:
    """The top of the gap axis: room above the largest gap, and the usual threshold in sight where it is near enough."""
    largest = max(gaps, default=0.0)
    usual = DEFAULT_THRESHOLD if metric in (Metric.COSINE, Metric.UNKNOWN) and largest * 12 > DEFAULT_THRESHOLD else 0.0
    return max(largest * 1.2, usual * 1.15) or DEFAULT_THRESHOLD * 1.15


def limits_of(distances: Sequence[float], view: View) -> tuple[dict[str, float], dict[str, float]]:
    """Largest values and steps of the limits' sliders for a list: made for its scale, never below the value set."""
    span = (max(distances) - min(distances)) if distances else 1.0
    small = not distances or max(distances) <= 2.0
    step = 0.001 if small and span >= 0.02 else 10.0 ** math.floor(math.log10(max(span, 1e-6) / 100))
    widest = 1.0 if small else float(f"{span:.1g}") * 2
    relative = view.gap_policy == "relative"
    most = {"gap_threshold": 1.0 if relative else widest / 2, "distance_offset": widest, "relative_offset": 1.0}
    now = {"gap_threshold": view.gap_threshold, "distance_offset": view.distance_offset,
           "relative_offset": view.relative_offset or 0.0}  # fmt: skip
    steps = {"gap_threshold": 0.005 if relative else step, "distance_offset": step, "relative_offset": 0.005}
    return {name: max(most[name], now[name]) for name in most}, steps


def chart_data(outcome: Outcome, rows: Sequence[Row], view: View, selected: str) -> ChartData:
    """All the chart draws for this run; of a deep list what can be read, see `in_sight`."""
    metric, kind = outcome.start.metric, score_kind(outcome.start.hits)
    before = in_reach(reaching(outcome), len(rows), view) if kind == "distance" else ()
    drawn = [row for row in in_sight(rows, before) if kind in row.hit.scores]
    distances = [hit.scores["distance"] for hit in before]
    gaps = [later - earlier for earlier, later in pairwise(distances)]
    adaptive_ran = any(step.stage == "AdaptiveGap" for step in outcome.result.steps)
    largest, steps = limits_of([row.hit.scores[kind] for row in drawn], view)
    return ChartData(
        points=tuple(_point(row, kind) for row in drawn),
        reaching=tuple(hit.chunk.id for hit in before),
        total=len(rows),
        score_kind=kind,
        score_name=score_name(kind, metric),
        score_title=score_title(kind, metric),
        score_range=padded([row.hit.scores[kind] for row in drawn]),
        gap_range=gap_top(gaps, metric),
        limit_maximum=largest,
        step=steps,
        adaptive=view.adaptive_for(outcome.case.query.text) if adaptive_ran else None,
        keep_at_most=view.k if view.top_on else None,
        dropped_later=tuple(row.hit.chunk.id for row in drawn if row.drop and row.drop.stage == "LLMFilter"),
        kept_elsewhere=sum(row.kept for row in rows) - sum(row.kept for row in drawn),
        gap_panel=kind == "distance",
        selected=selected,
    )


def in_reach(before: Sequence[Hit], total: int, view: View) -> tuple[Hit, ...]:
    """Of a deep list's chunks at the adaptive filter as many as it looks at, and 60 at least."""
    return tuple(before if total <= SHALLOW else before[: max(FIRST, view.max_results + 1)])


def in_sight(rows: Sequence[Row], before: Sequence[Hit]) -> list[Row]:
    """The rows that are drawn: a list of up to 100 whole; of a deeper one the first 60 and those that reach the cut."""
    if len(rows) <= SHALLOW:
        return list(rows)
    kept = {hit.key for hit in before}
    return [row for place, row in enumerate(rows) if place < FIRST or row.hit.key in kept]


def _point(row: Row, kind: str) -> Point:
    hit = row.hit
    return Point(
        hit.chunk.id,
        hit.rank,
        hit.chunk.title,
        hit.scores[kind],
        row.label,
        row.grade,
        row.kept,
        row.verdict,
        row.reason,
    )


def would_keep(outcome: Outcome, drop: Drop) -> tuple[Counterfactual, ...]:
    """Per parameter of the filter that dropped a chunk, the nearest value with which it would have kept it."""
    candidates: Candidates = outcome.start
    for stage in flatten(outcome.pipeline):
        if stage.name == drop.stage:
            return stage.would_keep(candidates, drop)
        candidates = stage(candidates)
    return ()


def reading_of_rules(query: str, rows: Sequence[Row], mode: str) -> list[tuple[int, int]]:
    """The parts of the query that satisfy a rule of a kept chunk."""
    rules = [read_rule(row.hit.chunk.query_must) for row in rows if row.kept]
    verdicts = [decide(rule, query, mode) for rule in rules if isinstance(rule, Rule)]
    return [span for verdict in verdicts for part in verdict.parts for span in part.spans]


def context_text(hits: Sequence[Hit]) -> str:
    """The text of chunks as it would be sent to a model: title, then text, a blank line between chunks."""
    return "\n\n".join("\n".join(part for part in (hit.chunk.title, hit.chunk.text) if part) for hit in hits)


def estimated_tokens(text: str) -> int:
    """Characters divided by four, rounded up: a rule of thumb for English, no tokenizer."""
    return math.ceil(len(text) / 4)


def figure(values: Mapping[str, float | None], name: str) -> str:
    """A measure with three digits, – where it is not scored."""
    value = values.get(name)
    return "–" if value is None else f"{value:.3f}"
