"""Step functions of the numeric knobs of a pipeline: what a screen looks up while a knob is dragged.

Over captured lists every figure is constant between the points where some list's kept set changes. So the figures at a
slider's positions are computed once, when the knob is grabbed, and dragging only looks them up: no filter is written in
JavaScript. The numbers of AdaptiveGap and of the plain cutoffs around it are done in arrays (tune/arrays.py), exactly
as the plain pipeline would; any other number runs the plain stages behind a beginning that is run once.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_core.errors import InputError, SpecError
from rag_core.filters.adaptive import AdaptiveGap, as_distance
from rag_core.filters.cut import DEFAULT_OFFSET, DEFAULT_THRESHOLD, OF_SPAN
from rag_core.filters.cutoff import MinSimilarity, TopK
from rag_core.measure.experiment import kept_ids, unique_names
from rag_core.measure.measures import SET_MEASURES, Measure
from rag_core.measure.scores import score
from rag_core.measure.tally import PipelineTally, measure_all, tally_kept
from rag_core.retrieve.dense import Dense
from rag_core.retrieve.fuse import ranks_of
from rag_core.retrieve.hybrid import Hybrid
from rag_core.retrieve.lexical import Lexical
from rag_core.retrieve.requery import Requery
from rag_core.spec import fingerprint
from rag_core.stage import Pipeline, Setting, Source, Stage
from rag_core.tune.arrays import Floats, Lists, View, Whole
from rag_core.tune.variants import Captured, Captures
from rag_core.types import RANKS, Candidates, Hit, Metric, falling

Bools = NDArray[np.bool_]
Progress = Callable[[int, int], None]
"""Called with (done, total) of a dear knob, questions or positions; one that raises ends it."""

_ALL = 10**9  # more than any list holds
_POSITIONS = 160
_LINEAR = 41  # positions of a number whose change points are not known
_DEAR_POSITIONS, _FEWEST = 24, 5
_KEPT_FUNCTIONS = 8
_DEAR_CELLS = 1_000_000  # candidates that a dear knob runs the plain stages over: about two seconds


@dataclass(frozen=True, eq=False)
class StepFunction:
    """One number of one stage at n positions: figures over q questions, and the kept set of the question in sight.

    Figures are those of the plain pipeline, to the last bit; NaN throughout where the pipeline refuses a position.
    """

    stage: int  # place in the pipeline
    setting: str
    positions: Floats  # (n,) ascending
    means: Floats  # (4, n) SetP, SetR, SetF over the scored questions (NaN without one), kept_mean over all
    per_question: Floats  # (q, n) SetF, NaN where a question is not scored
    rows: tuple[str, ...]  # chunk ids: the captured list of the question in sight, then what the pipeline adds to it
    kept: Bools  # (rows, n) whether the row's chunk is kept; no row without a question in sight
    one: Floats  # (4, n) SetP, SetR, SetF, kept of the question in sight; (4, 0) without one
    moved: int  # questions on which the number kept or SetF changes somewhere on the way; 0: a dead knob here


@dataclass(frozen=True, eq=False)
class Knob:
    """A number of a stage whose change needs no search and no model, with the positions of its slider."""

    stage: int
    setting: str  # as `with_setting` takes it
    label: str
    kind: str  # int or float
    digits: int  # behind the point, of its positions
    low: float
    high: float
    positions: Floats  # (n,) ascending, scaled to what the lists hold, the current value among them
    value: float
    dear: bool  # its step function runs the plain stages: fewer positions, to be computed when the knob is grabbed


def cheap_knobs(captures: Captures, pipeline: Pipeline, *, searched: bool = False) -> list[Knob]:
    """Every knob of the pipeline over these lists, stage by stage, in each what matters most first.

    Thresholds have the quantiles of the gaps, distances and similarities that reach their stage as positions, lengths
    the whole numbers up to the longest list. `searched`: the lists were searched for this pipeline, so that its source
    has a depth and a refill no further to read than they go. A number in front of a model is no cheap one.
    """
    knobs = []
    for place, stage in enumerate(pipeline.stages):
        if any(asks(one) for one in pipeline.stages[place + 1 :]):
            continue
        for setting in stage.declared():
            depth = searched and isinstance(stage, Source) and setting.name == "depth"
            value = getattr(stage, setting.name)
            if not (setting.cheap or depth) or value is None or _is_idle(pipeline.stages[place:], setting.name):
                continue
            if setting.numeric:
                knobs.append(_knob(captures, pipeline, place, setting, setting.name, value, searched))
            elif setting.kind.startswith("tuple[float"):
                names = [f"{setting.name}.{at}" for at in range(len(value))]
                knobs += [
                    _knob(captures, pipeline, place, setting, name, one, searched)
                    for name, one in zip(names, value, strict=True)
                ]
    return knobs


def _is_idle(stages: Sequence[Stage], setting: str) -> bool:
    """Whether the number plays no part as things are: an offset beside a relative one, a depth in front of a refill."""
    if isinstance(stages[0], Source):
        return setting == "depth" and len(stages) > 1 and stages[1].reach > 0
    if isinstance(cut := stages[0], AdaptiveGap):
        return {
            "distance_offset": cut.relative_offset is not None,
            "gap_threshold": cut.gap_policy == "ratio",
            "jumps": cut.gap_policy != "autocut",
        }.get(setting, False)
    return False


def _knob(
    captures: Captures, pipeline: Pipeline, place: int, setting: Setting, name: str, value: float, searched: bool
) -> Knob:
    stage, reaching, points, limits = pipeline.stages[place], captures.after(()), np.zeros(0), None
    dear = _in_arrays(_turn(captures, pipeline, place, name, [value])) is None
    if isinstance(stage, AdaptiveGap | MinSimilarity | TopK):
        with contextlib.suppress(InputError):  # a stage refuses these lists as it is set: its step function says why
            reaching, front = captures.front(pipeline.stages[:place])
            points, limits = _scaled(stage, setting.name, reaching), reaching.limits(pipeline.stages[front:place])
    longest = max(len(start.hits) for start in reaching.starts) if limits is None else int(limits.max())
    low = -math.inf if setting.low is None else setting.low
    high = math.inf if setting.high is None else setting.high
    if setting.kind == "int":
        points = _lengths_of(stage, setting, longest, searched)
    elif not len(points := points[(points >= low) & (points <= high)]):
        points = np.linspace(*(setting.usual or (setting.low or 0.0, setting.high or 1.0)), _LINEAR)
    most = _POSITIONS
    if dear:
        most = max(_FEWEST, min(_DEAR_POSITIONS, _DEAR_CELLS // (len(captures.cases) * max(1, longest))))
    span = max(float(points[-1]), value) - min(float(points[0]), value)
    digits = 0 if setting.kind == "int" else max(2, 3 - math.floor(math.log10(span))) if span else 4
    # of lengths every one of the first, fewer of those behind, where one more means less
    steps = np.linspace(0, 1, min(most, len(points))) ** (1.5 if setting.kind == "int" and len(points) > most else 1.0)
    rounded = np.clip(np.round(points[np.round((len(points) - 1) * steps).astype(np.int64)], digits), low, high)
    positions = np.unique(np.append(rounded[np.abs(rounded - value) > 10.0**-digits / 2], value))
    label = f"{stage.title}: {name.replace('_', ' ').replace('.', ' ')}"
    kind = setting.kind if setting.numeric else "float"
    return Knob(place, name, label, kind, digits, float(positions[0]), float(positions[-1]), positions, value, dear)


def _lengths_of(stage: Stage, setting: Setting, longest: int, searched: bool) -> Floats:
    """The whole numbers that a length or a count can usefully take."""
    low, high = int(setting.low or 0), int(min(setting.high or longest, max(longest, 1)))
    least, most = getattr(stage, "min_results", 0), getattr(stage, "max_results", high)
    if setting.name == "max_results":
        low = max(low, least)
    elif setting.name == "min_results":
        high = min(high, most)
    elif setting.name in ("k", "max_iterations") and stage.reach and searched:
        # beyond the end of the list a refill would search on: what it finds there no captured list knows
        high = max(low, longest // (stage.reach // getattr(stage, setting.name)))
    elif setting.unit != "chunks" and setting.usual:
        low, high = int(setting.usual[0]), int(setting.usual[1])
    return np.arange(low, max(low, high) + 1, dtype=np.float64)


def _scaled(stage: Stage, setting: str, reaching: Captured) -> Floats:
    """The values of a threshold between which something changes on these lists; empty where they say nothing."""
    if isinstance(stage, MinSimilarity):
        table = reaching.similarities
        return np.zeros(0) if table is None else np.unique(table[np.isfinite(table)])
    if not isinstance(stage, AdaptiveGap):
        return np.zeros(0)
    key = (setting, stage.max_results, stage.gap_policy)
    if key not in reaching.scales:
        lists, view = reaching.lists, View(reaching.lists, 0, stage.max_results, stage.gap_policy)
        span = np.maximum(view.span, 1)[:, None].astype(np.float64)
        if setting == "gap_threshold":
            by = span if stage.gap_policy in OF_SPAN else 1e9
            points = np.append((lists.largest_gap / by)[view.seen], 0.0)
        else:
            inside = np.arange(lists.distances.shape[1]) < view.looked[:, None]
            if setting in BOUNDS:
                sign = as_distance(1.0, reaching.fallen[0].metric)
                points = (sign * lists.distances / 1e9)[inside]
            else:
                scale = view.offset_scale(setting == "relative_offset")
                by = 1e9 if scale is None else np.maximum(scale, 1)[:, None].astype(np.float64)
                points = ((lists.distances - lists.nearest[:, None]) / by)[inside]
        reaching.scales[key] = np.unique(points)
    return reaching.scales[key]


def with_setting(pipeline: Pipeline, stage: int, setting: str, value: float) -> Pipeline:
    """The pipeline with one number of the stage at a place changed; `weights.1` is the second of several numbers.

    SpecError where the stage refuses the value.
    """
    return replace(pipeline, stages=_put(pipeline.stages, stage, _changed(pipeline.stages[stage], setting, value)))


def _put(stages: tuple[Stage, ...], place: int, stage: Stage) -> tuple[Stage, ...]:
    return (*stages[:place], stage, *stages[place + 1 :])


def _changed(stage: Stage, setting: str, value: float) -> Stage:
    name, dot, at = setting.partition(".")
    if not dot:
        return replace(stage, **{name: value})
    numbers = list(getattr(stage, name))
    numbers[int(at)] = value
    return replace(stage, **{name: tuple(numbers)})


def step_function(
    captures: Captures,
    pipeline: Pipeline,
    stage: int,
    setting: str,
    positions: Sequence[float] | Floats,
    question: str | None = None,
    progress: Progress | None = None,
) -> StepFunction:
    """What the pipeline gives with one number of one stage at each of the ascending positions.

    `captures` holds the questions with their recorded lists and remembers what stages in front made of them; `question`
    is the id of the one in sight. A source's `depth` takes so many of each recorded list, and no fewer than a refill
    reads. InputError where every position is refused, or where a model stands behind the stage and would be asked anew.
    """
    values = np.asarray(positions, dtype=np.float64)
    if values.ndim != 1 or not values.size or (np.diff(values) < 0).any():
        raise InputError(f"{setting} got {values.size} positions, expected a list of ascending ones")
    asking = next((one for one in pipeline.stages[stage + 1 :] if asks(one)), None)
    if asking is not None:
        raise InputError(f"{asking.name} stands behind {setting}: it would ask its model anew at every position")
    sight = next((at for at, case in enumerate(captures.cases) if case.query.id == question), None)
    if sight is None and question is not None:
        raise InputError(f"question {question!r:.80} is not among the {len(captures.cases)} captured ones")
    turn = _turn(captures, pipeline, stage, setting, values)
    if not turn.taken and turn.refusal is not None:
        raise turn.refusal
    # What a number gives at its positions is the same wherever it stands: after a drag its own function is known.
    others = fingerprint(Pipeline(_put(pipeline.stages, stage, turn.variant(turn.taken[0]))))
    key = (others, stage, setting, values.tobytes(), question)
    if key not in captures.functions:
        while len(captures.functions) >= _KEPT_FUNCTIONS:
            captures.functions.pop(next(iter(captures.functions)))
        captures.functions[key] = _computed(turn, sight, progress)
    function: StepFunction = captures.functions[key]
    return function


def _computed(turn: _Turn, sight: int | None, progress: Progress | None) -> StepFunction:
    lengths = _in_arrays(turn)
    if lengths is None:
        figures, rows, kept = _plainly(turn, sight, progress)
    else:
        figures, rows, kept = _measured(turn.captures, lengths, sight)
    scored = np.isfinite(figures[2]).any(axis=1)
    means = np.full((4, len(turn.values)), np.nan)
    means[3] = figures[3].sum(axis=0) / len(scored)  # whole numbers: no sum of them rounds
    if scored.any():
        shares = figures[:3] if scored.all() else figures[:3, scored]
        means[:3] = exact_sum(shares) / scored.sum()
    one = np.zeros((4, 0)) if sight is None else figures[:, sight]
    return StepFunction(turn.place, turn.setting, turn.values, means, figures[2], rows, kept, one, _moved(figures))


def _moved(figures: Floats) -> int:
    """Questions on which the number kept or SetF is not the same at every position that is not refused."""
    open_ = ~np.isnan(figures[3]).all(axis=0)
    lengths, shares = (row if open_.all() else row[:, open_] for row in (figures[3], figures[2]))
    still = (lengths == lengths[:, :1]).all(axis=1)
    left = np.nan_to_num(shares[still], nan=-1.0)
    return len(still) - int((left == left[:, :1]).all(axis=1).sum())


_Result = tuple[Floats, tuple[str, ...], Bools]
"""SetP, SetR, SetF, number kept (4, q, n), NaN where refused or not scored; `rows` and `kept` of the function."""


def exact_sum(values: Floats) -> Floats:
    """Sums over the last axis but one of values from 0 to 1, or whole numbers, rounded once: what `math.fsum` gives.

    Each value is split where its bits reach 2⁻³⁰; both halves then add up without rounding, whatever the order, for as
    long as a value's last bit is worth 2⁻⁶⁵ or more (a share of at most 4,096 chunks) and there are under 2²² of them.
    """
    coarse = (values + _SPLIT) - _SPLIT
    return np.asarray(coarse.sum(axis=-2) + (values - coarse).sum(axis=-2), dtype=np.float64)


_SPLIT = 1.5 * 2.0**22


def asks(stage: Stage) -> bool:
    """Whether running the stage on a recorded list asks a model."""
    return stage.costly and stage.kind != "expand" and bool(getattr(stage, "enabled", True))


@dataclass(frozen=True, eq=False)
class _Turn:
    """A number of one stage turned through positions over captured lists."""

    captures: Captures
    pipeline: Pipeline
    place: int
    setting: str
    values: Floats
    open: Bools  # the positions that are not refused
    refusal: SpecError | None

    @property
    def stage(self) -> Stage:
        """The stage as it stands."""
        return self.pipeline.stages[self.place]

    @property
    def taken(self) -> list[int]:
        """The positions that are not refused."""
        return list(np.flatnonzero(self.open).tolist())

    def variant(self, at: int) -> Any:
        """The stage with its number at a position."""
        return _changed(self.stage, self.setting, float(self.values[at]))


def _turn(captures: Captures, pipeline: Pipeline, place: int, setting: str, values: Sequence[float] | Floats) -> _Turn:
    """What a stage takes of ascending positions; as it takes a range, all where it takes both ends of whole ones."""
    positions = np.asarray(values, dtype=np.float64)
    open_, refusal = np.ones(len(positions), dtype=bool), None
    whole = not isinstance(getattr(pipeline.stages[place], setting, 0.0), int) or not (positions % 1).any()
    for tried in ((0, -1) if whole else (), range(len(positions))):
        for at in tried:
            try:
                _changed(pipeline.stages[place], setting, float(positions[at]))
            except SpecError as error:
                open_[at], refusal = False, error
        if whole and refusal is None:
            break
    return _Turn(captures, pipeline, place, setting, positions, open_, refusal)


# In arrays: lists, and how much of each is kept at every position


@dataclass(frozen=True, eq=False)
class _Lengths:
    """Captured lists and how many of each are kept at each open position (q, open)."""

    lists: Lists
    kept: Whole
    open: Bools  # (n,) the positions that the pipeline does not refuse
    starts: tuple[Candidates, ...]  # what the lengths are of, before anything is cut
    cut: AdaptiveGap | None  # puts them in order


def figures_of(captures: Captures, pipeline: Pipeline) -> Floats | None:
    """SetP, SetR, SetF (NaN where not scored) and the number kept of every question, (4, q), in arrays.

    None where only the plain pipeline is exact: without a cut or cutoff whose lists are in arrays.
    """
    lengths = _as_it_stands(captures, pipeline)
    return None if lengths is None else _measured(captures, lengths, None)[0][:, :, 0]


def measure_kept(
    captures: Captures, pipelines: Sequence[Pipeline], measures: Sequence[Measure] = SET_MEASURES
) -> list[PipelineTally]:
    """Every pipeline over the captured lists: what is kept, without what each stage dropped.

    In arrays where that is exact, five times as fast at 5,000 lists of 200; else as `measure_all` runs it.
    """
    tallies = []
    for name, pipeline in zip(unique_names(pipelines), pipelines, strict=True):
        lengths = _as_it_stands(captures, pipeline)
        if lengths is None:
            (plain,) = measure_all(captures.cases, [pipeline], captures.min_grade, measures)
            tallies.append(replace(plain, name=name))
            continue
        rows = [
            tally_kept(case, start, _kept_hits(start, lengths.cut, kept), captures.min_grade, measures)
            for case, start, kept in zip(captures.cases, lengths.starts, lengths.kept[:, 0].tolist(), strict=True)
        ]
        tallies.append(PipelineTally(name, pipeline, tuple(rows), captures.min_grade))
    return tallies


def _as_it_stands(captures: Captures, pipeline: Pipeline) -> _Lengths | None:
    """How much of each list the pipeline keeps; None where only the plain pipeline is exact."""
    for place, stage in reversed(list(enumerate(pipeline.stages))):
        if isinstance(stage, Source):
            break  # a recorded list is taken as long as it is, whatever the depth
        names = [row.name for row in stage.declared() if row.numeric]
        setting = next((name for name in names if getattr(stage, name) is not None), None)
        if setting is None:
            continue
        lengths = _in_arrays(_turn(captures, pipeline, place, setting, [getattr(stage, setting)]))
        if lengths is not None and lengths.open.all():
            return lengths
    return None


def _in_arrays(turn: _Turn) -> _Lengths | None:
    """The lengths at every position that is not refused; None where only the plain stages are exact."""
    try:
        if isinstance(turn.stage, AdaptiveGap):
            return _cut_moved(turn)
        depth = turn.setting == "depth" and isinstance(turn.stage, Dense | Lexical)
        if depth or isinstance(turn.stage, TopK | MinSimilarity | Requery):
            return _cutoff_moved(turn)
    except InputError:  # a stage refuses some list, maybe not at every position: the plain stages tell
        pass
    return None


BOUNDS = ("worst_score", "weak_top")
"""Numbers of a cut that bound how much of a list it looks at."""


def _cut_moved(turn: _Turn) -> _Lengths | None:
    """The lengths at every value of a cut's number where lists, the cut and plain cutoffs are all there is."""
    if turn.setting == "jumps":
        return None  # each is another place in every list: run plainly
    values = {at: float(turn.values[at]) for at in turn.taken}
    # a cut refuses its default thresholds where the metric is not cosine: the chain is built around another value
    usual = next((at for at, value in values.items() if value not in (DEFAULT_THRESHOLD, DEFAULT_OFFSET)), min(values))
    cut: AdaptiveGap = turn.variant(usual)
    bound = turn.setting in BOUNDS
    if bound:
        cut = cut.changed(**{turn.setting: None})
    stages = _put(turn.pipeline.stages, turn.place, replace(cut, query_specific=False))
    chain = turn.captures.chain(Pipeline(stages))
    if chain is None:
        return None
    if any(start.metric not in (Metric.COSINE, Metric.UNKNOWN) for start in chain.captured.metrics):
        if cut.query_specific:
            return None  # a question's own threshold may be a default
        for at in [at for at, value in values.items() if value in (DEFAULT_THRESHOLD, DEFAULT_OFFSET)]:
            try:
                chain.captured.refuse(_changed(cut, turn.setting, values[at]))
            except SpecError:
                del values[at]
    open_ = np.isin(np.arange(len(turn.values)), list(values))
    moved, front = np.array(list(values.values())), chain.front[:, None]
    if bound:
        none = [None] * len(moved)
        front = np.minimum(
            front, chain.captured.reached(*((moved, none) if turn.setting == BOUNDS[0] else (none, moved)))
        )
    kept = _cut_lengths(chain.captured, cut, front, turn.setting, moved)
    kept = np.minimum(kept, chain.back[:, None])
    return _Lengths(chain.captured.lists, kept, open_, chain.captured.starts, cut)


