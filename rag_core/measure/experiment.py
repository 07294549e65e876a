"""Run pipelines over cases and keep, per query, the trace and the scores: what replay, evaluate and every page call.

Per query first, then macro means. How measures are defined is in measures.py and scores.py, whether a difference means
anything in significance.py, how a report becomes JSON in report.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rag_core.errors import InputError
from rag_core.measure.measures import DEFAULT_MEASURES, Measure
from rag_core.measure.prefix import tree_of
from rag_core.measure.scores import QueryScores, Summary, score, summarise
from rag_core.stage import Pipeline, counterfactuals, flatten
from rag_core.types import Candidates, Case, Counterfactual, Drop


@dataclass(frozen=True)
class Outcome:
    """One query through one pipeline: what went in, what came out with its trace, and the scores."""

    case: Case
    pipeline: Pipeline
    start: Candidates
    result: Candidates
    scores: QueryScores

    @cached_property
    def counterfactuals(self) -> Mapping[tuple[str, str], tuple[Counterfactual, ...]]:
        """What would have kept each dropped hit, keyed by Hit.key; computed when first asked for."""
        return counterfactuals(self.pipeline, self.start)

    def would_keep(self, drop: Drop) -> tuple[Counterfactual, ...]:
        """Per parameter of the stage that made a drop, the nearest value with which it would have kept the chunk."""
        candidates = self.start
        for stage in flatten(self.pipeline):
            after = stage.again(candidates)
            if drop in after.drops[len(candidates.drops) :]:
                return stage.would_keep(candidates, drop)
            candidates = after
        return ()


@dataclass(frozen=True)
class PipelineReport:
    """One pipeline over all cases, in their order."""

    name: str
    pipeline: Pipeline
    outcomes: tuple[Outcome, ...]
    min_grade: int

    @cached_property
    def summary(self) -> Summary:
        """Macro means with their counts."""
        return summarise([outcome.scores for outcome in self.outcomes])


def start_of(case: Case) -> Candidates:
    """What a pipeline gets for a case: its recorded list, or its bare query."""
    return case.candidates or Candidates(case.query)


def kept_ids(result: Candidates) -> list[str]:
    """The ids of the kept chunks in final order, each once: a chunk that came twice counts where it came first."""
    return list(dict.fromkeys(hit.chunk.id for hit in result.hits))


def run_case(
    case: Case, pipeline: Pipeline, min_grade: int = 1, measures: Sequence[Measure] = DEFAULT_MEASURES
) -> Outcome:
    """One case through one pipeline, scored against the case's labels."""
    start = start_of(case)
    return _outcome(case, pipeline, start, pipeline(start), min_grade, measures)


def _outcome(
    case: Case,
    pipeline: Pipeline,
    start: Candidates,
    result: Candidates,
    min_grade: int,
    measures: Sequence[Measure],
) -> Outcome:
    scores = score(
        kept_ids(result), case.grades, case.relevant_total, min_grade, measures, fallback=bool(result.fallbacks)
    )
    return Outcome(case, pipeline, start, result, scores)


def stream(
    cases: Iterable[Case],
    pipelines: Sequence[Pipeline],
    min_grade: int = 1,
    measures: Sequence[Measure] = DEFAULT_MEASURES,
) -> Iterator[tuple[Outcome, ...]]:
    """Case by case the outcome of every pipeline; stages that pipelines share in front run once per query.

    Nothing of a case is held once the next is asked for. Errors of a stage name the query they met.
    """
    tree = tree_of(pipelines)
    for case in cases:
        start = start_of(case)
        try:
            results = tree.results(start)
            yield tuple(
                _outcome(case, pipeline, start, result, min_grade, measures)
                for pipeline, result in zip(pipelines, results, strict=True)
            )
        except InputError as error:
            raise type(error)(f"query {case.query.id}: {error}") from None


def run(
    cases: Iterable[Case],
    pipeline: Pipeline,
    min_grade: int = 1,
    measures: Sequence[Measure] = DEFAULT_MEASURES,
    name: str = "",
) -> PipelineReport:
    """One pipeline over all cases. Errors of a stage name the query they met."""
    outcomes = tuple(outcome for (outcome,) in stream(cases, [pipeline], min_grade, measures))
    return PipelineReport(name or pipeline.label or "pipeline", pipeline, outcomes, min_grade)


def run_all(
    cases: Sequence[Case],
    pipelines: Sequence[Pipeline],
    min_grade: int = 1,
    measures: Sequence[Measure] = DEFAULT_MEASURES,
) -> list[PipelineReport]:
    """Every pipeline over the same cases, shared beginnings once; a repeated pipeline name becomes name#2.

    Holds every trace. For very many queries `tally.measure_all` keeps the figures and lets the traces go.
    """
    rows = list(stream(cases, pipelines, min_grade, measures))
    return [
        PipelineReport(name, pipeline, tuple(row[at] for row in rows), min_grade)
        for at, (pipeline, name) in enumerate(zip(pipelines, unique_names(pipelines), strict=True))
    ]


def unique_names(pipelines: Iterable[Pipeline]) -> Iterator[str]:
    """The pipelines' names, the second of a kind as name#2."""
    seen: dict[str, int] = {}
    for pipeline in pipelines:
        name = pipeline.label or "pipeline"
        seen[name] = seen.get(name, 0) + 1
        yield name if seen[name] == 1 else f"{name}#{seen[name]}"


def with_labels(cases: Iterable[Case], labels: Mapping[str, Mapping[str, int | None]]) -> list[Case]:
    """The cases with labels laid over their own: a grade replaces, None (unsure) makes a chunk unjudged."""
    overlaid = []
    for case in cases:
        changes = labels.get(case.query.id)
        if changes:
            grades = {**case.grades, **changes}
            case = replace(case, grades={chunk: grade for chunk, grade in grades.items() if grade is not None})
        overlaid.append(case)
    return overlaid
