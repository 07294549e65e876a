"""Captured result lists as arrays: what a sweep needs of every query, and nothing else.

Distances are whole units of 1e-9, as in the plain rule, so that every comparison is exact. Which chunk is relevant and
which query is scored follows scores.py. Settings are swept over these arrays in sweep.py and optimum.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rag_core.errors import InputError
from rag_core.measure.scores import score
from rag_core.types import Candidates, Case, Hit, Order

Whole = NDArray[np.int64]
BEYOND = 2**62  # stands behind every list: further than any distance
_WIDEST = 2**40  # units that the chunks of one list may lie apart to stand in one row with the others
_MOST_LISTS = 2**21
FARTHEST = 2**60  # thresholds and offsets of more units than this reach everything all the same


def whole_units(values: ArrayLike) -> Whole:
    """Distances in whole units of 1e-9, halves up: the array twin of `rag_core.filters.cut.units`."""
    with np.errstate(over="ignore"):
        exact = np.asarray(values, dtype=np.float64) * 1e9 + 0.5
    return np.floor(np.minimum(exact, FARTHEST)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Lists:
    """One ascending list of distances per query with its labels. Shapes: q queries, k the longest list's length."""

    distances: Whole  # (q, k) in units, BEYOND behind the end of a list
    lengths: Whole  # (q,)
    found: NDArray[np.int32]  # (q, k + 1): how many of the first n are relevant; 0 throughout where not scored
    totals: Whole  # (q,) relevant in all; 1 where not scored, to divide by
    scored: NDArray[np.bool_]  # (q,)
    kept_always: Whole  # (q,) hits that the cut lets pass unjudged
    found_always: Whole  # (q,) how many of those are relevant

    @cached_property
    def nearest(self) -> Whole:
        """Distance of each list's first chunk, shape (q,); 0 for an empty list."""
        return np.where(self.lengths > 0, self.distances[:, 0] if self.distances.shape[1] else 0, 0)

    @cached_property
    def largest_gap(self) -> Whole:
        """The largest eligible gap up to each place, shape (q, k − 2 or 0): column j looks at gaps 1 … j + 1."""
        return np.maximum.accumulate(np.diff(self.distances, axis=1)[:, 1:], axis=1)

    @cached_property
    def largest_gap_at(self) -> NDArray[np.int32]:
        """How many chunks stand before that gap, the first of equals; same shape as `largest_gap`."""
        places = np.broadcast_to(np.arange(self.largest_gap.shape[1], dtype=np.int32), self.largest_gap.shape)
        rises = np.diff(self.largest_gap, axis=1, prepend=-1) > 0
        return np.maximum.accumulate(np.where(rises, places, 0), axis=1) + np.int32(2)

    @cached_property
    def _in_one_row(self) -> Whole | None:
        """All lists behind each other as one ascending array, so that one search serves all; None: too far or many."""
        count, length = self.distances.shape
        inside = np.arange(length) < self.lengths[:, None]
        behind = np.where(inside, self.distances - self.nearest[:, None], _WIDEST)
        if count >= _MOST_LISTS or (inside & (behind >= _WIDEST)).any():
            return None
        return np.asarray((behind + np.arange(count)[:, None] * (2 * _WIDEST)).ravel())

    def within(self, reach: Whole, rows: Whole | None = None) -> Whole:
        """How many of each list lie at most so far behind its nearest. `reach` in units, shape (q, n) or (1, n).

        With `rows` of the lists these stand for: q is the number of rows.
        """
        one_row, places = self._in_one_row, (np.arange(len(self.lengths)) if rows is None else rows)[:, None]
        if one_row is not None:
            wanted = np.minimum(reach, _WIDEST - 1) + places * (2 * _WIDEST)
            reached = np.searchsorted(one_row, wanted, side="right")
            return np.asarray(reached - places * self.distances.shape[1], dtype=np.int64)
        return self._within_each(reach, rows)

    def _within_each(self, reach: Whole, rows: Whole | None = None) -> Whole:
        """The same, list by list."""
        rows = np.arange(len(self.lengths)) if rows is None else rows
        far = np.broadcast_to(reach, (len(rows), reach.shape[1])) + self.nearest[rows, None]
        counted = [np.searchsorted(self.distances[at], one, side="right") for at, one in zip(rows, far, strict=True)]
        return np.asarray(counted, dtype=np.int64).reshape(far.shape)


def lists_of(starts: Sequence[Candidates], cases: Sequence[Case], min_grade: int = 1) -> Lists:
    """The lists that a cut gets (after whatever stands before it), with the labels of their cases in the same order.

    As the cut does, sorts a fused list by distance and lets expansions, hops and hits without a distance pass.
    InputError where a list in order of distance does not ascend.
    """
    distances, relevant, passing = [], [], []
    for start, case in zip(starts, cases, strict=True):
        ranked = [(hit.distance, hit.rank, hit) for hit in start.hits if hit.distance is not None and not hit.origin]
        if start.order is not Order.DISTANCE:
            ranked.sort(key=lambda one: one[:2])
        judged = {hit.key for _, _, hit in ranked}
        distances.append([distance for distance, _, _ in ranked])
        relevant.append([_is_relevant(hit, case, min_grade) for _, _, hit in ranked])
        passing.append([_is_relevant(hit, case, min_grade) for hit in start.hits if hit.key not in judged])
    blank = [score([], case.grades, case.relevant_total, min_grade, ()) for case in cases]
    totals = [one.relevant_total if one.scored else None for one in blank]
    return make_lists(distances, relevant, totals, passing)


def _is_relevant(hit: Hit, case: Case, min_grade: int) -> bool:
    return case.grades.get(hit.chunk.id, 0) >= min_grade


def make_lists(
    distances: Sequence[Sequence[float]],
    relevant: Sequence[Sequence[bool]],
    totals: Sequence[int | None],
    passing: Sequence[Sequence[bool]] | None = None,
) -> Lists:
    """Lists from plain sequences, one entry per query.

    Per query: ascending distances, whether each chunk is relevant, how many are relevant in all (None: not scored), and
    whether each hit that the cut lets pass is relevant. InputError for distances that do not ascend.
    """
    scored = np.array([bool(total) for total in totals], dtype=bool)
    lengths = np.array([len(one) for one in distances], dtype=np.int64)
    whole = np.full((len(lengths), int(lengths.max(initial=0))), BEYOND, dtype=np.int64)
    found = np.zeros((len(lengths), whole.shape[1] + 1), dtype=np.int32)
    for at, (row, flags) in enumerate(zip(distances, relevant, strict=True)):
        whole[at, : len(row)] = _ascending(at, row)
        if scored[at]:
            found[at, 1 : len(row) + 1] = np.cumsum(np.asarray(flags, dtype=bool))
            found[at, len(row) + 1 :] = found[at, len(row)]
    extra = passing or [()] * len(lengths)
    return Lists(
        distances=whole,
        lengths=lengths,
        found=found,
        totals=np.array([total or 1 for total in totals], dtype=np.int64),
        scored=scored,
        kept_always=np.array([len(one) for one in extra], dtype=np.int64),
        found_always=np.array([sum(one) for one in extra], dtype=np.int64) * scored,
    )


def _ascending(at: int, row: Sequence[float]) -> Whole:
    """One list's distances in units, or an InputError that names the list."""
    values = np.asarray(row, dtype=np.float64)
    if not np.isfinite(values).all() or (np.diff(values) < 0).any():
        raise InputError(
            f"list {at + 1} of a sweep has distances that are not finite or descend, expected ascending ones"
        )
    return whole_units(values)
