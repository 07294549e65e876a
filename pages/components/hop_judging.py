"""Who judges hops on Explore: a simulated judge that knows the labels, or the endpoint's model at a button.

The model's answers are kept in the workspace; unless the button was pressed only stored ones are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from pages.components import resources
from pages.components.view import View, front_of
from rag_core import workbench
from rag_core.llm import AnswerStore, RecordedJudge, environment_judge
from rag_core.llm.recorded import FILE
from rag_core.llm.simulated_hops import SimulatedHopJudge, labelled_titles
from rag_core.resources import with_hop_judge
from rag_core.settings import model_settings
from rag_core.spec import build
from rag_core.stage import Pipeline

if TYPE_CHECKING:
    from pages.components.asked import Asked

MODEL = "explore.hops.model"
ASK = "explore.hops.ask"


def choose() -> None:
    """Whether the endpoint's model judges, where one is set."""
    settings = model_settings()
    if settings is None:
        st.caption("Judged by a simulated judge that knows the labelled titles: no model endpoint is set.")
        return
    st.toggle("hops judged by the model", key=MODEL, help="Off: a simulated judge that knows the labelled titles.")
    if st.session_state.get(MODEL):
        st.session_state[ASK] = st.button("Ask the model about hops", icon=":material/forum:")


def ready(pipeline: Pipeline, view: View, asked: Asked) -> Pipeline:
    """The page's filters with what hops need: a judge, the headers, and the search of this view."""
    if asked.live is None or not any(stage.name == "MultiHop" for stage in pipeline.stages):
        return pipeline
    index = asked.live.index
    front = workbench.live(front_of(view, view.depth), index, view.eval_set)
    found = {"headers": getattr(index, "headers", None), "search": workbench.search_of(front)}
    return with_hop_judge(build(pipeline, found), resources.workspace(), _judge(asked))


def _judge(asked: Asked) -> Any:
    settings = model_settings()
    if settings is None or not st.session_state.get(MODEL):
        chunks = asked.live.chunks.values() if asked.live is not None else ()
        return SimulatedHopJudge(labelled_titles([*asked.cases, asked.case], chunks, asked.chosen.min_grade))
    if st.session_state.get(ASK):
        return environment_judge(resources.workspace())
    return RecordedJudge(AnswerStore(resources.workspace() / FILE), None, settings.model)
