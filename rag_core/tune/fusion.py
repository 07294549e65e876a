"""Many fusions of captured hybrid lists at once: the order that each rrf_k and pair of weights gives, in arrays.

The plain twin is Hybrid itself, which fuses a recorded list anew from the ranks its hits hold; the order and so every
figure is the same, as the sum of two quotients rounds alike in both. Only order is computed here, no candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rag_core.retrieve.fuse import ranks_of
from rag_core.retrieve.hybrid import SIDES, Hybrid
from rag_core.tune.lists import Lists, Whole
from rag_core.types import Candidates

NEVER = np.iinfo(np.int64).max  # the rank on a side that does not hold the chunk


@dataclass(frozen=True, eq=False)
class Ranks:
    """Every list's ranks on both sides, its chunks in the order of their ids. Shapes: q lists, k the longest."""

    places: Whole  # (q, k) where a chunk stands in the recorded list
    sides: Whole  # (2, q, k), NEVER where a side lacks the chunk
    inside: NDArray[np.bool_]  # (q, k)

    def order(self, stage: Hybrid) -> Whole:
        """Places in the recorded lists (q, k) in the order of the stage's fusion; what is behind a list comes last."""
        score = np.zeros(self.places.shape)
        for ranks, weight in zip(self.sides, stage.weights, strict=True):
            score += np.where(ranks == NEVER, 0.0, weight / (stage.rrf_k + ranks))
        by = np.argsort(np.where(self.inside, -score, np.inf), axis=1, kind="stable")  # ties stay in the order of ids
        return np.take_along_axis(self.places, by, axis=1)

    def within(self, depth: int) -> Ranks:
        """The ranks of the first `depth` of both sides, as if no more had been read."""
        sides = np.where(self.sides <= depth, self.sides, NEVER)
        return Ranks(self.places, sides, (sides != NEVER).any(axis=0))


def ranks_in(starts: Sequence[Candidates]) -> Ranks | None:
    """The ranks of recorded hybrid lists; None where a list holds a chunk twice or a hit without its ranks."""
    longest = max((len(start.hits) for start in starts), default=0)
    places = np.broadcast_to(np.arange(longest), (len(starts), longest)).copy()
    sides = np.full((len(SIDES), len(starts), longest), NEVER)
    inside = np.zeros((len(starts), longest), dtype=bool)
    for at, start in enumerate(starts):
        ids = [hit.chunk.id for hit in start.hits]
        found = [ranks_of(hit) for hit in start.hits]
        if not start.recorded or not ids or not all(found) or len(set(ids)) < len(ids):
            return None
        by_id = sorted(range(len(ids)), key=ids.__getitem__)
        places[at, : len(ids)], inside[at, : len(ids)] = by_id, True
        for number, side in enumerate(SIDES):
            sides[number, at, : len(ids)] = [found[place].get(side, NEVER) for place in by_id]
    return Ranks(places, sides, inside)


def fused_lists(ordered: Lists, order: Whole) -> Lists:
    """Lists in their own order (no distances), put into another order: how many of the first n are relevant then."""
    flags = np.diff(ordered.found, axis=1)
    found = np.zeros_like(ordered.found)
    np.cumsum(np.take_along_axis(flags, order, axis=1), axis=1, out=found[:, 1:])
    return replace(ordered, found=found)
