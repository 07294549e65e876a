"""What Headroom shows, computed: oracles beside the best fixed k, chunks with distance and label, curves, a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_core.errors import InputError
from rag_core.measure.scores import score
from rag_core.stage import Stage
from rag_core.tune import tune as tuning
from rag_core.tune.headroom import (
    QueryHeadroom,
    Signal,
    gap_signal,
    headroom,
    means,
    top_distance_signal,
)
from rag_core.tune.variants import Captures
from rag_core.types import Candidates, Case

UNJUDGED, IRRELEVANT, RELEVANT = -1, 0, 1


@dataclass(frozen=True, eq=False)
class Chunks:
    """Every chunk with a distance: the distance and −1 unjudged, 0 irrelevant, 1 relevant."""

    distances: NDArray[np.float64]
    labels: NDArray[np.int64]
    queries: int


@dataclass(frozen=True, eq=False)
class Curve:
    """Precision-recall and ROC over thresholds of distance, and what chance would give."""

    thresholds: list[float]  # keep what is at most this far
    precision: list[float]
    recall: list[float]
    roc_thresholds: list[float]
    false_rate: list[float]
    true_rate: list[float]
    ap: float
    auc: float
    share: float  # of relevant chunks among all that take part
    chunks: int


@dataclass(frozen=True, eq=False)
class Room:
    """All of the page for some queries behind some stages."""

    starts: tuple[Candidates, ...]
    cases: tuple[Case, ...]
    min_grade: int
    found: list[QueryHeadroom]
    now: list[float]  # SetF of the best fixed k, in the order of `found`
    baseline: str
    signals: tuple[Signal, Signal]

    @property
    def means(self) -> dict[str, float]:
        """Macro means: now, best_cut, perfect_filter, lost_in_retrieval."""
        return {"now": fmean(self.now), **means(self.found)}

    @property
    def verdict(self) -> str:
        """Whether retrieval or filtering is the problem, in plain words."""
        mean = self.means
        filtering, retrieval = mean["perfect_filter"] - mean["now"], 1 - mean["perfect_filter"]
        cut = mean["best_cut"] - mean["now"]
        if max(filtering, retrieval) < 0.02:
            return f"Little is left to gain: {self.baseline} is nearly perfect on these lists."
        if retrieval >= filtering:
            return (
                f"Limited by retrieval: {retrieval:.3f} of SetF is lost because relevant chunks are not in the lists, "
                f"{filtering:.3f} could be gained by filtering."
            )
        return (
            f"Limited by filtering: a perfect filter of these lists would bring {filtering:.3f} of SetF, {cut:.3f} of "
            f"it by cutting each list at its best place; retrieval lost {retrieval:.3f}."
        )

    def limited_by(self, at: int) -> str:
        """The same for one query."""
        one = self.found[at]
        retrieval, filtering = 1 - one.perfect_filter, one.perfect_filter - self.now[at]
        if max(retrieval, filtering) < 0.02:
            return "nothing to gain"
        return "retrieval" if retrieval >= filtering else "filter"


def room(cases: Sequence[Case], front: tuple[Stage, ...], min_grade: int, max_results: int = 15) -> Room:
    """Oracles, the best fixed k of the same queries, signals. InputError where no query is labelled."""
    scored = [case for case in cases if score([], case.grades, case.relevant_total, min_grade, ()).scored]
    if not scored:
        raise InputError(f"none of {len(cases)} queries has a relevant label, expected at least one")
    starts = Captures(scored, min_grade).after(front).starts
    pipeline, _, _ = tuning.fixed_k(scored, front, "SetF", None, min_grade)
    now = [value or 0.0 for value in tuning.values_of(scored, pipeline, "SetF", min_grade)]
    signals = (
        gap_signal(starts, scored, max_results, min_grade),
        top_distance_signal(starts, scored, min_grade),
    )
    found = headroom(starts, scored, min_grade)
    return Room(starts, tuple(scored), min_grade, found, now, f"best {pipeline.label}", signals)


def chunks_of(found: Room) -> Chunks:
    """Every chunk of every list that has a distance."""
    distances, labels = [], []
    for start, case in zip(found.starts, found.cases, strict=True):
        for hit in start.hits:
            if hit.distance is not None:
                grade = case.grades.get(hit.chunk.id)
                distances.append(hit.distance)
                labels.append(UNJUDGED if grade is None else int(grade >= found.min_grade))
    return Chunks(np.array(distances), np.array(labels, dtype=np.int64), len(found.cases))


def curve_of(chunks: Chunks, unjudged_too: bool) -> Curve | None:
    """Both curves by scikit-learn; None where the chunks are all of one kind."""
    from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

    chosen = np.ones(len(chunks.labels), dtype=bool) if unjudged_too else chunks.labels != UNJUDGED
    right, near = chunks.labels[chosen] == RELEVANT, -chunks.distances[chosen]
    if not 0 < right.sum() < len(right):
        return None
    precision, recall, thresholds = precision_recall_curve(right, near, drop_intermediate=True)
    false_rate, true_rate, cuts = roc_curve(right, near)
    keep = _spread(len(thresholds))
    kept = _spread(len(cuts))
    return Curve(
        _listed(-thresholds[keep]), _listed(precision[:-1][keep]), _listed(recall[:-1][keep]),
        _listed(np.where(np.isfinite(cuts), -cuts, 0.0)[kept]), _listed(false_rate[kept]), _listed(true_rate[kept]),
        float(average_precision_score(right, near)), float(roc_auc_score(right, near)),
        float(right.mean()), len(right),
    )  # fmt: skip


def _spread(count: int, most: int = 400) -> NDArray[np.int64]:
    """At most so many places, evenly over all."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))


def _listed(values: Any) -> list[float]:
    return [float(value) for value in values]


def at_threshold(chunks: Chunks, threshold: float, unjudged_too: bool) -> tuple[float, float, int]:
    """Precision and recall of keeping what is at most so far, over all chunks together, and how many that keeps."""
    chosen = np.ones(len(chunks.labels), dtype=bool) if unjudged_too else chunks.labels != UNJUDGED
    right, kept = chunks.labels[chosen] == RELEVANT, chunks.distances[chosen] <= threshold + 1e-12
    hits = int((right & kept).sum())
    return hits / max(int(kept.sum()), 1), hits / max(int(right.sum()), 1), int(kept.sum())
