"""Every setting over captured lists at once: the plane of AdaptiveGap's thresholds × offsets with its best point, and
a grid over any stages of a whole pipeline.

The plain twin is the pipeline itself with one setting after the other; the cuts are the same. In a grid thresholds and
offsets are one plane, TopK and MinSimilarity lengths, and whatever else varies (rules on or off, their mode, how far
Requery reads) one captured variant each; the rest, such as a stage behind the cut that no array can do, runs plainly,
setting by setting. Which setting to believe in is left to tune.py.

A query is cut at a gap
for all thresholds up to one of its own and at the offset above it. So, with the queries in the order of that threshold,
a prefix sum of what the offset cuts give and a sum of what the gap cuts give hold every threshold of a grid at once.

Every mean is constant between change points: a threshold changes a cut only just above some list's gap, an offset only
where it reaches one more chunk. So the continuous plane is a finite table, whose best point is found by bounds: of
thresholds between which no list comes to be cut at the offset only the best gap cuts can win, and stretches of offsets
in which even all that rises would be too little are not looked into. Exact all the same, in bounded memory. The point
is the best on these queries; what it is worth on others is for judged questions to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from rag_core.errors import Cancelled, InputError
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cut import OF_SPAN
from rag_core.filters.cutoff import TopK
from rag_core.measure.experiment import start_of
from rag_core.measure.measures import SET_MEASURES
from rag_core.measure.tally import measure_all
from rag_core.stage import Pipeline, Stage
from rag_core.tune.arrays import SUMS, Floats, Lists, View, Whole, least_fraction, settings_array
from rag_core.tune.grid import Axis, pipeline_at
from rag_core.tune.variants import Captures, Chain
from rag_core.types import Case

_BLOCK_CELLS = 8_000  # queries × offsets worked on at once: arrays that stay in the cache and on the heap


@dataclass(frozen=True, eq=False)
class Plane:
    """Macro means of every gap threshold (rows) × offset (columns), over the scored queries; kept_mean over all."""

    gap_thresholds: Floats
    offsets: Floats
    min_results: int
    max_results: int
    policy: str
    relative_offset: bool
    SetP: Floats
    SetR: Floats
    SetF: Floats
    kept_mean: Floats


def plane(
    lists: Lists,
    gap_thresholds: Sequence[float],
    offsets: Sequence[float],
    min_results: int = 2,
    max_results: int = 15,
    policy: str = "largest",
    *,
    relative_offset: bool = False,
    front: Whole | None = None,
    back: Whole | None = None,
    jumps: int = 1,
) -> Plane:
    """Means of every threshold × offset, in the order given; exactly what the plain pipeline gives for each.

    Thresholds are distances, under policy `relative` fractions of the span; offsets are distances, with
    `relative_offset` fractions of the span. `front` and `back` (q,): how many chunks plain cutoffs leave before and
    after the cut. InputError for settings the plain rule refuses.
    """
    thresholds = settings_array("gap_threshold", gap_thresholds)
    reaches = settings_array("relative_offset" if relative_offset else "distance_offset", offsets)
    view = View(lists, min_results, max_results, policy, front, back, jumps=jumps)
    return plane_of(view, thresholds, reaches, relative_offset)


def plane_of(view: View, thresholds: Floats, offsets: Floats, relative_offset: bool) -> Plane:
    """The plane of checked settings."""
    upward = np.argsort(thresholds, kind="stable")
    means = _means(view, thresholds[upward], offsets, relative_offset)
    if (upward[1:] < upward[:-1]).any():
        means = means[:, np.argsort(upward)]
    return Plane(thresholds, offsets, view.min_results, view.max_results, view.policy, relative_offset, *means)


def _means(view: View, thresholds: Floats, offsets: Floats, relative_offset: bool) -> Floats:
    """Means of shape (4, thresholds, offsets) for ascending thresholds."""
    counts = view.gap_counts(thresholds)
    upward = np.argsort(counts, kind="stable")
    own, starts = np.unique(counts[upward], return_index=True)
    groups = np.searchsorted(own, np.arange(len(thresholds)), side="right")  # lists cut at the offset, by threshold
    sums = np.repeat(view.gap_sums(thresholds)[..., None], len(offsets), axis=2)
    block = max(1, _BLOCK_CELLS // len(counts))
    for start in range(0, len(offsets), block):
        part = slice(start, start + block)
        reached = view.within(offsets[part], relative_offset)[upward]
        for quantity, worth in enumerate(view.worths(view.clamp(reached, upward), (0, 1, 2, 3), upward)):
            running = np.zeros((len(own) + 1, worth.shape[1]))
            np.cumsum(np.add.reduceat(worth, starts, axis=0), axis=0, out=running[1:])
            sums[quantity, :, part] += running[groups]
    return sums / view.divisors()[:, None, None]


_CELLS = 500_000  # stretches × thresholds held at once
_STRETCHES = 64  # as many at least, where there are so many points
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

    def settings(self) -> dict[str, float]:
        """The cut's numbers from the middle of the cell, away from both edges."""
        offset = middle(self.distance_offset, self.distance_offset_below)
        name = "relative_offset" if self.relative_offset else "distance_offset"
        return {"gap_threshold": middle(self.gap_threshold, self.gap_threshold_below), name: offset}


