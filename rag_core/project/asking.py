"""What the judge of an LLM filter is asked on a project: its list as the stages in front of it leave it.

The work on judges (rag_core/judged) takes labelled questions with their candidates; here a pipeline's own are made of a
session, so that page and command foretell, ask, compare and repeat on the very list that the filter gets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag_core.errors import InputError
from rag_core.filters.llm.stage import LLMFilter
from rag_core.judged.entrants import Bench, Entrant, calls_of
from rag_core.llm.judge import RecordedJudge
from rag_core.llm.run import preview
from rag_core.llm.simulated import SimulatedJudge
from rag_core.project.session import Session
from rag_core.retrieve.dense import Dense
from rag_core.stage import Pipeline
from rag_core.types import Case


def judged_places(pipeline: Pipeline) -> list[int]:
    """Where the pipeline asks a judge about each candidate."""
    return [at for at, stage in enumerate(pipeline.stages) if isinstance(stage, LLMFilter) and stage.enabled]


def bench_of(session: Session, pipeline: Pipeline, place: int, cases: Sequence[Case]) -> Bench:
    """The questions with the list that comes to the stage at `place`; references may bring any chunk of the source."""
    front = Pipeline(pipeline.stages[:place])
    lists = [outcome.result for (outcome,) in session.stream([front], cases)]
    # recorded: a free filter that is tried beside the judge begins on this list and does not search
    fresh = [replace(one, drops=(), steps=(), notices=(), fallbacks=(), recorded=True) for one in lists]
    listed = tuple(replace(case, candidates=one) for case, one in zip(cases, fresh, strict=True))
    return Bench(session.project.name, listed, session.source.by_id, session.min_grade)


def nearest(session: Session, depth: int, cases: Sequence[Case]) -> Bench:
    """The questions with their `depth` nearest candidates; recorded ones with the lists they have."""
    return bench_of(session, Pipeline((Dense(depth=depth),)), 1, cases)


def check_verdict(session: Session, pipelines: Sequence[Pipeline], cases: Sequence[Case]) -> None:
    """Nothing, or the InputError why no verdict may stand on the session's judge: it is simulated, or was not asked."""
    judge = session.judge
    places = [(pipeline, place) for pipeline in pipelines for place in judged_places(pipeline)]
    if places and isinstance(judge, SimulatedJudge):
        raise InputError("the judge is simulated, drawn from the labels it would be held against, expected a model")
    if not isinstance(judge, RecordedJudge) or judge.behind is not None:
        return
    for pipeline, place in places:
        stage = pipeline.stages[place]
        assert isinstance(stage, LLMFilter)
        named = judge.replay(stage.model)
        bench = bench_of(session, pipeline, place, cases)
        missing = preview(calls_of(bench, [Entrant(stage, named, named.name)])).calls
        if missing:
            raise InputError(
                f"{missing} {'call' if missing == 1 else 'calls'} about the {len(cases)} held-out questions were never "
                "made, expected an answer to each (the judge's drawer asks)"
            )
