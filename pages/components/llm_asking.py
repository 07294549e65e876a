"""Who answers the LLM filter on Explore, and what is known of its answers: the simulated judge, or an endpoint's model.

The simulated judge costs nothing and answers at once. An endpoint's model is asked when a person presses the button and
not before; its verdicts are then kept for the session by question, so that no floor, cap or filter asks it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st

from pages.components import resources
from pages.components.asked import Asked
from pages.components.llm_view import SIMULATED
from pages.components.view import View, pipeline_of
from rag_core.errors import InputError, StoreError, WinnowError
from rag_core.filters.llm import Asked as Verdicts
from rag_core.filters.llm import LLMFilter
from rag_core.llm import (
    AnswerStore,
    Endpoint,
    Preview,
    RecordedJudge,
    SimulatedJudge,
    endpoint_of,
    endpoints,
    environment_judge,
    named_endpoint,
    preview,
)
from rag_core.llm.recorded import FILE
from rag_core.measure.experiment import start_of
from rag_core.settings import ModelSettings
from rag_core.spec import build
from rag_core.stage import Pipeline
from rag_core.types import Candidates, Chunk

KEPT = "explore.llm"
_MOST = 200  # questions whose verdicts a session keeps


@dataclass(frozen=True)
class Waiting:
    """A model that was not asked about this list: what asking takes, and with what."""

    stage: LLMFilter
    candidates: Candidates
    ahead: Preview


@dataclass(frozen=True)
class Ready:
    """The page's filters as they can run now, and what is missing to the LLM filter where it is left out."""

    pipeline: Pipeline
    waiting: Waiting | None = None
    problem: str = ""


def known_endpoints() -> tuple[Mapping[str, ModelSettings], str]:
    """The endpoints that can be chosen, and what is wrong with the file that names them."""
    try:
        return endpoints(resources.workspace()), ""
    except (WinnowError, OSError) as error:
        return {}, str(error)


def endpoint(view: View) -> Endpoint:
    """The endpoint that the view names; an InputError says why it cannot be asked."""
    found = named_endpoint(resources.workspace(), view.judge)
    if found is None:
        raise InputError(f"there is no endpoint {view.judge[:80]!r}, expected the simulated judge")
    return endpoint_of(found)


@st.cache_resource(max_entries=4, show_spinner=False)
def _store(path: str) -> AnswerStore:
    return AnswerStore(Path(path))


def judge_of(view: View) -> RecordedJudge:
    """The endpoint's judge with the workspace's stored answers; a WinnowError where there is none."""
    endpoint(view)
    found = environment_judge(resources.workspace(), named_endpoint(resources.workspace(), view.judge), store=answers())
    if found is None:
        raise StoreError(f"endpoint {view.judge} is not set")
    return found


def answers() -> AnswerStore:
    """The workspace's stored answers, open."""
    return _store(str(resources.workspace() / FILE))


def simulated(view: View, asked: Asked) -> SimulatedJudge:
    """The simulated judge of the view, with the labels of the page's queries."""
    labels = {case.query.id: case.grades for case in (*asked.cases, asked.case)}
    return SimulatedJudge(labels, view.error_rate, min_grade=asked.chosen.min_grade, depth=view.judge_depth)


def chunks_of(asked: Asked) -> Mapping[str, Chunk]:
    """What references may bring: the collection's chunks, or those of the recorded lists."""
    if asked.live is not None:
        return asked.live.chunks
    return {
        hit.chunk.id: hit.chunk for case in asked.cases for hit in (case.candidates.hits if case.candidates else ())
    }


def ready(view: View, asked: Asked) -> Ready:
    """The page's filters for the query in sight, with what its LLM filter needs; without it where that is missing."""
    pipeline = pipeline_of(view)
    if not view.llm_on:
        return Ready(pipeline)
    found = build(pipeline, {"chunks": chunks_of(asked)})
    if view.judge == SIMULATED:
        return Ready(build(found, {"judge": simulated(view, asked)}))
    known = kept().get(place_of(view, asked))
    if known is not None:
        return Ready(build(found, {"asked": known}))
    try:
        return Ready(without(pipeline), waiting(view, asked, build(found, {"judge": judge_of(view)})))
    except (WinnowError, OSError) as error:
        return Ready(without(pipeline), problem=str(error))


def for_all(view: View, asked: Asked) -> Pipeline:
    """The page's filters for every query: an endpoint's model is not asked, its stored answers are read."""
    pipeline = pipeline_of(view)
    if not view.llm_on:
        return pipeline
    judge: SimulatedJudge | RecordedJudge = (
        simulated(view, asked) if view.judge == SIMULATED else RecordedJudge(answers(), None, endpoint(view).model)
    )
    return build(pipeline, {"judge": judge, "chunks": chunks_of(asked)})


def without(pipeline: Pipeline) -> Pipeline:
    """The pipeline without its LLM filter."""
    return replace(pipeline, stages=tuple(one for one in pipeline.stages if not isinstance(one, LLMFilter)))


def waiting(view: View, asked: Asked, pipeline: Pipeline) -> Waiting:
    """The LLM filter of the pipeline with the list it would get, and what asking about that would take."""
    at = next(at for at, one in enumerate(pipeline.stages) if isinstance(one, LLMFilter))
    stage = pipeline.stages[at]
    assert isinstance(stage, LLMFilter)
    before = Pipeline(pipeline.stages[:at])(start_of(asked.case))
    assert stage.judge is not None
    return Waiting(stage, before, preview(stage.prompts(before), judge_of(view)))


def ask(view: View, asked: Asked) -> None:
    """Ask the model about the list in sight, and keep its verdicts for this question."""
    pipeline = build(pipeline_of(view), {"chunks": chunks_of(asked), "judge": judge_of(view)})
    one = waiting(view, asked, pipeline)
    found = kept()
    while len(found) >= _MOST:
        found.pop(next(iter(found)))
    found[place_of(view, asked)] = one.stage.ask(one.candidates)


def kept() -> dict[tuple[str, ...], Verdicts]:
    """The verdicts of this session by what they depend on."""
    held: dict[tuple[str, ...], Verdicts] = st.session_state.setdefault(KEPT, {})
    return held


def place_of(view: View, asked: Asked) -> tuple[str, ...]:
    """What verdicts depend on: who answered, how it was asked, and the question; not which floor or cap holds."""
    how = (view.judge, endpoint_model(view), view.variant, view.llm_mode, str(view.check_order))
    return (*how, asked.chosen.name, view.collection, asked.case.query.id, asked.case.query.text)


def endpoint_model(view: View) -> str:
    """The model behind the view's judge, '' where it cannot be told."""
    found = known_endpoints()[0].get(view.judge)
    return found.model if found else ""