def middle(low: float, below: float | None) -> float:
    """A short number well inside [low, below): nothing changes within the cell, and new queries lie on both sides."""
    if below is None:
        return low
    for digits in (3, 4, 5, 6, 9):
        value = round((low + below) / 2, digits)
        if low + 1e-9 <= value <= below - 2e-9:
            return value
    return low


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
    jumps: int = 1,
) -> Optimum | None:
    """The threshold and offset with the greatest mean of `measure`; of equals the least offset, then threshold.

    `at_least=("SetR", 0.95)` looks only where that mean is reached; None where it is nowhere. Measures: SetP, SetR,
    SetF. InputError for another measure or settings the plain rule refuses.
    """
    wanted = [_index(measure), *([_index(at_least[0])] if at_least else [])]
    view = View(lists, min_results, max_results, policy, front, back, jumps=jumps)
    thresholds = _thresholds(view) if gap_threshold is None else settings_array("gap_threshold", [gap_threshold])
    counts = view.gap_counts(thresholds)
    standing = _unreached(view, counts, thresholds, wanted)
    columns = _that_can_win(standing, counts)
    steps = _steps(view, counts, len(thresholds), wanted, relative_offset)
    seek = _Seek(steps, at_least[1] if at_least else None)
    seek.look(0, len(steps.offsets), columns, standing[:, columns])
    if seek.best < 0:
        return None
    column, row = seek.place
    return _describe(view, _cell(thresholds, column), _cell(np.unique(steps.offsets), row), relative_offset)


def _index(measure: str) -> int:
    if measure not in SUMS[:3]:
        raise InputError(f"optimum got the measure {measure!r}, expected one of {', '.join(SUMS[:3])}")
    return SUMS.index(measure)


def _cell(points: Floats, at: int) -> tuple[float, float | None]:
    return float(points[at]), float(points[at + 1]) if at + 1 < len(points) else None


def _describe(
    view: View, threshold: tuple[float, float | None], offset: tuple[float, float | None], relative_offset: bool
) -> Optimum:
    """The optimum with its means taken from the plane itself."""
    least, most, policy = view.min_results, view.max_results, view.policy
    reaches = settings_array("offset", offset[:1])
    one = plane_of(view, settings_array("gap_threshold", threshold[:1]), reaches, relative_offset)
    means = [float(quantity[0, 0]) for quantity in (one.SetP, one.SetR, one.SetF, one.kept_mean)]
    return Optimum(*threshold, *offset, least, most, policy, relative_offset, *means)