def _cutoff_moved(turn: _Turn) -> _Lengths | None:
    """The same for a number of a plain cutoff, of a refill, or for how deep a source is read: a cutoff behind it."""
    moved, stages = turn.stage, list(turn.pipeline.stages)
    slot = turn.place + 1
    if isinstance(moved, Requery):
        slot, stages[turn.place] = turn.place, replace(moved, k=1000, max_iterations=100)  # as far as one may read
    elif not isinstance(moved, Source):
        slot = turn.place
        del stages[turn.place]
    end = next((at for at, one in enumerate(stages) if isinstance(one, AdaptiveGap)), len(stages))
    cut = stages[end] if end < len(stages) else None
    if isinstance(cut, AdaptiveGap):
        stages[end] = replace(cut, query_specific=False)
    reaching, first = turn.captures.front(stages[:end])
    if isinstance(moved, Requery) and slot != first:
        return None  # another refill is the one whose rules the lists passed
    if first < len(stages) and isinstance(stages[first], Requery) and not isinstance(moved, Requery):
        first += 1  # a cutoff in front of a refill is none of its run
    chain = turn.captures.chain(Pipeline(tuple(stages))) if slot >= first else None
    if chain is None or (limits := _limits(chain.captured, turn)) is None:
        return None
    captured, front, back = chain.captured, chain.front[:, None], chain.back[:, None]
    if not isinstance(cut, AdaptiveGap):
        kept = np.minimum(np.minimum(front, limits), captured.ordered.lengths[:, None])
        return _Lengths(captured.ordered, kept, turn.open, captured.starts, None)
    if not (captured.distinct and captured.by_distance and captured is reaching):
        return None  # the cutoffs are then no beginning of what the cut sees
    if cut.query_specific and any(start.metric not in (Metric.COSINE, Metric.UNKNOWN) for start in captured.metrics):
        return None
    if slot > end:
        kept = np.minimum(_cut_lengths(captured, cut, front), np.minimum(back, limits))
    else:
        kept = np.minimum(_cut_lengths(captured, cut, np.minimum(front, limits)), back)
    return _Lengths(captured.lists, kept, turn.open, captured.starts, cut)


