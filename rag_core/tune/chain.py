"""Every setting of a whole pipeline over captured lists: a grid over any of its stages, exactly as the plain pipeline.

Thresholds and offsets of AdaptiveGap are one plane, TopK and MinSimilarity lengths, and whatever else varies (rules on
or off, their mode, how far Requery reads) one captured variant each; the rest, such as a stage behind the cut that no
array can do, runs plainly, setting by setting. Which setting to believe in is left to tune.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from rag_core.errors import Cancelled, InputError
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.measure.experiment import run
from rag_core.measure.measures import SET_MEASURES
from rag_core.stage import Pipeline
from rag_core.tune.arrays import Floats, Lists, View, Whole, settings_array, whole_units
from rag_core.tune.grid import Axis, pipeline_at
from rag_core.tune.plane import SAME, Optimum, optimum, plane_of
from rag_core.tune.variants import Captures, Chain
from rag_core.types import Case

QUANTITIES = ("SetP", "SetR", "SetF", "kept_mean")
_CUT = AdaptiveGap.__name__
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
        report = run(
            captures.cases,
            pipeline_at(pipeline, list(zip(inner, values, strict=True))),
            captures.min_grade,
            SET_MEASURES,
        )
        if not report.summary.queries_scored:
            raise InputError(f"a sweep got {len(captures.cases)} queries and none with a relevant label")
        kept = [outcome.scores.kept for outcome in report.outcomes]
        found.append([*(report.summary.means[name] for name in QUANTITIES[:3]), sum(kept) / len(kept)])
    shape = [len(axis.values) for axis in inner]
    return np.array(found, dtype=np.float64).T.reshape(len(QUANTITIES), *shape), len(found)


def _lengths(chain: Chain) -> Floats:
    """Means (4,) of lists cut to lengths only."""
    return means_at(chain.ordered or chain.captured.ordered, chain.front)


def means_at(lists: Lists, lengths: Whole) -> Floats:
    """Means (4,) in the order of QUANTITIES of lists cut to these lengths (q,)."""
    view = View(lists, 0, max(1, lists.distances.shape[1]), "largest")
    worth = view.worth(np.minimum(lengths, lists.lengths)[:, None])
    return np.array([float(one.sum()) for one in worth]) / view.divisors()


def _plane(chain: Chain, inner: Sequence[Axis]) -> Floats:
    """The means of the cut's thresholds × offsets, with the axes in the order of the grid."""
    settings = view_settings(chain)
    values = {axis.setting: axis.values for axis in inner}
    relative = "relative_offset" in values or (
        "distance_offset" not in values and settings["relative_offset"] is not None
    )
    name = "relative_offset" if relative else "distance_offset"
    thresholds = settings_array("gap_threshold", values.get("gap_threshold", (settings["gap_threshold"],)))
    offsets = settings_array(name, values.get(name, (settings[name],)))
    lists = chain.captured.lists
    within = None if relative else lists.within(whole_units(offsets)[None, :])
    found = plane_of(view_of(chain), thresholds, offsets, within)
    means = np.stack([getattr(found, quantity) for quantity in QUANTITIES])
    if [axis.setting for axis in inner][:1] != ["gap_threshold"]:
        means = means.swapaxes(1, 2)
    return means.reshape(len(QUANTITIES), *(len(axis.values) for axis in inner))


def view_settings(chain: Chain) -> dict[str, Any]:
    """The settings of the chain's cut."""
    return chain.cut.settings() if chain.cut is not None else {}


def view_of(chain: Chain) -> View:
    """The chain's lists as its cut and the cutoffs around it see them."""
    held = view_settings(chain)
    limits = (held["min_results"], held["max_results"], held["gap_policy"])
    return View(chain.captured.lists, *limits, chain.front, chain.back)


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
    if not {"distance_offset", "relative_offset"} & {axis.setting for axis in inner}:
        return None
    outer = [axis for axis in axes if axis not in inner]
    captures, best = Captures(cases, min_grade), None
    for values in product(*(axis.values for axis in outer)):
        chosen = list(zip(outer, values, strict=True))
        if not _possible(pipeline, chosen):
            continue
        chain = captures.chain(_first_of(pipeline_at(pipeline, chosen), inner))
        found = None if chain is None or chain.cut is None else _optimum(chain, inner, measure, at_least)
        if found is not None and (best is None or getattr(found, measure) > getattr(best[1], measure) + SAME):
            best = ({axis.name: value for axis, value in chosen}, found)
    return best


def _optimum(chain: Chain, inner: Sequence[Axis], measure: str, at_least: tuple[str, float] | None) -> Optimum | None:
    varied = {axis.setting for axis in inner}
    held = view_settings(chain)
    return optimum(
        chain.captured.lists,
        measure,
        held["min_results"],
        held["max_results"],
        held["gap_policy"],
        relative_offset="relative_offset" in varied,
        at_least=at_least,
        gap_threshold=None if "gap_threshold" in varied else held["gap_threshold"],
        front=chain.front,
        back=chain.back,
    )
