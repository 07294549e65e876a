"""A threshold with a guarantee: on average over draws of queries, at most a share α of what is relevant is missed.

Conformal risk control for the knobs whose settings are nested (a looser one keeps all that a tighter one keeps): k of
TopK, the floor of MinSimilarity, the distance offset. The assumption, which a page must state: the queries to come are
exchangeable with the calibration queries. What the captured list itself lacks was lost in retrieval; no cut of it can
promise that, so shares are of the relevant chunks in the list.

Source: Angelopoulos, Bates, Fisch, Lei and Schuster 2024 (conformal risk control, ICLR).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rag_core.errors import InputError
from rag_core.filters.cutoff import cosine_similarity
from rag_core.tune.lists import whole_units
from rag_core.tune.view import Floats
from rag_core.types import Candidates, Case, Hit

ASSUMPTION = "holds on average over draws, where queries to come are of the same kind as the calibration queries"
KNOBS = {
    "k": "TopK.k",
    "min_relevance": "MinSimilarity.min_relevance",
    "distance_offset": "AdaptiveGap.distance_offset",
}


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A knob's setting with its promise."""

    knob: str
    value: float | None  # None: too few queries for this α, only keeping whole lists is safe
    alpha: float
    queries: int  # calibration queries with something relevant in their list
    miss_share: float  # what the setting misses on the calibration queries themselves
    assumption: str = ASSUMPTION


def guarantee(
    starts: Sequence[Candidates], cases: Sequence[Case], knob: str, alpha: float, min_grade: int = 1
) -> Guarantee:
    """The tightest setting of the knob (`k`, `min_relevance`, `distance_offset`) whose expected miss share is ≤ alpha.

    Cases without a relevant chunk in their list take no part. InputError for another knob, an alpha outside 0 to 1, or
    where no case is left.
    """
    if knob not in KNOBS:
        raise InputError(f"knob is {knob[:80]!r}, expected one of {', '.join(KNOBS)}")
    found = [needs(start, case, knob, min_grade) for start, case in zip(starts, cases, strict=True)]
    value, miss = least_loose([one for one in found if len(one)], alpha)
    signed = None if value is None else (-value if knob == "min_relevance" else value)
    return Guarantee(knob, signed, alpha, sum(len(one) > 0 for one in found), miss)


def needs(start: Candidates, case: Case, knob: str, min_grade: int = 1) -> Floats:
    """How loose the knob must be to keep each relevant chunk of a list; similarities come negated."""
    relevant = [
        (place, hit) for place, hit in enumerate(start.hits, 1) if case.grades.get(hit.chunk.id, 0) >= min_grade
    ]
    if knob == "k":
        return np.array([place for place, _ in relevant], dtype=np.float64)
    if knob == "min_relevance":
        return np.array([-_similarity(hit, start) for _, hit in relevant], dtype=np.float64)
    nearest = min((hit.distance for hit in start.hits if hit.distance is not None), default=0.0)
    reached = whole_units([_distance(hit) for _, hit in relevant]) - whole_units([nearest])
    return np.asarray(reached / 1e9, dtype=np.float64)


def _similarity(hit: Hit, start: Candidates) -> float:
    found = cosine_similarity(hit, start.metric)
    if found is None:
        raise InputError(f"query {start.query.id} has a candidate without a cosine similarity, expected one on each")
    return found


def _distance(hit: Hit) -> float:
    if hit.distance is None:
        raise InputError(f"the candidate at rank {hit.rank} has no distance, expected one on each")
    return hit.distance


def least_loose(found: Sequence[Floats], alpha: float) -> tuple[float | None, float]:
    """The least value λ with (n · miss share(λ) + 1) / (n + 1) ≤ alpha, and the miss share there; None and 0: no value.

    `found` has per query what each relevant chunk needs. A loss is at most 1, which is what the added 1 stands for.
    """
    if not 0 < alpha < 1:
        raise InputError(f"alpha is {alpha}, expected more than 0 and less than 1")
    if not found:
        raise InputError("conformal calibration got no query with a relevant chunk in its list, expected at least one")
    count = len(found)
    needed = np.concatenate(found)
    weight = np.concatenate([np.full(len(one), 1 / len(one)) for one in found])
    upward = np.argsort(needed, kind="stable")
    values, last = np.unique(needed[upward], return_index=True)
    ends = np.append(last[1:], len(needed)) - 1
    missed = np.maximum(1 - np.cumsum(weight[upward])[ends] / count, 0.0)
    good = np.flatnonzero((count * missed + 1) / (count + 1) <= alpha + 1e-12)
    return (float(values[good[0]]), float(missed[good[0]])) if len(good) else (None, 0.0)