def _thresholds(view: View) -> Floats:
    """0 and every threshold at which some list's cut changes, ascending: each just above one of the lists' gaps."""
    if not view.has_gap.any():
        return np.zeros(1)
    if view.policy in OF_SPAN:
        with_span = (view.span > 0) & view.has_gap
        just_above = least_fraction(view.largest[with_span] + 1, view.span[with_span])
    elif view.policy == "first":
        just_above = (view.lists.largest_gap[view.seen] + 1) / 1e9
    else:
        just_above = (view.largest[view.has_gap] + 1) / 1e9
    return np.unique(np.append(just_above, 0.0))


def _unreached(view: View, counts: Whole, thresholds: Floats, wanted: Sequence[int]) -> Floats:
    """Means at each threshold while no offset reaches any chunk yet, shape (wanted, thresholds)."""
    shortest = list(view.worths(view.clamp(np.zeros((len(counts), 1), dtype=np.int64)), wanted))
    added = [np.bincount(counts, one[:, 0], minlength=len(thresholds) + 1)[:-1] for one in shortest]
    sums = view.gap_sums(thresholds, wanted) + np.cumsum(np.stack(added), axis=1)
    return np.asarray(sums / view.divisors()[list(wanted), None], dtype=np.float64)


def _that_can_win(standing: Floats, counts: Whole) -> Whole:
    """The thresholds among which the optimum is, ascending.

    Between two thresholds at which a list comes to be cut at the offset the offset adds the same to all: of those only
    the best count, and with a floor those that no other beats in both measures. Under policy first this leaves some
    5,000 of 30,000 at 5,000 lists of 200; under the others each threshold has such a list and stays.
    """
    among = np.searchsorted(np.unique(counts), np.arange(standing.shape[1]), side="right")
    order = np.lexsort((-standing[-1], -standing[0], among))  # stable: of equals the least threshold is first
    second = standing[-1][order] + 2.0 * among[order]  # values are at most 1, so the maximum begins anew with a group
    highest = np.maximum.accumulate(np.append(-1.0, second[:-1]))
    new = np.append(True, np.diff(among[order]) > 0)
    return np.sort(order[new | (second > highest)])


@dataclass(frozen=True)
class _Steps:
    """What each change point of the offset does: sorted by offset, one entry per list and further chunk."""

    offsets: Floats
    counts: Whole  # at so many thresholds the list is cut at a gap, and the step does nothing
    change: Floats  # (wanted, steps)


def _steps(view: View, counts: Whole, thresholds: int, wanted: Sequence[int], relative_offset: bool) -> _Steps:
    """Every (list, chunk) whose being reached changes the list's length, and what that changes of the wanted means."""
    lists, longest = view.lists, int(view.looked.max())
    lengths = view.clamp(np.broadcast_to(np.arange(longest + 1), (len(counts), longest + 1)))
    query, chunk = np.nonzero(np.diff(lengths, axis=1))
    reach, scale = lists.distances[query, chunk] - lists.nearest[query], view.offset_scale(relative_offset)
    if scale is None:
        offsets = reach / 1e9
    else:
        reached = (reach == 0) | (scale[query] > 0)  # no fraction of nothing reaches further
        query, chunk, reach = query[reached], chunk[reached], reach[reached]
        offsets = least_fraction(reach, np.maximum(scale[query], 1))
    # offset 0 is a point of the plane though nothing may change there
    upward = np.argsort(np.append(0.0, offsets), kind="stable")
    change = np.zeros((len(wanted), len(upward)))
    for row, worth, by in zip(change, view.worths(lengths, wanted), view.divisors()[list(wanted)], strict=True):
        row[:] = np.append(0.0, np.diff(worth, axis=1)[query, chunk] / by)[upward]
    return _Steps(np.append(0.0, offsets)[upward], np.append(thresholds, counts[query])[upward], change)


