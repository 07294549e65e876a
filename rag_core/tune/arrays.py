"""The array engine: captured lists as arrays, where settings of the cut end each list, and what that is worth.

`Lists` holds what is known of every question: distances in whole units of 1e-9 (as in the plain rule, so that every
comparison is exact), how many of its first n chunks are relevant, and how many there are. `View` looks at them under
one policy and limits: how many chunks a threshold or an offset keeps, and SetP, SetR, SetF and number kept of that.
Grids and the optimum (plane.py), whole pipelines (variants.py), step functions (steps.py) and ceilings
(headroom.py) stand on these two. Which chunk is relevant and which query is scored follows measure/scores.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rag_core.errors import InputError
from rag_core.filters.cut import OF_SPAN, POLICIES
from rag_core.measure.scores import score
from rag_core.types import Candidates, Case, Hit, Order, falling

Floats = NDArray[np.float64]
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
        start = falling(start)
        ranked = [(hit.distance, hit.rank, hit) for hit in start.hits if hit.distance is not None and not hit.origin]
        if start.order is not Order.DISTANCE:
            ranked.sort(key=lambda one: one[:2])
        judged = {hit.key for _, _, hit in ranked}
        distances.append([distance for distance, _, _ in ranked])
        relevant.append([_is_relevant(hit, case, min_grade) for _, _, hit in ranked])
        passing.append([_is_relevant(hit, case, min_grade) for hit in start.hits if hit.key not in judged])
    return make_lists(distances, relevant, relevant_totals(cases, min_grade), passing)


def relevant_totals(cases: Sequence[Case], min_grade: int) -> list[int | None]:
    """How many relevant chunks each case has; None where it is not scored."""
    blank = [score([], case.grades, case.relevant_total, min_grade, ()) for case in cases]
    return [scores.relevant_total if scores.scored else None for scores in blank]


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


def least_fraction(wanted: Whole, span: Whole) -> Floats:
    """The least number f ≥ 0 with ⌊f · span + 0.5⌋ ≥ wanted, to the last bit of a float."""

    def reaches(fraction: Floats) -> NDArray[np.bool_]:
        return np.floor(fraction * span + 0.5) >= wanted

    found = np.maximum((wanted - 0.5) / span, 0.0)
    while not (there := reaches(found)).all():
        found = np.where(there, found, np.nextafter(found, np.inf))
    while ((lower := np.nextafter(found, 0.0)) < found).any() and (further := (lower < found) & reaches(lower)).any():
        found = np.where(further, lower, found)
    return found


SUMS = ("SetP", "SetR", "SetF", "kept")
"""Four quantities in arrays of one shape: of every query, or summed over queries, or their means."""


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
"""The quantities of SUMS from relevant kept, kept and relevant in all; few temporary arrays, which is what costs."""


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
        jumps: int = 1,
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
        lengths, self.nearest = (
            (lists.lengths, lists.nearest) if rows is None else (lists.lengths[rows], lists.nearest[rows])
        )
        reached = lengths if front is None else np.minimum(lengths, front)
        self.looked = np.minimum(reached, max_results)
        self.ceiling = self.looked if back is None else np.minimum(self.looked, back)
        last = lists.distances[queries, np.maximum(self.looked - 1, 0)] if lists.distances.shape[1] else self.looked
        self.span = np.where(self.looked > 0, last - self.nearest, 0)
        self.has_gap = (self.looked > 2) & (policy != "ratio")
        self._last_gap = np.where(self.has_gap, self.looked - 3, 0)  # the column of largest_gap that sees them all
        self._queries = queries
        self._known: tuple[Floats, tuple[Whole, Whole]] | None = None
        self._jumps = jumps

    @cached_property
    def _ends(self) -> tuple[Whole, Whole]:
        """The gap that may end each list in units, −1 where there is none, and how many chunks stand before it."""
        if not self.has_gap.any():
            return np.full(len(self.looked), -1), np.zeros_like(self.looked)
        if self.policy not in ("knee", "autocut"):
            at = self._queries, self._last_gap
            gaps = np.where(self.has_gap, self.lists.largest_gap[at], -1)
            return gaps, self.lists.largest_gap_at[at].astype(np.int64)
        longest, span, last = int(self.looked.max()), self.span[:, None], self.looked[:, None] - 1
        distances = self.lists.distances[self._queries, :longest]
        gaps = np.where(np.arange(longest - 1) < last, np.diff(distances, axis=1), 0)
        above = np.append(gaps * last > span, np.zeros((len(gaps), 1), dtype=bool), axis=1)
        jumps = above[:, :-1] & ~above[:, 1:]
        jumps[:, 0] = False
        if self.policy == "autocut":
            jumps &= np.cumsum(jumps, axis=1) == self._jumps
            places = jumps.argmax(axis=1)
        else:
            heights = (distances[:, 1:] - self.nearest[:, None]) * last - np.arange(1, longest) * span
            places = np.where(jumps, heights, -BEYOND).argmax(axis=1)
        found = jumps[np.arange(len(places)), places]
        return np.where(found, gaps[np.arange(len(places)), places], -1), places + 1

    @property
    def largest(self) -> Whole:
        """The gap that ends each list under a threshold it reaches, in units; −1 where there is none."""
        return self._ends[0]

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
            # the first gap of at least a threshold is where the largest gap so far first reaches it
            wanted = whole_units(thresholds)
            places = np.stack([np.searchsorted(row, wanted) for row in self.lists.largest_gap])[self._queries]
            counts = ((places <= self._last_gap[:, None]) & self.has_gap[:, None]).sum(axis=1)
            return counts, self.clamp(places + 2)
        if self.policy in OF_SPAN:
            beyond = least_fraction(self.largest + 1, np.maximum(self.span, 1))  # the least that asks for more
            counts = np.searchsorted(thresholds, beyond) * (self.span > 0)
        else:
            counts = np.searchsorted(whole_units(thresholds), self.largest, side="right")
        return counts, self.clamp(self._ends[1][:, None])

    def offset_scale(self, relative_offset: bool) -> Whole | None:
        """What an offset is a fraction of in each list, in units; None: offsets are distances."""
        return self.span if relative_offset else np.abs(self.nearest) if self.policy == "ratio" else None

    def within(self, offsets: Floats, relative_offset: bool) -> Whole:
        """How many of each list each offset reaches, shape (q, offsets)."""
        scale = self.offset_scale(relative_offset)
        if scale is None:
            return self.lists.within(whole_units(offsets)[None, :], self._queries)
        with np.errstate(over="ignore"):
            reach = np.floor(np.minimum(offsets * scale[:, None] + 0.5, FARTHEST))
        return self.lists.within(reach.astype(np.int64), self._queries)

    def kept(self, thresholds: Floats, offsets: Floats, *, relative_offset: bool = False) -> Whole:
        """How many of each list n settings keep (q, n): hits passed unjudged are not counted.

        Either n ascending thresholds and a single offset, n offsets and a single threshold, or one of each.
        """
        counts, lengths = self.gap_cuts(thresholds)
        reached = self.clamp(self.within(offsets, relative_offset))
        return np.where(np.arange(len(thresholds)) < counts[:, None], lengths, reached)

    def worths(self, lengths: Whole, wanted: Sequence[int], queries: Whole | None = None) -> Iterator[Floats]:
        """Quantities by their places in SUMS, one after the other, of lists (all, or these) cut to lengths (q, n).

        SetP, SetR and SetF are 0 where a query is not scored.
        """
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
        """What sums over queries are divided by to be means, in the order of SUMS. InputError: no query is scored."""
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
