"""Reciprocal rank fusion: several rankings of the same chunks become one, by rank alone. Pure functions over ids.

Where the rankings come from and what their scores mean is the business of the sources.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from rag_core.errors import InputError
from rag_core.types import RANKS, Hit

RRF_K = 60

Terms = Mapping[int | None, float]
Ranks = tuple[int | None, ...]
"""The 1-based rank in each list, None where a list does not hold the id."""
Fused = tuple[str, float, Ranks]
"""An id with its fused score and its ranks; a plain tuple, which costs half of one with names."""


def fuse(lists: Sequence[Sequence[str]], weights: Sequence[float] = (), k: float = RRF_K) -> list[Fused]:
    """Ids by descending Σ weight / (k + rank) over the lists that hold them, ties by id.

    Ranks start at 1; an id that a list repeats counts where it came first; weights are 1 where none are given.
    Cormack, Clarke and Büttcher 2009.
    """
    weights = tuple(weights) or (1.0,) * len(lists)
    check_weights(weights, len(lists), k)
    places = [dict(zip(reversed(ids), range(len(ids), 0, -1), strict=True)) for ids in lists]
    terms = [_terms(len(ids), weight, k) for ids, weight in zip(lists, weights, strict=True)]
    every = list(set().union(*places))
    ranks = [list(map(place.get, every)) for place in places]
    added = [list(map(term.__getitem__, row)) for term, row in zip(terms, ranks, strict=True)]
    totals = map(math.fsum, zip(*added, strict=True))  # negative: sorted, these are the ranking
    rows = sorted(zip(totals, every, zip(*ranks, strict=True), strict=True))
    return [(one, -negative, ranks_of_one) for negative, one, ranks_of_one in rows]


@lru_cache(maxsize=64)
def _terms(ranks: int, weight: float, k: float) -> Terms:
    """What each rank of a list adds to a negative score; None, no rank, adds nothing. Most lists are equally deep."""
    return {None: 0.0, **{rank: -weight / (k + rank) for rank in range(1, ranks + 1)}}


def fused_score(ranks: Sequence[int | None], weights: Sequence[float], k: float = RRF_K) -> float:
    """Σ weight / (k + rank) over the lists that have a rank; exactly rounded, so that the lists' order is no matter."""
    return math.fsum(weight / (k + rank) for weight, rank in zip(weights, ranks, strict=True) if rank is not None)


def fused_anew(
    hits: Sequence[Hit], sides: Sequence[str], weights: Sequence[float], k: float = RRF_K
) -> tuple[Hit, ...] | None:
    """A recorded fused list as other weights or another k would have fused it, from the ranks its hits hold.

    Exact where the list holds all of each side, as a captured one does. None where a hit has no recorded rank.
    """
    ranks = [ranks_of(hit) for hit in hits]
    if not ranks or not all(ranks):
        return None
    scored = [
        (-fused_score([one.get(side) for side in sides], weights, k), hit.chunk.id, hit)
        for one, hit in zip(ranks, hits, strict=True)
    ]
    scored.sort(key=lambda one: one[:2])
    return tuple(
        replace(hit, rank=place, scores={**hit.scores, "rrf": -score})
        for place, (score, _, hit) in enumerate(scored, 1)
    )


def check_weights(weights: Sequence[float], lists: int, k: float) -> None:
    """Refuse weights that do not fit the lists, are negative or all 0, and a k below 0."""
    if len(weights) != lists or not all(math.isfinite(one) and one >= 0 for one in weights) or not any(weights):
        raise InputError(
            f"fusion has weights {tuple(weights)!r:.80}, expected {lists} numbers of at least 0, not all 0"
        )
    if not (math.isfinite(k) and k >= 0):
        raise InputError(f"fusion has k {k!r}, expected a number of at least 0")


def ranks_of(hit: Hit) -> Mapping[str, int]:
    """The hit's ranks in the lists it was fused from (`dense`, `lexical`); empty where it was not fused."""
    found = hit.notes.get(RANKS)
    return found if isinstance(found, Mapping) else {}
