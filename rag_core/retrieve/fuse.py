"""Reciprocal rank fusion: several rankings of the same chunks become one, by rank alone. Pure functions over ids.

Where the rankings come from and what their scores mean is the business of the sources.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rag_core.errors import InputError
from rag_core.types import RANKS, Hit

RRF_K = 60


@dataclass(frozen=True, slots=True)
class Fused:
    """An id with its fused score and its 1-based rank in each list, None where a list does not hold it."""

    id: str
    score: float
    ranks: tuple[int | None, ...]


def fuse(lists: Sequence[Sequence[str]], weights: Sequence[float] = (), k: float = RRF_K) -> list[Fused]:
    """Ids by descending Σ weight / (k + rank) over the lists that hold them, ties by id.

    Ranks start at 1; an id that a list repeats counts where it came first; weights are 1 where none are given.
    Cormack, Clarke and Büttcher 2009.
    """
    weights = tuple(weights) or (1.0,) * len(lists)
    check_weights(weights, len(lists), k)
    ranks: dict[str, list[int | None]] = {}
    for at, ids in enumerate(lists):
        for rank, one in enumerate(ids, 1):
            places = ranks.setdefault(one, [None] * len(lists))
            places[at] = places[at] or rank
    fused = [Fused(one, fused_score(places, weights, k), tuple(places)) for one, places in ranks.items()]
    return sorted(fused, key=lambda one: (-one.score, one.id))


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
