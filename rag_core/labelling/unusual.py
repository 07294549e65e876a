"""Which lists of a log are unlike those a pipeline was tuned on: the questions whose labels say most.

A list is seen by the shape of its scores alone, so a log needs no text: how near the first is, and how far behind it
the others lie. Unlikeness is the mean distance to the nearest tuned lists, in units of their own spread; no model is
trained and nothing is said of relevance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rag_core.errors import InputError
from rag_core.types import SCORES, Case, Hit

PLACES = (1, 2, 4, 9, 19, 49)  # 0-based ranks whose score is compared with the first one's
NEIGHBOURS = 3


def unusual_first(cases: Sequence[Case], tuned: Sequence[Case]) -> list[Case]:
    """The cases, the most unlike first, each with `unlikeness` beside its question; equal ones in their order.

    An InputError where the two have no kind of score in common, or fewer than four tuned lists are there.
    """
    known = [case for case in tuned if case.candidates is not None and case.candidates.hits]
    if len(known) <= NEIGHBOURS:
        raise InputError(f"there are {len(known)} tuned lists to compare with, expected {NEIGHBOURS + 1} or more")
    everything = [*known, *(case for case in cases if case.candidates is not None and case.candidates.hits)]
    kind = next(
        (kind for kind in SCORES if all(kind in hit.scores for case in everything for hit in _hits(case))), None
    )
    if kind is None:
        raise InputError("the lists and the tuned ones have no kind of score in common, expected one")
    base = np.array([_shape(case, kind) for case in known])
    spread = np.subtract(*np.percentile(base, [75, 25], axis=0))
    scale = np.where(spread > 0, spread, np.maximum(base.std(axis=0), 1e-9))
    ranked = []
    for case in cases:
        far = float("inf")  # of an empty list
        if _hits(case):
            apart = np.sqrt((((base - _shape(case, kind)) / scale) ** 2).mean(axis=1))
            far = float(np.sort(apart)[:NEIGHBOURS].mean())
        query = replace(case.query, metadata={**case.query.metadata, "unlikeness": round(min(far, 1e6), 4)})
        ranked.append((far, replace(case, query=query)))
    return [case for _, case in sorted(ranked, key=lambda row: -row[0])]


def _hits(case: Case) -> Sequence[Hit]:
    return case.candidates.hits if case.candidates is not None else ()


def _shape(case: Case, kind: str) -> NDArray[np.float64]:
    """The first score, and how far from it the scores at PLACES lie (the last one's where the list is shorter)."""
    scores = [hit.scores[kind] for hit in case.candidates.hits] if case.candidates is not None else [0.0]
    behind = [scores[min(place, len(scores) - 1)] - scores[0] for place in PLACES]
    return np.array([scores[0], *behind])
