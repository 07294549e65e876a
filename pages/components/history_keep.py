"""Hand the Bench's live questions to the history, in a thread: opening the store takes longer than drawing the page."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import streamlit as st

from pages.components import resources, who
from rag_core.settings import history_days
from rag_core.types import Candidates

KEPT = "history.handed_over"  # the last of this session: (collection and question, settings, when)
AGAIN_SECONDS = 30.0


def keep(candidates: Candidates, stages: Sequence[Any], collection: str) -> None:
    """Keep a live question with its settings; one whose sliders move is kept again at most twice a minute."""
    if not history_days():
        return
    last = st.session_state.get(KEPT)
    question, settings = (collection, candidates.query.text), json.dumps(list(stages), sort_keys=True, default=str)
    if last is not None and last[0] == question and (last[1] == settings or monotonic() - last[2] < AGAIN_SECONDS):
        return
    st.session_state[KEPT] = (question, settings, monotonic())
    arguments = (resources.workspace(), candidates, list(stages), collection, who.person().name)
    threading.Thread(target=_append, args=arguments, name="history", daemon=True).start()


def _append(workspace: Path, candidates: Candidates, stages: list[Any], collection: str, name: str) -> None:
    from rag_core.store.history import asked_of, expire, remember

    remember(workspace, asked_of(candidates, stages, collection, name))
    expire(workspace)
