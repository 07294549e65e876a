"""Dead knobs: on how many queries does turning a setting through its range change what is kept at all?

A knob that moves nothing on these queries cannot be tuned on them, whatever a sweep's best row says. For the cut, TopK
and MinSimilarity the change points within the range are tried, which finds every change; other settings a few values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cutoff import MinSimilarity, cosine_similarity
from rag_core.measure.experiment import kept_ids, start_of
from rag_core.stage import Pipeline, Stage
from rag_core.tune.grid import Axis, pipeline_at
from rag_core.types import Candidates, Case

_TRIED = 21  # values of a range whose change points are not known
Ranges = Mapping[tuple[str, str], tuple[float, float]]
"""(stage, setting) → the range a knob is turned through."""


def usual_ranges(pipeline: Pipeline) -> Ranges:
    """The usual ranges of every setting that the threshold lens shows: those of its cuts by distance, rank or score."""
    stages = {stage.name: stage for stage in pipeline.stages if stage.lens == "threshold"}
    rows = ((name, row) for name, stage in stages.items() for row in stage.declared())
    return {(name, row.name): row.usual for name, row in rows if row.usual}


@dataclass(frozen=True, slots=True)
class KnobReach:
    """A setting over a range: per query how many different kept sets it gives; 1 means that nothing changes."""

    stage: str
    setting: str
    low: float
    high: float
    kept_sets: Mapping[str, int]  # by query id

    @property
    def changed(self) -> int:
        """On how many queries the kept set changes."""
        return sum(count > 1 for count in self.kept_sets.values())

    @property
    def share(self) -> float:
        """That number as a share of the queries."""
        return self.changed / len(self.kept_sets) if self.kept_sets else 0.0

    def sentence(self) -> str:
        """The finding in plain words."""
        where = f"{self.setting} {self.low:g} to {self.high:g}"
        word = "changes nothing on any of" if not self.changed else f"changes what is kept on {self.changed} of"
        return f"{where} {word} {len(self.kept_sets)} queries"


def knob(cases: Sequence[Case], pipeline: Pipeline, stage: str, setting: str, low: float, high: float) -> KnobReach:
    """What turning one setting of a pipeline's stage from low to high changes, query by query."""
    sets = {case.query.id: _kept_sets(start_of(case), pipeline, stage, setting, low, high) for case in cases}
    return KnobReach(stage, setting, low, high, sets)


def knobs(cases: Sequence[Case], pipeline: Pipeline, ranges: Ranges | None = None) -> list[KnobReach]:
    """Every knob of the pipeline's stages that has a range, in the order of the ranges; without any, the usual ones."""
    ranges = usual_ranges(pipeline) if ranges is None else ranges
    held = {stage.name for stage in pipeline.stages}
    return [knob(cases, pipeline, *name, *limits) for name, limits in ranges.items() if name[0] in held]


def _kept_sets(start: Candidates, pipeline: Pipeline, stage: str, setting: str, low: float, high: float) -> int:
    """How many different kept sets the values give on one list."""
    at = [held.name for held in pipeline.stages].index(stage)
    reaching = Pipeline(pipeline.stages[:at])(start)
    axis = Axis(setting, stage, setting, ())
    values = {
        low,
        high,
        *(one for one in _values(pipeline.stages[at], reaching, setting, low, high) if low < one < high),
    }
    rest = Pipeline(pipeline.stages[at:])
    return len({tuple(sorted(kept_ids(pipeline_at(rest, [(axis, value)])(reaching)))) for value in sorted(values)})


def _values(stage: Stage, reaching: Candidates, setting: str, low: float, high: float) -> Sequence[float]:
    """The values at which what is kept can change, or enough of them."""
    if isinstance(stage, AdaptiveGap) and setting in ("gap_threshold", "distance_offset"):
        ranked = stage.arrange(reaching.hits, reaching)
        distances = tuple(hit.distance for hit in ranked if hit.distance is not None and not hit.origin)
        return list(stage.change_points(setting, distances)) if distances else []
    if isinstance(stage, MinSimilarity):
        known = [cosine_similarity(hit, reaching.metric) for hit in reaching.hits]
        return [value for one in known if one is not None for value in (one, one + 2e-9)]
    if next(row.kind for row in stage.declared() if row.name == setting) == "int":
        return range(int(low), int(high) + 1)
    return [low + (high - low) * step / (_TRIED - 1) for step in range(_TRIED)]
