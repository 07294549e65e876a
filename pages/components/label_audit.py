"""Audit on Label: the labels to look at again, most suspect first, read and given anew in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import streamlit as st

from pages.components import inert_text, labels, say
from pages.components.inert_text import Block, Run
from pages.components.label_settings import Settings
from rag_core.errors import StoreError
from rag_core.evaluate.audit import Labelled, audit, blind_sample, labelled
from rag_core.evaluate.sets import EvalSet
from rag_core.store.database import Store
from rag_core.store.events import Event
from rag_core.store.keys import text_hash
from rag_core.store.labels import LabelStore
from rag_core.types import Case, Hit

MOST_SHOWN = 500
SUSPECT, SAMPLE = "most suspect first", "blind sample"
FAILED = "audit.failed"


def show(chosen: EvalSet, store: Store, settings: Settings) -> None:
    """Draw the view."""
    cases = labels.overlaid(store, chosen.name, chosen.cases)
    found = labelled(cases)
    if not found:
        st.markdown("**No chunk of this eval set has a label yet.** The audit looks at labels: give some in the queue.")
        return
    how = st.segmented_control("Which labels", (SUSPECT, SAMPLE), default=SUSPECT, required=True, key="audit.how")
    blind = how == SAMPLE
    chosen_ones: Sequence[Labelled] = blind_sample(found, 30)
    rows = [{"query": one.query_id, "chunk": one.chunk_id} for one in chosen_ones]
    if not blind:
        findings = audit(found, chosen.min_grade)[:MOST_SHOWN]
        chosen_ones = [one.label for one in findings]
        rows = [
            {"query": one.label.query_id, "chunk": one.label.chunk_id, "why": one.kind, "grade": str(one.label.grade),
             "suspicion": f"{one.suspicion:.3f}", "against": one.against}
            for one in findings
        ]  # fmt: skip
    answer: Any = st.dataframe(
        rows, hide_index=True, width="stretch", on_select="rerun", selection_mode="single-row", key=f"audit.{how}"
    )
    picked = answer.selection.rows
    if picked and picked[0] < len(chosen_ones):
        _open(chosen_ones[picked[0]], cases, store, settings)
    else:
        st.markdown(":gray[Select a row to read the chunk and label it again.]")


def _open(label: Labelled, cases: Sequence[Case], store: Store, settings: Settings) -> None:
    case = next(case for case in cases if case.query.id == label.query_id)
    hits = case.candidates.hits if case.candidates else ()
    hit = next(hit for hit in hits if hit.chunk.id == label.chunk_id)
    blocks = [Block("lead", (Run(case.query.text),)), Block("text", (Run(hit.chunk.title),))]
    inert_text.show([*blocks, Block("box", (Run(hit.chunk.text or "recorded without text"),))], key="audit.chunk")
    with st.container(horizontal=True, gap="small"):
        for word, grade in labels.CHOICES:
            st.button(word, key=f"audit.{grade}", on_click=_again, args=(case, hit, grade, store, settings))
    failed = st.session_state.pop(FAILED, "")
    if failed:
        say.problem("The label was not stored.", failed)


def _again(case: Case, hit: Hit, grade: int | None, store: Store, settings: Settings) -> None:
    event = Event(
        session=f"audit-{uuid4().hex}",
        seq=0,
        eval_set=settings.eval_set,
        query_id=case.query.id,
        chunk_id=hit.chunk.id,
        annotator=settings.annotator,
        grade=grade,
        note="audit",
        query_hash=text_hash(case.query.text),
        text_hash=text_hash(hit.chunk.text),
    )
    try:
        LabelStore(store).append([event])
    except StoreError as error:
        st.session_state[FAILED] = str(error)