def _limits(captured: Captured, turn: _Turn) -> Whole | None:
    """How many of each list each of these cutoffs, sources or refills would leave (q, n); None: no beginning of it."""
    if isinstance(turn.stage, Requery):
        refills = [turn.variant(at) for at in turn.taken]
        return None if captured.read_at is None else np.stack([captured.refilled(one) for one in refills], axis=1)
    lengths, values = captured.lengths[:, None], turn.values[turn.open]
    if not isinstance(turn.stage, MinSimilarity):
        return np.minimum(lengths, values.astype(np.int64))
    if captured.similarities is None:
        return None
    falling = captured.similarities[:, ::-1]  # rows ascend now; the very comparison of the plain stage, slack included
    below: Whole = np.stack([np.searchsorted(row, values - 1e-9, side="left") for row in falling])
    return np.asarray(np.minimum(falling.shape[1] - below, lengths), dtype=np.int64)


def _cut_lengths(
    captured: Captured, cut: AdaptiveGap, front: Whole, setting: str = "", values: Floats | None = None
) -> Whole:
    """How many of each list the cut keeps: (q, n), n the values of its one setting that moves, or the fronts."""
    lists, relative = captured.lists, cut.relative_offset is not None
    thresholds = np.array([cut.gap_threshold], dtype=np.float64)
    offsets = np.array([cut.relative_offset if relative else cut.distance_offset], dtype=np.float64)
    least, most, floors = cut.min_results, cut.max_results, np.zeros(1, dtype=np.int64)
    if values is not None and setting == "gap_threshold":
        thresholds = values
    elif values is not None and setting == ("relative_offset" if relative else "distance_offset"):
        offsets = values
    elif values is not None and setting == "max_results":  # looking at fewer is the same as getting fewer
        front, most = np.minimum(front, values.astype(np.int64)), _ALL
    elif values is not None and setting == "min_results":
        least, floors = 0, values.astype(np.int64)
    count = max(front.shape[1], 1 if values is None else len(values))
    factors = captured.threshold_factors if cut.query_specific else np.ones(len(captured.cases))
    kept = np.zeros((len(factors), count), dtype=np.int64)
    for factor in np.unique(factors):
        rows = np.flatnonzero(factors == factor)
        fronts = front[rows]
        view = View(
            lists, least, most, cut.gap_policy, fronts.ravel(), rows=np.repeat(rows, fronts.shape[1]), jumps=cut.jumps
        )
        lengths = view.kept(thresholds * factor, offsets, relative_offset=relative).reshape(len(rows), -1)
        kept[rows] = np.minimum(np.maximum(lengths, floors), view.looked.reshape(fronts.shape))
    return kept