class _Seek:
    """The best point so far, and where a better one may still be.

    `look` cuts a stretch of offsets into shorter ones, reads the means at their ends, and goes into those that may hold
    a point as good as the best known: the means in front of it and all that rises in it together reach that far.
    """

    def __init__(self, steps: _Steps, floor: float | None) -> None:
        self.steps, self.floor = steps, floor
        # the steps that end an offset
        self.last = np.append(np.flatnonzero(np.diff(steps.offsets)), len(steps.offsets) - 1)
        self.known = -1.0  # no worse than the optimum: met on the way, wherever it stands
        self.best, self.place = -1.0, (0, 0)  # of the points looked at one by one: threshold, number of the offset

    def look(self, start: int, stop: int, columns: Whole, before: Floats) -> None:
        """Look into the steps from start to stop at some thresholds; `before` are the means in front of them."""
        counts = np.searchsorted(columns, self.steps.counts[start:stop])
        first, end = np.searchsorted(self.last, (start, stop))
        if (stop - start) * len(columns) <= _CELLS or end - first < 2:
            self._read(start, stop, columns, counts, before)
            return
        many = min(int(end - first), max(_STRETCHES, _CELLS // len(columns)))
        cut = np.unique(np.linspace(0, end - first, many + 1).astype(np.int64)[1:])
        bounds = np.append(0, self.last[first + cut - 1] + 1 - start)  # never between steps of one offset
        after = np.stack([self._summed(counts, one[start:stop], bounds, len(columns)) for one in self.steps.change])
        after = before[:, None] + np.cumsum(after, axis=1)
        upper = np.concatenate([before[:, None], after[:, :-1]], axis=1)
        for one, change in zip(upper, self.steps.change, strict=True):
            one += self._summed(counts, np.maximum(change[start:stop], 0.0), bounds, len(columns))
        self.known = max(self.known, float(self._allowed(after).max(initial=-1.0)))
        for stretch in range(len(bounds) - 1):
            hopeful = upper[0, stretch] >= self.known - 2 * SAME
            if self.floor is not None:
                hopeful &= upper[-1, stretch] >= self.floor - 2 * SAME
            at = np.flatnonzero(hopeful)
            if len(at):
                front = after[:, stretch - 1] if stretch else before
                self.look(start + int(bounds[stretch]), start + int(bounds[stretch + 1]), columns[at], front[:, at])

    def _allowed(self, means: Floats) -> Floats:
        """The means that are sought where the floor is reached, else −1."""
        return means[0] if self.floor is None else np.where(means[-1] >= self.floor - SAME, means[0], -1.0)

    def _summed(self, counts: Whole, change: Floats, bounds: Whole, columns: int) -> Floats:
        """What the steps of each stretch add at each threshold, shape (stretches, columns)."""
        cells = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)) * (columns + 1) + counts
        sums = np.bincount(cells, change, minlength=(len(bounds) - 1) * (columns + 1)).reshape(-1, columns + 1)
        return np.asarray(np.cumsum(sums[:, :-1], axis=1), dtype=np.float64)  # the last column counts nowhere

    def _read(self, start: int, stop: int, columns: Whole, counts: Whole, before: Floats) -> None:
        """Every point of these steps at these thresholds, one by one."""
        first, end = np.searchsorted(self.last, (start, stop))
        means = []
        for one, front in zip(self.steps.change, before, strict=True):
            table = np.zeros((stop - start, len(columns) + 1))
            table[np.arange(stop - start), counts] = one[start:stop]
            np.cumsum(table, axis=1, out=table)
            np.cumsum(table, axis=0, out=table)
            means.append(table[self.last[first:end] - start, :-1] + front)
        values = self._allowed(np.stack(means))
        top = float(values.max(initial=-1.0))
        self.known = max(self.known, top)
        if top > self.best + SAME:
            row, column = np.argwhere(values >= top - SAME)[0]
            self.best, self.place = top, (int(columns[column]), int(first) + int(row))


# Grids over whole pipelines

