"""Dead knobs: on how many queries does turning a setting through its range change what is kept at all?

A knob that moves nothing on these queries cannot be tuned on them, whatever a sweep's best row says. For the cut, TopK
and MinSimilarity the change points within the range are tried, which finds every change; other settings a few values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_core.evaluate.experiment import kept_ids, start_of
from rag_core.evaluate.grid import Axis, pipeline_at
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cutoff import cosine_similarity
from rag_core.spec import setting_fields, stage_class
from rag_core.stage import Pipeline, Stage
from rag_core.types import Candidates, Case

_TRIED = 21  # values of a range whose change points are not known
RANGES: Mapping[tuple[str, str], tuple[float, float]] = {
    ("AdaptiveGap", "gap_threshold"): (0.05, 0.15),
    ("AdaptiveGap", "distance_offset"): (0.2, 0.6),
    ("AdaptiveGap", "min_results"): (1, 5),
    ("AdaptiveGap", "max_results"): (5, 15),
    ("TopK", "k"): (1, 15),
    ("MinSimilarity", "min_relevance"): (0.2, 0.7),
}
"""The ranges a person would turn a knob through at first."""


@dataclass(frozen=True, slots=True)
class Knob:
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


def knob(cases: Sequence[Case], pipeline: Pipeline, stage: str, setting: str, low: float, high: float) -> Knob:
    """What turning one setting of a pipeline's stage from low to high changes, query by query."""
    sets = {case.query.id: _kept_sets(start_of(case), pipeline, stage, setting, low, high) for case in cases}
    return Knob(stage, setting, low, high, sets)


def knobs(
    cases: Sequence[Case], pipeline: Pipeline, ranges: Mapping[tuple[str, str], tuple[float, float]] = RANGES
) -> list[Knob]:
    """Every knob of the pipeline's stages that has a range, in the order of the ranges."""
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
    if stage.name == "MinSimilarity":
        known = [cosine_similarity(hit, reaching.metric) for hit in reaching.hits]
        return [value for one in known if one is not None for value in (one, one + 2e-9)]
    if _is_whole(type(stage), setting):
        return range(int(low), int(high) + 1)
    return [low + (high - low) * step / (_TRIED - 1) for step in range(_TRIED)]


def _is_whole(cls: type[Stage], setting: str) -> bool:
    field: Any = setting_fields(stage_class(cls.__name__))[setting]
    return str(field.type).startswith("int")
