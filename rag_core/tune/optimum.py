"""The best point of AdaptiveGap's whole continuous plane, not only of a grid.

Every mean over queries is constant between change points: a threshold changes a cut only just above some list's gap,
an offset only where it reaches one more chunk. So the plane is a finite table, and walking the offsets upward turns it
into running sums of what each further chunk changes, and stretches of offsets that cannot hold the best are skipped by
an upper bound: exact all the same. The point is the best on these
queries; what it is worth on others is a matter of split.py and significance.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag_core.errors import InputError
from rag_core.tune.lists import Lists, Whole, whole_units
from rag_core.tune.sweep import plane_of
from rag_core.tune.view import Floats, Sums, View, settings_array

_BLOCK_CELLS = 1_000_000  # blocks × thresholds held at once
_BLOCK_STEPS = 64  # change points that are judged together before they are looked at one by one
SAME = 1e-12  # values this near are one value: the order of summation tells them apart, nothing else


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best setting, the cell of the plane in which it does not matter where one stands, and its means."""

    gap_threshold: float
    gap_threshold_below: float | None  # the cell ends before this threshold; None: it has no end
    distance_offset: float  # with relative_offset a fraction of the span
    distance_offset_below: float | None
    min_results: int
    max_results: int
    policy: str
    relative_offset: bool
    SetP: float
    SetR: float
    SetF: float
    kept_mean: float


@dataclass(frozen=True)
class _Steps:
    """What each change point of the offset does: sorted by offset, one entry per list and further chunk."""

    offsets: Floats
    counts: Whole  # at so many thresholds the list is cut at a gap, and the step does nothing
    change: Floats  # (wanted, steps)


def optimum(
    lists: Lists,
    measure: str = "SetF",
    min_results: int = 2,
    max_results: int = 15,
    policy: str = "largest",
    *,
    relative_offset: bool = False,
    at_least: tuple[str, float] | None = None,
    gap_threshold: float | None = None,
    front: Whole | None = None,
    back: Whole | None = None,
) -> Optimum | None:
    """The threshold and offset with the greatest mean of `measure`; of equals the least offset, then threshold.

    `at_least=("SetR", 0.95)` looks only where that mean is reached; None where it is nowhere. Measures: SetP, SetR,
    SetF. InputError for another measure or settings the plain rule refuses.
    """
    wanted = [_index(measure), *([_index(at_least[0])] if at_least else [])]
    view = View(lists, min_results, max_results, policy, front, back)
    thresholds = _thresholds(view) if gap_threshold is None else settings_array("gap_threshold", [gap_threshold])
    counts = view.gap_counts(thresholds)
    steps = _steps(view, counts, len(thresholds), wanted, relative_offset)
    standing = _unreached(view, counts, thresholds, wanted)
    best, place = -1.0, (0, 0)
    for first, columns, table in _blocks(steps, standing, at_least[1] if at_least else None):
        allowed = table[-1] >= at_least[1] - SAME if at_least else np.True_
        values = np.where(allowed, table[0], -1.0)
        top = float(values.max(initial=-1.0))
        if top > best + SAME:
            row, column = np.argwhere(values >= top - SAME)[0]
            best, place = top, (int(columns[column]), first + int(row))
    if best < 0:
        return None
    return _describe(view, _cell(thresholds, place[0]), _cell(np.unique(steps.offsets), place[1]), relative_offset)


def _index(measure: str) -> int:
    if measure not in Sums._fields[:3]:
        raise InputError(f"optimum got the measure {measure!r}, expected one of {', '.join(Sums._fields[:3])}")
    return Sums._fields.index(measure)


def _cell(points: Floats, at: int) -> tuple[float, float | None]:
    return float(points[at]), float(points[at + 1]) if at + 1 < len(points) else None


def _describe(
    view: View, threshold: tuple[float, float | None], offset: tuple[float, float | None], relative_offset: bool
) -> Optimum:
    """The optimum with its means taken from the plane itself."""
    least, most, policy = view.min_results, view.max_results, view.policy
    reaches = settings_array("offset", offset[:1])
    within = None if relative_offset else view.lists.within(whole_units(reaches)[None, :])
    one = plane_of(view, settings_array("gap_threshold", threshold[:1]), reaches, within)
    means = [float(quantity[0, 0]) for quantity in (one.SetP, one.SetR, one.SetF, one.kept_mean)]
    return Optimum(*threshold, *offset, least, most, policy, relative_offset, *means)


def _thresholds(view: View) -> Floats:
    """0 and every threshold at which some list's cut changes, ascending: each just above one of the lists' gaps."""
    if not view.has_gap.any():
        return np.zeros(1)
    if view.policy == "relative":
        with_span = (view.span > 0) & view.has_gap
        just_above = least_fraction(view.largest[with_span] + 1, view.span[with_span])
    elif view.policy == "first":
        just_above = (view.lists.largest_gap[view.seen] + 1) / 1e9
    else:
        just_above = (view.largest[view.has_gap] + 1) / 1e9
    return np.unique(np.append(just_above, 0.0))


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


