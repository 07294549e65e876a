"""The lists under fixed limits and policy: where each would be cut, and what that is worth, for many settings at once.

Shared by the plane of a grid (sweep.py) and the optimum of the continuous plane (optimum.py); decides nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rag_core.errors import InputError
from rag_core.filters.cut import POLICIES
from rag_core.tune.lists import FARTHEST, Lists, Whole, whole_units

Floats = NDArray[np.float64]


class Sums(NamedTuple):
    """Four quantities in arrays of one shape: of every query, or summed over queries, or their means."""

    SetP: Floats
    SetR: Floats
    SetF: Floats
    kept: Floats


def settings_array(name: str, values: Sequence[float]) -> Floats:
    """The values of one setting as an array; InputError for one the plain rule refuses."""
    array = np.asarray(values, dtype=np.float64)
    bad = array[~(np.isfinite(array) & (array >= 0))]
    if array.ndim != 1 or not array.size or bad.size:
        got = f"is {bad[0]}" if bad.size else f"has {array.size} values in {array.ndim} dimensions"
        raise InputError(f"{name} {got}, expected a list of numbers of at least 0")
    return array


def _precision(found: Floats, kept: Floats, totals: Floats) -> Floats:
    wanted = np.maximum(kept, 1.0)
    return np.divide(found, wanted, out=wanted)


def _f_measure(found: Floats, kept: Floats, totals: Floats) -> Floats:
    both = kept + totals
    np.divide(found, both, out=both)
    both *= 2.0
    return both


_WORTH: tuple[Callable[[Floats, Floats, Floats], Floats], ...] = (
    _precision,
    lambda found, kept, totals: found / totals,
    _f_measure,
    lambda found, kept, totals: kept,
)
"""The quantities of Sums from relevant kept, kept and relevant in all; few temporary arrays, which is what costs."""


class View:
    """The lists under fixed min_results, max_results and policy: where each would be cut, and what that is worth."""

    def __init__(
        self,
        lists: Lists,
        min_results: int,
        max_results: int,
        policy: str,
        front: Whole | None = None,
        back: Whole | None = None,
        rows: Whole | None = None,
    ) -> None:
        """Look at the first `max_results` of every list. InputError for settings the plain rule refuses.

        `front` and `back` (q,) are how many chunks plain cutoffs leave of each list before and after the cut. `rows`
        names which list each row is about, some of them or one under several fronts; q is then the number of rows.
        """
        if policy not in POLICIES:
            raise InputError(f"gap_policy is {policy!r}, expected one of {', '.join(POLICIES)}")
        if not 0 <= min_results <= max_results:
            raise InputError(f"min_results is {min_results}, expected 0 to max_results ({max_results})")
        self.lists, self.policy = lists, policy
        self.min_results, self.max_results = min_results, max_results
        queries = np.arange(len(lists.lengths)) if rows is None else rows
        lengths, nearest = (
            (lists.lengths, lists.nearest) if rows is None else (lists.lengths[rows], lists.nearest[rows])
        )
        reached = lengths if front is None else np.minimum(lengths, front)
        self.looked = np.minimum(reached, max_results)
        self.ceiling = self.looked if back is None else np.minimum(self.looked, back)
        last = lists.distances[queries, np.maximum(self.looked - 1, 0)] if lists.distances.shape[1] else self.looked
        self.span = np.where(self.looked > 0, last - nearest, 0)
        self.has_gap = self.looked > 2
        self._last_gap = np.where(self.has_gap, self.looked - 3, 0)  # the column of largest_gap that sees them all
        self._queries = queries
        self._known: tuple[Floats, tuple[Whole, Whole]] | None = None

    @property
    def largest(self) -> Whole:
        """Each list's largest eligible gap in units; −1 where there is none."""
        if not self.has_gap.any():
            return np.full(len(self.looked), -1)
        return np.where(self.has_gap, self.lists.largest_gap[self._queries, self._last_gap], -1)

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Which entries of the lists' `largest_gap` lie within what is looked at."""
        seen: NDArray[np.bool_] = np.arange(self.lists.largest_gap.shape[1]) < np.maximum(self.looked - 2, 0)[:, None]
        return seen

    def clamp(self, lengths: Whole, queries: Whole | None = None) -> Whole:
        """Lengths (q, n) held between min_results and what is looked at, then what the cutoffs behind leave."""
        ceiling = self.ceiling if queries is None else self.ceiling[queries]
        return np.minimum(np.maximum(lengths, self.min_results), ceiling[:, None])

    def gap_cuts(self, thresholds: Floats) -> tuple[Whole, Whole]:
        """For ascending thresholds: at how many of them each list is cut at a gap (q,), and its length then.

        Lengths have shape (q, 1) where the threshold does not move the cut, else (q, thresholds).
        """
        if self._known is None or self._known[0] is not thresholds:  # a plane asks for counts, then for sums
            self._known = (thresholds, self._gap_cuts(thresholds))
        return self._known[1]

    def _gap_cuts(self, thresholds: Floats) -> tuple[Whole, Whole]:
        if not self.has_gap.any():
            return np.zeros_like(self.looked), self.clamp(np.zeros((len(self.looked), 1), dtype=np.int64))
        if self.policy == "first":
            return self._first_cuts(whole_units(thresholds))
        if self.policy == "relative":
            wanted = np.floor(thresholds * self.span[:, None] + 0.5)
            counts = (wanted <= self.largest[:, None]).sum(axis=1) * (self.span > 0)
        else:
            counts = np.searchsorted(whole_units(thresholds), self.largest, side="right")
        at = self.lists.largest_gap_at[self._queries, self._last_gap].astype(np.int64)
        return counts, self.clamp(at[:, None])

    def _first_cuts(self, thresholds: Whole) -> tuple[Whole, Whole]:
        """The first gap of at least a threshold is where the largest gap so far first reaches it."""
        places = np.stack([np.searchsorted(row, thresholds) for row in self.lists.largest_gap])[self._queries]
        counts = ((places <= self._last_gap[:, None]) & self.has_gap[:, None]).sum(axis=1)
        return counts, self.clamp(places + 2)

    def relative_within(self, fractions: Floats) -> Whole:
        """How many of each list lie within each fraction of its span, shape (q, fractions)."""
        with np.errstate(over="ignore"):
            reach = np.floor(np.minimum(fractions * self.span[:, None] + 0.5, FARTHEST))
        return self.lists.within(reach.astype(np.int64), self._queries)

    def kept(self, thresholds: Floats, offsets: Floats, *, relative_offset: bool = False) -> Whole:
        """How many of each list n settings keep (q, n): hits passed unjudged are not counted.

        Either n ascending thresholds and a single offset, n offsets and a single threshold, or one of each.
        """
        counts, lengths = self.gap_cuts(thresholds)
        within = self.relative_within(offsets) if relative_offset else self.lists.within(whole_units(offsets)[None, :])
        reached = self.clamp(within if relative_offset else within[self._queries])
        return np.where(np.arange(len(thresholds)) < counts[:, None], lengths, reached)

    def worth(self, lengths: Whole, queries: Whole | None = None) -> Sums:
        """SetP, SetR, SetF (0 where not scored) and the number kept of lists (all, or these) cut to lengths (q, n)."""
        return Sums(*self.worths(lengths, (0, 1, 2, 3), queries))

    def worths(self, lengths: Whole, wanted: Sequence[int], queries: Whole | None = None) -> Iterator[Floats]:
        """Only some of what `worth` gives, by their places in Sums, one after the other."""
        lists, rows = self.lists, self._queries if queries is None else queries
        # one flat look-up is faster than one in two dimensions
        found = np.take(lists.found, lengths + (rows * lists.found.shape[1])[:, None]).astype(np.float64)
        kept = lengths.astype(np.float64)
        if lists.kept_always.any():
            found += lists.found_always[rows, None]
            kept += lists.kept_always[rows, None]
        totals = lists.totals[rows, None].astype(np.float64)
        for one in wanted:
            yield _WORTH[one](found, kept, totals)

    def divisors(self) -> Floats:
        """What sums over queries are divided by to be means, in the order of Sums. InputError: no query is scored."""
        scored = float(self.lists.scored.sum())
        if not scored:
            count = len(self.lists.scored)
            raise InputError(f"a sweep got {count} queries and none with a relevant label, expected at least one")
        return np.array([scored, scored, scored, float(len(self.looked))])

    def gap_counts(self, thresholds: Floats) -> Whole:
        """For ascending thresholds: at how many of them each list is cut at a gap (q,)."""
        if self.policy != "first":
            return self.gap_cuts(thresholds)[0]
        counts = np.zeros(len(self.looked), dtype=np.int64)
        query, _, _, upto = self._records(thresholds)
        np.maximum.at(counts, query, upto)
        return counts

    def gap_sums(self, thresholds: Floats, wanted: Sequence[int] = (0, 1, 2, 3)) -> Floats:
        """Sums of the wanted quantities over the lists each threshold cuts at a gap, shape (wanted, thresholds)."""
        count = len(thresholds)
        if self.policy == "first":
            query, column, begin, upto = self._records(thresholds)
            lengths = np.minimum(np.maximum(column + 2, self.min_results), self.ceiling[query])
            worths = [one[:, 0] for one in self.worths(lengths[:, None], wanted, query)]
            steps = [np.bincount(begin, one, count + 1) - np.bincount(upto, one, count + 1) for one in worths]
            return np.asarray(np.cumsum(np.stack(steps), axis=1)[:, :-1], dtype=np.float64)
        counts, lengths = self.gap_cuts(thresholds)
        worths = [one[:, 0] for one in self.worths(lengths, wanted)]
        ending = np.stack([np.bincount(counts, one, count + 1) for one in worths])
        # at a threshold count those whose own lies above it
        return np.asarray(np.cumsum(ending[:, :0:-1], axis=1)[:, ::-1], dtype=np.float64)

    def _records(self, thresholds: Floats) -> tuple[Whole, Whole, Whole, Whole]:
        """Every gap larger than those before it: list, column of largest_gap, and the thresholds begin … upto − 1.

        At those thresholds it is the first gap that is large enough.
        """
        if not self.has_gap.any():
            nothing = np.zeros(0, dtype=np.int64)
            return nothing, nothing, nothing, nothing
        query, column = np.nonzero((np.diff(self.lists.largest_gap, axis=1, prepend=-1) > 0) & self.seen)
        upto = np.searchsorted(whole_units(thresholds), self.lists.largest_gap[query, column], side="right")
        before = np.concatenate([[0], upto[:-1]])
        begin = np.where(np.diff(query, prepend=-1) > 0, 0, before)
        return query, column, begin, upto