def _measured(captures: Captures, lengths: _Lengths, sight: int | None) -> _Result:
    """The figures of how much of each list is kept."""
    lists, open_ = lengths.lists, lengths.open
    figures = np.full((4, len(lists.lengths), len(open_)), np.nan)
    view = View(lists, 0, max(1, lists.distances.shape[1]), "largest")
    for row, values in zip(figures, view.worths(lengths.kept, (0, 1, 2, 3)), strict=True):
        row[:, open_] = values
    figures[:3, ~lists.scored] = np.nan
    if sight is None:
        return figures, (), np.zeros((0, len(open_)), dtype=bool)
    hits, judged = _judged(lengths.starts[sight], lengths.cut)
    place_of = {hit.chunk.id: -1 for hit in hits} | {hit.chunk.id: place for place, hit in enumerate(judged)}
    rows = _rows(captures, sight)
    rows += tuple(sorted(place_of.keys() - set(rows)))  # what stages in front added to the list
    places = np.array([place_of.get(row, _ALL) for row in rows], dtype=np.int64)
    kept = np.zeros((len(rows), len(open_)), dtype=bool)
    kept[:, open_] = places[:, None] < lengths.kept[sight]
    return figures, rows, kept


def _rows(captures: Captures, sight: int) -> tuple[str, ...]:
    return tuple(hit.chunk.id for hit in captures.after(()).starts[sight].hits)