QUANTITIES = ("SetP", "SetR", "SetF", "kept_mean")
_CUT = AdaptiveGap.__name__
Floor = tuple[str, float]
"""(measure, the least mean it must reach)"""
Progress = Callable[[int, int], None]
"""Called with (done, total) variants; one that raises Cancelled ends the sweep with what is done."""


@dataclass(frozen=True, eq=False)
class Table:
    """Macro means of every setting of a grid; NaN where a setting is impossible (min_results over max_results)."""

    axes: tuple[Axis, ...]
    means: Floats  # (4, values of the first axis, …) in the order of QUANTITIES
    plainly: int  # how many settings ran through the plain pipeline
    complete: bool = True

    def __getitem__(self, quantity: str) -> Floats:
        table: Floats = self.means[QUANTITIES.index(quantity)]
        return table

    def rows(self) -> Iterator[dict[str, Any]]:
        """The settings with their means in product order, the impossible ones left out."""
        table = self.means.reshape(len(QUANTITIES), -1).T.tolist()
        names = [axis.name for axis in self.axes]
        for values, means in zip(product(*(axis.values for axis in self.axes)), table, strict=True):
            if means[0] == means[0]:
                yield {**dict(zip(names, values, strict=True)), **dict(zip(QUANTITIES, means, strict=True))}

    def best_at(self, measure: str = "SetF", at_least: tuple[str, float] | None = None) -> tuple[Any, ...] | None:
        """The values of the first setting with the greatest mean, where another reaches a floor; None: nowhere."""
        allowed = np.isfinite(self[measure])
        if at_least is not None:
            allowed &= np.nan_to_num(self[at_least[0]], nan=-1.0) >= at_least[1] - SAME
        if not allowed.any():
            return None
        values = np.where(allowed, self[measure], -1.0)
        place = np.unravel_index(int(np.argmax(values >= values.max() - SAME)), values.shape)
        return tuple(axis.values[int(at)] for axis, at in zip(self.axes, place, strict=True))

    def row_at(self, values: Sequence[Any]) -> dict[str, Any]:
        """One setting's row."""
        place = tuple(axis.values.index(value) for axis, value in zip(self.axes, values, strict=True))
        means = {name: float(self[name][place]) for name in QUANTITIES}
        return {axis.name: value for axis, value in zip(self.axes, values, strict=True)} | means


def sweep(
    cases: Sequence[Case],
    pipeline: Pipeline,
    axes: Sequence[Axis],
    *,
    min_grade: int = 1,
    progress: Progress | None = None,
) -> Table:
    """Means of every setting of the grid over the scored queries; kept_mean over all queries.

    InputError where no query is scored or no setting is possible; errors of a stage name their query.
    """
    axes = tuple(axes)
    inner = _plane_axes(axes)
    outer = [axis for axis in axes if axis not in inner]
    means = np.full((len(QUANTITIES), *(len(axis.values) for axis in axes)), np.nan)
    captures, plainly, done = Captures(cases, min_grade), 0, 0
    places = list(product(*(range(len(axis.values)) for axis in outer)))
    for done, place in enumerate(places, 1):
        chosen = [(axis, axis.values[at]) for axis, at in zip(outer, place, strict=True)]
        at = dict(zip((axis.name for axis in outer), place, strict=True))
        if _possible(pipeline, chosen):
            found, plain = _variant(captures, pipeline_at(pipeline, chosen), inner)
            means[(slice(None), *(at.get(axis.name, slice(None)) for axis in axes))] = found
            plainly += plain
        try:
            if progress is not None:
                progress(done, len(places))
        except Cancelled:
            break
    if np.isnan(means).all():
        raise InputError("the grid has no possible setting, expected min_results of at most max_results somewhere")
    return Table(axes, means, plainly, done == len(places))