def _steps(view: View, counts: Whole, thresholds: int, wanted: Sequence[int], relative_offset: bool) -> _Steps:
    """Every (list, chunk) whose being reached changes the list's length, and what that changes of the wanted means."""
    lists, longest = view.lists, int(view.looked.max())
    lengths = view.clamp(np.broadcast_to(np.arange(longest + 1), (len(counts), longest + 1)))
    worths, divisors = list(view.worths(lengths, wanted)), view.divisors()[list(wanted)]
    change = np.stack([np.diff(one, axis=1) / by for one, by in zip(worths, divisors, strict=True)])
    query, chunk = np.nonzero(np.diff(lengths, axis=1))
    reach = lists.distances[query, chunk] - lists.nearest[query]
    span = np.maximum(view.span[query], 1)
    offsets = least_fraction(reach, span) if relative_offset else reach / 1e9
    start = np.zeros(1)  # offset 0 is a point of the plane though nothing may change there
    upward = np.argsort(np.concatenate([start, offsets]), kind="stable")
    return _Steps(
        np.concatenate([start, offsets])[upward],
        np.concatenate([[thresholds], counts[query]])[upward],
        np.concatenate([np.zeros((len(wanted), 1)), change[:, query, chunk]], axis=1)[:, upward],
    )


def _blocks(steps: _Steps, standing: Floats, floor: float | None) -> Iterator[tuple[int, Whole, Floats]]:
    """The blocks of offsets that may hold the optimum, in order: number of the first offset, thresholds, means.

    Means of the wanted quantities, shape (wanted, offsets, thresholds); `standing` is what they are before any offset.
    A block, or a threshold of a block, is left out where even all that rises in it would be too little.
    """
    thresholds = standing.shape[1]
    last = np.append(np.flatnonzero(np.diff(steps.offsets)), len(steps.offsets) - 1)
    bounds = _bounds(last + 1, thresholds)
    after = standing[:, None] + np.cumsum([_block_sums(steps, one, bounds, thresholds) for one in steps.change], axis=1)
    before = np.concatenate([standing[:, None], after[:, :-1]], axis=1)
    rise = [_block_sums(steps, np.maximum(one, 0.0), bounds, thresholds) for one in steps.change]
    hopeful = _may_hold(after, before + rise, floor)
    for block in np.flatnonzero(hopeful.any(axis=1)):
        columns = np.flatnonzero(hopeful[block])
        start, stop = bounds[block], bounds[block + 1]
        first, end = np.searchsorted(last, (start, stop))
        counts = np.searchsorted(columns, steps.counts[start:stop])
        running = np.stack([_running(counts, one[start:stop], len(columns)) for one in steps.change])
        yield int(first), columns, running[:, last[first:end] - start] + before[:, block][:, None, columns]


def _bounds(ends: Whole, thresholds: int) -> Whole:
    """Where blocks begin and end: never between steps of equal offset, and few enough for a table of bounded size."""
    size = max(_BLOCK_STEPS, int(ends[-1]) * thresholds // _BLOCK_CELLS)
    wished = np.searchsorted(ends, np.arange(size, int(ends[-1]) + size, size))
    return np.unique(np.append(ends[np.minimum(wished, len(ends) - 1)], 0))


def _block_sums(steps: _Steps, change: Floats, bounds: Whole, thresholds: int) -> Floats:
    """What the steps of each block add at each threshold, shape (blocks, thresholds)."""
    blocks = len(bounds) - 1
    cells = np.repeat(np.arange(blocks), np.diff(bounds)) * (thresholds + 1) + steps.counts
    sums = np.bincount(cells, change, minlength=blocks * (thresholds + 1)).reshape(blocks, thresholds + 1)
    return np.cumsum(sums[:, :-1], axis=1)  # the last column is that of steps which count at no threshold


def _may_hold(reached: Floats, upper: Floats, floor: float | None) -> NDArray[np.bool_]:
    """Where a block's upper value is as good as the best point known so far, shape (blocks, thresholds)."""
    allowed = reached[-1] >= floor - SAME if floor is not None else np.True_
    best = np.where(allowed, reached[0], -1.0).max()
    hopeful: NDArray[np.bool_] = upper[0] >= best - 2 * SAME
    return hopeful if floor is None else hopeful & (upper[-1] >= floor - 2 * SAME)


def _unreached(view: View, counts: Whole, thresholds: Floats, wanted: Sequence[int]) -> Floats:
    """Means at each threshold while no offset reaches any chunk yet, shape (wanted, thresholds)."""
    shortest = list(view.worths(view.clamp(np.zeros((len(counts), 1), dtype=np.int64)), wanted))
    added = [np.bincount(counts, one[:, 0], minlength=len(thresholds) + 1)[:-1] for one in shortest]
    sums = view.gap_sums(thresholds, wanted) + np.cumsum(np.stack(added), axis=1)
    return np.asarray(sums / view.divisors()[list(wanted), None], dtype=np.float64)


def _running(counts: Whole, change: Floats, thresholds: int) -> Floats:
    """What these steps add up to after each, shape (steps, thresholds): a step counts from its list's threshold on."""
    table = np.zeros((len(counts), thresholds + 1))
    table[np.arange(len(counts)), counts] = change
    np.cumsum(table, axis=1, out=table)
    np.cumsum(table, axis=0, out=table)
    return table[:, :-1]
