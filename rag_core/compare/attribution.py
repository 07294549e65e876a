"""Where relevant chunks die: a waterfall by stage, and what each stage alone is good for.

A stage's own contribution is what changes when it is left out (ablation). Ablations do not add up to what all stages do
together: what two stages would both drop belongs to neither's ablation, and a cut moves when the list in front of it
changes. `shared` names that rest instead of hiding it. What could be gained at all is in project/ceilings.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import fsum
from typing import Any

from rag_core.measure.measures import SET_MEASURES
from rag_core.measure.tally import Dropped, PipelineTally, Progress, QueryTally, labels_of, measure_all
from rag_core.stage import Pipeline
from rag_core.types import Case


@dataclass(frozen=True, slots=True)
class Waterfall:
    """Relevant chunks of the scored queries, summed: in all, those some stage saw, lost stage by stage, and kept."""

    relevant: int
    retrieved: int
    lost: Mapping[str, int]  # stage → relevant chunks it took out, in the order of the stages
    kept: int

    @property
    def lost_in_retrieval(self) -> int:
        """Relevant chunks that no list held."""
        return self.relevant - self.retrieved

    def steps(self) -> list[tuple[str, int]]:
        """(name, count) from all to kept; what is lost is negative. They sum to 0 when `kept` is taken off."""
        losses = [(stage, -count) for stage, count in self.lost.items()]
        return [("relevant", self.relevant), ("retrieval", -self.lost_in_retrieval), *losses, ("kept", self.kept)]


@dataclass(frozen=True, slots=True)
class StageShare:
    """One filter stage: what it dropped, and what changes when it is left out (None where that was not tried)."""

    stage: str
    dropped: Dropped
    unique: Dropped | None  # of what it dropped, what would be kept without it
    gain: float | None  # mean SetF of the pipeline − mean SetF without the stage
    not_tried: str = ""


@dataclass(frozen=True, slots=True)
class Attribution:
    """The whole picture of one pipeline; means are over the scored queries."""

    waterfall: Waterfall
    stages: tuple[StageShare, ...]
    set_f: float
    unfiltered: float  # mean SetF of the list with no filter at all
    queries: int

    @property
    def together(self) -> float:
        """What all filters do together: mean SetF − that of the unfiltered list."""
        return self.set_f - self.unfiltered

    @property
    def shared(self) -> float | None:
        """What no ablation shows: `together` − the sum of the gains; None where one was not tried."""
        gains = [stage.gain for stage in self.stages]
        known = [gain for gain in gains if gain is not None]
        return self.together - fsum(known) if len(known) == len(gains) else None

    def to_json(self) -> dict[str, Any]:
        """Where relevant chunks are lost, and what each stage is good for."""
        return {
            "waterfall": [{"step": step, "chunks": count} for step, count in self.waterfall.steps()],
            "stages": [asdict(stage) for stage in self.stages],
            "SetF": self.set_f,
            "unfiltered": self.unfiltered,
            "together": self.together,
            "shared": self.shared,
            "queries": self.queries,
        }

    def to_text(self) -> str:
        """SetF without and with the filters, the waterfall in one line, and a line a stage."""
        lines = [f"SetF {self.set_f:.3f}, unfiltered {self.unfiltered:.3f}, over {self.queries} scored queries"]
        lines.append("  " + " · ".join(f"{step} {count}" for step, count in self.waterfall.steps()))
        for stage in self.stages:
            without = stage.not_tried
            if stage.gain is not None and not without:
                without = f"without it SetF {self.set_f - stage.gain:.3f} ({0.0 - stage.gain:+.3f})"
            dropped = stage.dropped
            counts = f"{dropped.relevant} relevant, {dropped.irrelevant} irrelevant, {dropped.unjudged} unjudged"
            lines.append(f"  {stage.stage}: drops {counts}; {without}")
        return "\n".join(lines)


def waterfall(tally: PipelineTally) -> Waterfall:
    """The waterfall of one pipeline over its scored queries."""
    scored = [query for query in tally.queries if query.scores.scored]
    lost = {}
    for label, stage in zip(labels_of(tally.pipeline), tally.pipeline.stages, strict=True):
        count = sum(query.dropped[label].relevant for query in scored if label in query.dropped)
        if count or stage.kind not in ("source", "rewrite"):
            lost[label] = count
    relevant = sum(query.scores.relevant_total for query in scored)
    kept = sum(query.scores.found for query in scored)
    return Waterfall(relevant, sum(query.retrieved for query in scored), lost, kept)


def attribute(
    cases: Sequence[Case], pipeline: Pipeline, min_grade: int = 1, progress: Progress | None = None
) -> Attribution:
    """Run the pipeline, without each filter and without any: shared beginnings run once."""
    labels = labels_of(pipeline)
    filters = {at for at, stage in enumerate(pipeline.stages) if stage.kind not in ("source", "rewrite")}
    # a model behind a stage would be asked anew about another list, so that is not tried
    free = [at for at in sorted(filters) if not any(stage.costly for stage in pipeline.stages[at + 1 :])]
    tried = {at: _without(pipeline, {at}) for at in free}
    bare = _without(pipeline, filters)
    pipelines = [pipeline, bare, *tried.values()]
    full, plain, *rest = measure_all(cases, pipelines, min_grade, SET_MEASURES, progress)
    left_out = dict(zip(tried, rest, strict=True))
    return Attribution(
        waterfall(full),
        tuple(_share(labels[at], full, left_out.get(at)) for at in sorted(filters)),
        set_f=_mean_f(full),
        unfiltered=_mean_f(plain),
        queries=sum(query.scores.scored for query in full.queries),
    )


def _without(pipeline: Pipeline, places: set[int]) -> Pipeline:
    return replace(pipeline, stages=tuple(stage for at, stage in enumerate(pipeline.stages) if at not in places))


def _share(label: str, full: PipelineTally, without: PipelineTally | None) -> StageShare:
    """One stage's share of the work."""
    dropped = _sum([query.dropped[label] for query in full.queries if label in query.dropped])
    if without is None:
        return StageShare(label, dropped, None, None, "what stands behind it costs: leaving it out would ask anew")
    unique = _sum(
        [_came_back(one, other, full.min_grade) for one, other in zip(full.queries, without.queries, strict=True)]
    )
    return StageShare(label, dropped, unique, _mean_f(full) - _mean_f(without))


def _came_back(full: QueryTally, without: QueryTally, min_grade: int) -> Dropped:
    """What is kept only when the stage is left out."""
    counts = [0, 0, 0]
    for chunk in set(without.kept) - set(full.kept):
        grade = full.grades.get(chunk)
        counts[2 if grade is None else 0 if grade >= min_grade else 1] += 1
    return Dropped(*counts)


def _sum(parts: Sequence[Dropped]) -> Dropped:
    return Dropped(
        sum(part.relevant for part in parts),
        sum(part.irrelevant for part in parts),
        sum(part.unjudged for part in parts),
    )


def _mean_f(tally: PipelineTally) -> float:
    return tally.summary.means["SetF"] or 0.0