def cut_along(axes: Sequence[Axis]) -> int | None:
    """Which axis a grid may be cut along and put together again, to the last bit: the longest; None: none.

    Not along the cut's threshold, whose sums are shared over the axis, nor its limits, of which only some pairs fit.
    """
    whole = ("gap_threshold", "min_results", "max_results")
    possible = [
        at
        for at, axis in enumerate(axes)
        if not (axis.stage == _CUT and axis.setting in whole) and None not in axis.values
    ]
    return max(possible, key=lambda at: len(axes[at].values), default=None)


def means_of(captures: Captures, pipeline: Pipeline) -> Floats:
    """Means (4,) in the order of QUANTITIES of one pipeline, in arrays where that is exact, else run plainly."""
    return _variant(captures, pipeline, ())[0]


def _plane_axes(axes: Sequence[Axis]) -> list[Axis]:
    """The axes of one plane, in the order of the grid: the cut's threshold, and its offset unless both kinds vary."""
    named = {axis.setting: axis for axis in axes if axis.stage == _CUT}
    kinds = [name for name in ("distance_offset", "relative_offset") if name in named]
    inner = ["gap_threshold", *(kinds if len(kinds) == 1 else [])]
    return [axis for axis in axes if axis.stage == _CUT and axis.setting in inner and None not in axis.values]


def _possible(pipeline: Pipeline, chosen: Sequence[tuple[Axis, Any]]) -> bool:
    """Whether the cut's limits fit each other: the one combination of valid values that a stage refuses."""
    held = next((stage.settings() for stage in pipeline.stages if stage.name == _CUT), {})
    held |= {axis.setting: value for axis, value in chosen if axis.stage == _CUT}
    return not held or held["min_results"] <= held["max_results"]


def _variant(captures: Captures, pipeline: Pipeline, inner: Sequence[Axis]) -> tuple[Floats, int]:
    """The means of one variant, one axis per inner axis, and how many settings of it ran plainly."""
    if not any(stage.name == _CUT for stage in pipeline.stages) and inner:
        shape = [len(axis.values) for axis in inner]  # the cut is turned off: its settings change nothing
        found, plain = _variant(captures, pipeline, ())
        return np.broadcast_to(found.reshape(-1, *[1] * len(shape)), (len(QUANTITIES), *shape)), plain
    chain = captures.chain(_first_of(pipeline, inner))
    if chain is None:
        return _plain(captures, pipeline, inner)
    return (_lengths(chain) if chain.cut is None else _plane(chain, inner)), 0


def _first_of(pipeline: Pipeline, inner: Sequence[Axis]) -> Pipeline:
    """The pipeline at a value of every inner axis that is no default, which a cut may refuse for a metric."""
    defaults = (0.1, 0.4)
    chosen = [(axis, next((value for value in axis.values if value not in defaults), axis.values[0])) for axis in inner]
    return pipeline_at(pipeline, chosen)


def _plain(captures: Captures, pipeline: Pipeline, inner: Sequence[Axis]) -> tuple[Floats, int]:
    """The twin: one run of the pipeline per setting."""
    found = []
    for values in product(*(axis.values for axis in inner)):
        variant = pipeline_at(pipeline, list(zip(inner, values, strict=True)))
        (tally,) = measure_all(captures.cases, [variant], captures.min_grade, SET_MEASURES)
        if not tally.summary.queries_scored:
            raise InputError(f"a sweep got {len(captures.cases)} queries and none with a relevant label")
        kept = [query.scores.kept for query in tally.queries]
        found.append([*(tally.summary.means[name] for name in QUANTITIES[:3]), sum(kept) / len(kept)])
    shape = [len(axis.values) for axis in inner]
    return np.array(found, dtype=np.float64).T.reshape(len(QUANTITIES), *shape), len(found)


def _lengths(chain: Chain) -> Floats:
    """Means (4,) of lists cut to lengths only."""
    lists = chain.captured.ordered
    view = View(lists, 0, max(1, lists.distances.shape[1]), "largest")
    worths = view.worths(np.minimum(chain.front, lists.lengths)[:, None], (0, 1, 2, 3))
    return np.array([float(one.sum()) for one in worths]) / view.divisors()


