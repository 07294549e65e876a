"""What presses of the Bench share: a pipeline is taken as A, a job is begun; a refusal is the Bench's notice."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages import state
from pages.components import jobs, who
from rag_core.errors import InputError
from rag_core.project.deeds import Kind
from rag_core.project.session import Session
from rag_core.stage import Pipeline

NOTICE, OFF = "bench.notice", "bench.off"


def take(pipeline: Pipeline, session: Session) -> None:
    """Make it A, and its fair rival B; what led there is put away."""
    try:
        state.change(a=state.encode(pipeline, session), b=state.AUTO)
    except InputError as error:
        st.session_state[NOTICE] = str(error)
    st.session_state.pop(OFF, None)
    jobs.put_away()


def begin(title: str, work: jobs.Work, kind: Kind, about: str, job: str, **words: Any) -> None:
    """Begin the work as a deed of that kind; `job` is its kind among jobs, `words` those of its bar."""
    try:
        jobs.start(title, work, who.deed(kind, about), job, **words)
    except InputError as error:
        st.session_state[NOTICE] = str(error)
