"""What is there to gain, and does the gap know anything: oracles per query, and AUC of gap and top distance.

The best cut of a list is what a perfect cutoff rule could give, the perfect filter what any filter could, and the rest
was lost before: in retrieval. None of this is reachable; it says where work would pay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from rag_core.measure.significance import mean_interval
from rag_core.tune.arrays import Floats, Lists, lists_of
from rag_core.types import SCORES, Candidates, Case

_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class QueryHeadroom:
    """One query: SetF of the best cut and of a perfect filter of this list, and the share retrieval never brought."""

    query_id: str
    best_length: int  # the shortest list with the best SetF
    best_cut: float
    perfect_filter: float
    lost_in_retrieval: float  # share of the relevant chunks that the list does not hold


@dataclass(frozen=True, slots=True)
class Signal:
    """How well a score tells right from wrong: AUC 0.5 is chance."""

    name: str
    queries: int
    auc: float | None  # None where all queries are alike
    low: float | None
    high: float | None

    @property
    def better_than_chance(self) -> bool:
        """Whether the whole interval lies above chance."""
        return self.low is not None and self.low > 0.5

    def sentence(self) -> str:
        """The finding in plain words."""
        if self.auc is None or self.low is None or self.high is None:
            return f"{self.name}: these {self.queries} queries cannot tell"
        found = f"{self.name}: AUC {self.auc:.3f} [{self.low:.3f}, {self.high:.3f}] over {self.queries} queries"
        return found if self.better_than_chance else f"{found}, no better than chance"


def headroom(starts: Sequence[Candidates], cases: Sequence[Case], min_grade: int = 1) -> list[QueryHeadroom]:
    """The oracles of every scored query, in order; a chunk that a list holds twice counts where it came first."""
    lists = lists_of([distinct(start) for start in starts], cases, min_grade)
    best = oracle_f(lists)
    found = []
    for at, case in enumerate(cases):
        if lists.scored[at]:
            held, total = int(lists.found[at, -1]), int(lists.totals[at])
            row = best[at, : int(lists.lengths[at]) + 1]
            length = int(np.argmax(row))
            found.append(
                QueryHeadroom(case.query.id, length, float(row[length]), 2 * held / (held + total), 1 - held / total)
            )
    return found


def distinct(start: Candidates) -> Candidates:
    """The list with every chunk once, where it came first."""
    first = {hit.chunk.id: hit for hit in reversed(start.hits)}
    return replace(start, hits=tuple(hit for hit in start.hits if first[hit.chunk.id] is hit))


def oracle_f(lists: Lists) -> Floats:
    """SetF of every list cut to every length, shape (q, k + 1); lengths behind a list's end count as its end."""
    lengths = np.minimum(np.arange(lists.found.shape[1])[None, :], lists.lengths[:, None])
    found: Floats = 2 * lists.found / (lengths + lists.totals[:, None])
    return found


def gap_signal(
    starts: Sequence[Candidates], cases: Sequence[Case], max_results: int = 15, min_grade: int = 1
) -> Signal:
    """Does a larger gap stand where the list should end? AUC within each query, mean and interval over queries.

    Of a query's eligible gaps (not the first) those after which SetF is best are right, the others wrong; queries whose
    eligible gaps are all one or the other say nothing and are left out.
    """
    lists = lists_of([distinct(start) for start in starts], cases, min_grade)
    worth = oracle_f(lists)
    found = []
    for at in np.flatnonzero(lists.scored):
        looked = min(int(lists.lengths[at]), max_results)
        gaps = np.diff(lists.distances[at, :looked])[1:]
        values = worth[at, 2:looked]
        right = values >= values.max(initial=0.0) - 1e-12
        if 0 < right.sum() < len(right):
            found.append(auc(gaps[right].astype(np.float64), gaps[~right].astype(np.float64)))
    return _over_queries("gap size", found)


def top_distance_signal(
    starts: Sequence[Candidates], cases: Sequence[Case], min_grade: int = 1, seed: int = 0
) -> Signal:
    """Is a nearer first chunk more often relevant? AUC over queries, percentile interval from resampled queries."""
    pairs = []
    for start, case in zip(starts, cases, strict=True):
        first = min(
            (hit for hit in start.hits if hit.distance is not None),
            key=lambda hit: hit.scores["distance"],
            default=None,
        )
        grade = None if first is None else case.grades.get(first.chunk.id)
        if first is not None and grade is not None:
            pairs.append((-first.scores["distance"], grade >= min_grade))
    scores = np.array([score for score, _ in pairs])
    right = np.array([flag for _, flag in pairs], dtype=bool)
    if not 0 < right.sum() < len(right):
        return Signal("top distance", len(pairs), None, None, None)
    dice, drawn = np.random.default_rng(seed), []
    for _ in range(_RESAMPLES):
        rows = dice.integers(len(scores), size=len(scores))
        flags = right[rows]
        if 0 < flags.sum() < len(flags):  # draws without both kinds are drawn past
            drawn.append(auc(scores[rows][flags], scores[rows][~flags]))
    low, high = np.quantile(drawn, [0.025, 0.975]).tolist() if drawn else (None, None)
    return Signal("top distance", len(pairs), auc(scores[right], scores[~right]), low, high)


def score_signals(starts: Sequence[Candidates], cases: Sequence[Case], min_grade: int = 1) -> list[Signal]:
    """Does a better score mean a relevant chunk? Per score AUC within each query, mean and interval over queries.

    Judged chunks only; queries whose judged chunks are all of one kind say nothing and are left out.
    """
    signals = []
    for kind in SCORES:
        by_query = []
        for start, case in zip(starts, cases, strict=True):
            known = [
                (hit.scores[kind], case.grades[hit.chunk.id] >= min_grade)
                for hit in start.hits
                if kind in hit.scores and hit.chunk.id in case.grades
            ]
            values = np.array([value for value, _ in known]) * (-1 if kind == "distance" else 1)
            right = np.array([flag for _, flag in known], dtype=bool)
            if 0 < right.sum() < len(right):
                by_query.append(auc(values[right], values[~right]))
        if by_query:
            signals.append(_over_queries(kind, by_query))
    return signals


def _over_queries(name: str, by_query: Sequence[float]) -> Signal:
    low, high, _ = mean_interval(by_query)
    return Signal(name, len(by_query), fmean(by_query) if by_query else None, low, high)


def auc(right: Floats, wrong: Floats) -> float:
    """The chance that a right one scores above a wrong one, ties counting half (Mann and Whitney 1947)."""
    ordered = np.sort(wrong)
    below = np.searchsorted(ordered, right, side="left")
    up_to = np.searchsorted(ordered, right, side="right")
    return float((below + up_to).sum() / (2 * len(right) * len(wrong)))