def _plane(chain: Chain, inner: Sequence[Axis]) -> Floats:
    """The means of the cut's thresholds × offsets, with the axes in the order of the grid."""
    assert chain.cut is not None
    settings, lists = chain.cut.settings(), chain.captured.lists
    values = {axis.setting: axis.values for axis in inner}
    relative = "relative_offset" in values or (
        "distance_offset" not in values and settings["relative_offset"] is not None
    )
    name = "relative_offset" if relative else "distance_offset"
    thresholds = settings_array("gap_threshold", values.get("gap_threshold", (settings["gap_threshold"],)))
    offsets = settings_array(name, values.get(name, (settings[name],)))
    limits = (settings["min_results"], settings["max_results"], settings["gap_policy"])
    view = View(lists, *limits, chain.front, chain.back, jumps=settings["jumps"])
    found = plane_of(view, thresholds, offsets, relative)
    means = np.stack([getattr(found, quantity) for quantity in QUANTITIES])
    if [axis.setting for axis in inner][:1] != ["gap_threshold"]:
        means = means.swapaxes(1, 2)
    return means.reshape(len(QUANTITIES), *(len(axis.values) for axis in inner))


def best_of_plane(
    cases: Sequence[Case],
    pipeline: Pipeline,
    axes: Sequence[Axis],
    measure: str = "SetF",
    *,
    min_grade: int = 1,
    at_least: tuple[str, float] | None = None,
) -> tuple[dict[str, Any], Optimum] | None:
    """The best point over all thresholds and offsets, not only the grid's; the other axes take the grid's values.

    The other axes' values by name, and the optimum; the first of equals. None without an adaptive cut whose offset
    varies, with a chain that only runs plainly, or where a floor is reached nowhere.
    """
    inner = _plane_axes(axes)
    varied = {axis.setting for axis in inner}
    if not {"distance_offset", "relative_offset"} & varied:
        return None
    outer = [axis for axis in axes if axis not in inner]
    captures, best = Captures(cases, min_grade), None
    for values in product(*(axis.values for axis in outer)):
        chosen = list(zip(outer, values, strict=True))
        if not _possible(pipeline, chosen):
            continue
        chain = captures.chain(_first_of(pipeline_at(pipeline, chosen), inner))
        if chain is None or chain.cut is None:
            continue
        cut = chain.cut.settings()
        found = optimum(
            chain.captured.lists,
            measure,
            cut["min_results"],
            cut["max_results"],
            cut["gap_policy"],
            relative_offset="relative_offset" in varied,
            at_least=at_least,
            gap_threshold=None if "gap_threshold" in varied else cut["gap_threshold"],
            front=chain.front,
            back=chain.back,
            jumps=cut["jumps"],
        )
        if found is not None and (best is None or getattr(found, measure) > getattr(best[1], measure) + SAME):
            best = ({axis.name: value for axis, value in chosen}, found)
    return best


def fixed_k(
    cases: Sequence[Case], front: Sequence[Stage], objective: str, floor: Floor | None, min_grade: int = 1
) -> tuple[Pipeline, int, float]:
    """The best k over these cases behind the stages in front: pipeline, k and mean; the least k of equals.

    Where no k reaches the floor, the best by the floor's own measure.
    """
    longest = max([len(start_of(case).hits) for case in cases] + [1])
    axis = Axis("k", TopK.__name__, "k", tuple(range(1, min(longest, 1000) + 1)))
    table = sweep(cases, Pipeline((*front, TopK())), (axis,), min_grade=min_grade)
    best = table.best_at(objective, floor) or (table.best_at(floor[0]) if floor else None) or (1,)
    k = int(best[0])
    label = " + ".join([*(stage.name for stage in front), f"fixed k {k}"])
    return Pipeline((*front, TopK(k=k)), label=label), k, float(table.row_at(best)[objective])