def _kept_hits(start: Candidates, cut: AdaptiveGap | None, kept: int) -> Sequence[Hit]:
    """The first so many of a list in its cut's order, and what the cut lets pass unjudged."""
    hits, judged = _judged(start, cut)
    if len(judged) == len(hits):
        return judged[:kept]
    gone = {hit.key for hit in judged[kept:]}
    return [hit for hit in hits if hit.key not in gone]


def _judged(start: Candidates, cut: AdaptiveGap | None) -> tuple[Sequence[Hit], Sequence[Hit]]:
    """A list in its cut's order, and of it what the cut judges: from the source, with a distance or score."""
    if cut is None:
        return start.hits, start.hits
    hits = cut.arrange(start.hits, start)
    seen = {hit.key for hit in falling(start).hits if not hit.origin and hit.distance is not None}
    return hits, [hit for hit in hits if hit.key in seen]


# Plainly: the stages from the knob on, position by position


def _plainly(turn: _Turn, sight: int | None, progress: Progress | None) -> _Result:
    """The twin: the stages from the knob on, run at every position on lists that the stages in front gave once."""
    captures, stages, positions = turn.captures, turn.pipeline.stages, turn.values
    starts = captures.after(stages[: turn.place]).starts
    reach = max(stage.reach for stage in stages)  # live, a refill reads on where the source stopped
    figures = np.full((4, len(starts), len(positions)), np.nan)
    kept: list[frozenset[str]] = [frozenset()] * len(positions)
    refused = ~turn.open
    refusal: InputError | None = None
    # all positions of a question in a row: what stages remember of its texts serves them all
    for place, (start, case) in enumerate(zip(starts, captures.cases, strict=True)):
        ready = turn.stage.settled(start)
        for at in np.flatnonzero(~refused).tolist():
            less = turn.setting == "depth" and isinstance(ready, Source)
            variant = _changed(ready, turn.setting, float(positions[at]))
            try:
                before = _shallower(start, ready, int(positions[at]), reach) if less else start
                result = Pipeline((variant, *stages[turn.place + 1 :]))(before)
            except InputError as error:
                refused[at], refusal = True, error
                continue
            ids = kept_ids(result)
            scores = score(ids, case.grades, case.relevant_total, captures.min_grade, SET_MEASURES)
            shares = [scores.values[measure.name] for measure in SET_MEASURES]
            figures[:, place, at] = [*(np.nan if one is None else one for one in shares), scores.kept]
            if place == sight:
                kept[at] = frozenset(ids)
        if progress is not None:
            progress(place + 1, len(starts))
    if refusal is not None and refused.all():
        raise refusal
    figures[:, :, refused] = np.nan
    kept = [frozenset() if gone else one for one, gone in zip(kept, refused.tolist(), strict=True)]
    rows = () if sight is None else _rows(captures, sight)
    rows += tuple(sorted(frozenset().union(*kept).difference(rows)))
    table = np.array([[row in one for one in kept] for row in rows], dtype=bool).reshape(len(rows), len(positions))
    return figures, rows, table


def _shallower(start: Candidates, source: Stage, depth: int, least: int) -> Candidates:
    """A recorded list as its source would give it at a lesser depth; a refill reads on to `least` all the same."""
    if not isinstance(source, Hybrid):
        return replace(start, hits=start.hits[: max(depth, least)])
    hits: list[Hit] = []
    for hit in start.hits:
        ranks = {side: rank for side, rank in ranks_of(hit).items() if rank <= depth}
        if not ranks_of(hit):
            raise InputError(f"chunk {hit.chunk.id!r:.80} has no ranks, expected those of both sides to read less deep")
        if ranks:
            hits.append(hit.noted(RANKS, ranks))
    return replace(start, hits=tuple(hits))
