"""A label given on the Bench, in sight of distance and verdict: it counts, and is no part of a blind sample."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import streamlit as st

from pages.components import resources, who
from rag_core.project.deeds import LABEL
from rag_core.store.events import IN_SIGHT, Event
from rag_core.store.keys import text_hash
from rag_core.store.labels import LabelStore
from rag_core.types import Case, Hit

STREAM, NEXT = "bench.labels.stream", "bench.labels.next"


def give(eval_set: str, case: Case, hit: Hit, grade: int, pressed_at: float) -> None:
    """Store the label; when this returns it is on disk. `pressed_at` is the browser's clock, in milliseconds."""
    stream: str = st.session_state.setdefault(STREAM, uuid4().hex)
    number: int = st.session_state.get(NEXT, 0)
    st.session_state[NEXT] = number + 1  # used once, whatever becomes of its event
    pressed = datetime.fromtimestamp(min(max(pressed_at, 0.0), 1e14) / 1000, UTC).isoformat(timespec="milliseconds")
    event = Event(
        session=stream,
        seq=number,
        eval_set=eval_set,
        query_id=case.query.id,
        chunk_id=hit.chunk.id,
        annotator=who.annotator(),
        grade=grade,
        query_hash=text_hash(case.query.text),
        text_hash=text_hash(hit.chunk.text),
        sampler=IN_SIGHT,
    )
    with who.doing(LABEL, eval_set) as performed:
        came = replace(performed.signature, pressed_at=pressed.replace("+00:00", "Z"))
        LabelStore(resources.label_store()).append([came.on(event)])
