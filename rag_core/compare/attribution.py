"""Where relevant chunks die: a waterfall by stage, what each stage alone is good for, and whether order matters.

A stage's own contribution is what changes when it is left out (ablation). Ablations do not add up to what all stages do
together: what two stages would both drop belongs to neither's ablation, and a cut moves when the list in front of it
changes. `shared` names that rest instead of hiding it. What could be gained at all is in headroom.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import fsum
from typing import Any

from rag_core.errors import SpecError
from rag_core.measure.measures import SET_MEASURES, share
from rag_core.measure.tally import Dropped, PipelineTally, Progress, QueryTally, labels_of, measure_all
from rag_core.spec import parse_pipeline
from rag_core.stage import Pipeline, Stage
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
class Swap:
    """Two neighbouring stages in the other order."""

    first: str
    second: str
    queries_changed: int  # queries whose kept set differs
    gain: float  # mean SetF as it stands − mean SetF with the two swapped


@dataclass(frozen=True, slots=True)
class Attribution:
    """The whole picture of one pipeline; means are over the scored queries."""

    waterfall: Waterfall
    stages: tuple[StageShare, ...]
    swaps: tuple[Swap, ...]
    set_f: float
    unfiltered: float  # mean SetF of the list with no filter at all
    perfect_filter: float  # mean SetF if exactly the relevant chunks of what was retrieved were kept
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

    @property
    def limited_by(self) -> str:
        """retrieval, filters or nothing: which of the two losses of SetF is the larger."""
        by_retrieval, by_filters = 1 - self.perfect_filter, self.perfect_filter - self.set_f
        if max(by_retrieval, by_filters) < 1e-9:
            return "nothing"
        return "retrieval" if by_retrieval > by_filters else "filters"

    def verdict(self) -> str:
        """The finding in one sentence."""
        if not self.queries:
            return "No query is scored, so nothing can be said."
        by_retrieval, by_filters = 1 - self.perfect_filter, self.perfect_filter - self.set_f
        losses = (
            f"a perfect filter of these lists would reach SetF {self.perfect_filter:.3f}: retrieval costs "
            f"{by_retrieval:.3f}, the filters {by_filters:.3f}"
        )
        if self.limited_by == "nothing":
            return "Nothing is lost: exactly the relevant chunks are kept."
        name = "Retrieval-limited" if self.limited_by == "retrieval" else "Filter-limited"
        return f"{name}: {losses}."

    def to_json(self) -> dict[str, Any]:
        """Where relevant chunks are lost, and what each stage is good for."""
        return {
            "waterfall": [{"step": step, "chunks": count} for step, count in self.waterfall.steps()],
            "stages": [asdict(stage) for stage in self.stages],
            "swaps": [asdict(swap) for swap in self.swaps],
            "SetF": self.set_f,
            "unfiltered": self.unfiltered,
            "perfect_filter": self.perfect_filter,
            "together": self.together,
            "shared": self.shared,
            "limited_by": self.limited_by,
            "verdict": self.verdict(),
            "queries": self.queries,
        }

    def to_text(self) -> str:
        """The verdict, the waterfall in one line, a line a stage and a line a swap."""

        def signed(value: float) -> str:
            return f"{value + 0.0:+.3f}"  # no minus before a zero

        lines = [self.verdict(), "  " + " · ".join(f"{step} {count}" for step, count in self.waterfall.steps())]
        for stage in self.stages:
            without = stage.not_tried
            if stage.gain is not None and not without:
                without = f"without it SetF {self.set_f - stage.gain:.3f} ({signed(-stage.gain)})"
            dropped = stage.dropped
            counts = f"{dropped.relevant} relevant, {dropped.irrelevant} irrelevant, {dropped.unjudged} unjudged"
            lines.append(f"  {stage.stage}: drops {counts}; {without}")
        for swap in self.swaps:
            changed = f"{swap.queries_changed} queries change, {signed(-swap.gain)}"
            lines.append(f"  {swap.second} before {swap.first}: {changed}")
        return "\n".join(lines)


def waterfall(tally: PipelineTally) -> Waterfall:
    """The waterfall of one pipeline over its scored queries."""
    scored = [query for query in tally.queries if query.scores.scored]
    lost = {
        stage: sum(query.dropped[stage].relevant for query in scored if stage in query.dropped)
        for stage in labels_of(tally.pipeline)
    }
    relevant = sum(query.scores.relevant_total for query in scored)
    kept = sum(query.scores.found for query in scored)
    return Waterfall(relevant, sum(query.retrieved for query in scored), _only_filters(tally.pipeline, lost), kept)


def _only_filters(pipeline: Pipeline, lost: Mapping[str, int]) -> dict[str, int]:
    """Without the stages that never drop."""
    labels = zip(labels_of(pipeline), pipeline.stages, strict=True)
    return {label: lost[label] for label, stage in labels if stage.kind not in ("source", "rewrite") or lost[label]}


def attribute(
    cases: Sequence[Case], pipeline: Pipeline, min_grade: int = 1, progress: Progress | None = None
) -> Attribution:
    """Run the pipeline, without each filter, with neighbours swapped and without any: shared beginnings run once."""
    labels = labels_of(pipeline)
    without = {at: _without(pipeline, {at}) for at, stage in enumerate(pipeline.stages) if _can_go(stage)}
    tried = {at: one for at, one in without.items() if not _costs_behind(pipeline, at)}
    swapped = _swapped(pipeline)
    bare = _without(pipeline, set(without))
    full, plain, *rest = measure_all(
        cases, [pipeline, bare, *tried.values(), *swapped.values()], min_grade, SET_MEASURES, progress
    )
    left_out = dict(zip(tried, rest, strict=False))
    turned = dict(zip(swapped, rest[len(tried) :], strict=True))
    scored = [query for query in full.queries if query.scores.scored]
    return Attribution(
        waterfall(full),
        tuple(_share(labels[at], full, left_out.get(at)) for at in without),
        tuple(_swap(labels[at], labels[at + 1], full, one) for at, one in turned.items()),
        set_f=_mean_f(full),
        unfiltered=_mean_f(plain),
        perfect_filter=fsum(map(_perfect, scored)) / max(1, len(scored)),
        queries=len(scored),
    )


def _can_go(stage: Stage) -> bool:
    """Whether a pipeline makes sense without the stage: sources and rewrites make the list, they judge nothing."""
    return stage.kind not in ("source", "rewrite")


def _costs_behind(pipeline: Pipeline, at: int) -> bool:
    """Whether a stage behind `at` asks a model: another list in front of it would ask anew, so that is not tried."""
    return any(stage.costly for stage in pipeline.stages[at + 1 :])


def _without(pipeline: Pipeline, places: set[int]) -> Pipeline:
    return replace(pipeline, stages=tuple(stage for at, stage in enumerate(pipeline.stages) if at not in places))


def _swapped(pipeline: Pipeline) -> dict[int, Pipeline]:
    """The pipeline with the stages at `at` and `at + 1` in the other order, for every such pair that may stand so."""
    found = {}
    for at in range(len(pipeline.stages) - 1):
        pair = pipeline.stages[at : at + 2]
        if (
            not all(map(_can_go, pair))
            or pair[0] == pair[1]
            or any(_costs_behind(pipeline, place) for place in (at - 1, at))
        ):
            continue
        stages = (*pipeline.stages[:at], pair[1], pair[0], *pipeline.stages[at + 2 :])
        try:
            found[at] = parse_pipeline(list(stages), name=pipeline.label)
        except SpecError:
            continue
    return found


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


def _swap(first: str, second: str, full: PipelineTally, turned: PipelineTally) -> Swap:
    changed = sum(set(one.kept) != set(two.kept) for one, two in zip(full.queries, turned.queries, strict=True))
    return Swap(first, second, changed, _mean_f(full) - _mean_f(turned))


def _mean_f(tally: PipelineTally) -> float:
    return tally.summary.means["SetF"] or 0.0


def _perfect(query: QueryTally) -> float:
    """SetF of exactly the relevant chunks that were retrieved: precision 1, recall what retrieval left."""
    return 2 * share(query.retrieved, query.retrieved + query.scores.relevant_total)
