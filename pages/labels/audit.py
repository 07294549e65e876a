"""Audit: the labels to look at again, most suspect first; one of them or a blind sample opens the queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages import state
from pages.components import inert_text
from pages.components.inert_text import Block, TextRun
from pages.labels import WANTED, pool
from pages.labels.pool import Chunks
from pages.widgets.take_along import picked, table
from rag_core.labelling.audit import LabelFinding, LabelledPair, audit, blind_sample
from rag_core.labelling.pooling import Pair
from rag_core.project.session import Session, front_of
from rag_core.store.labels import LabelStore
from rag_core.types import Query

MOST_SHOWN = 500
SAMPLE_SIZE = 30
SUSPECT, SAMPLE = "most suspect first", "blind sample"


def show(session: Session, store: LabelStore, annotator: str) -> None:
    """Draw the view on the project's labels, with the distance its search gave each chunk."""
    found = labelled(session)
    if not found:
        st.markdown("**No chunk of this project has a label yet.** The audit looks at labels: give some in the queue.")
        return
    how = st.segmented_control("Which labels", (SUSPECT, SAMPLE), default=SUSPECT, required=True, key="audit.how")
    asked = {case.query.id: case.query for case in session.cases}
    chunks = pool.chunks_of(session)
    if how == SAMPLE:
        # without labels given with distance and verdict in sight: a sample of those says nothing about blind ones
        seen = {
            (event.query_id, chunk_id)
            for event in store.labels(session.project.labels)
            if event.is_led
            for chunk_id in chunks.at_hand.ids(event)
        }
        blind = [one for one in found if (one.query_id, one.chunk_id) not in seen]
        _sample(blind_sample(blind, SAMPLE_SIZE), asked, chunks)
    else:
        _suspects(_findings(hash(tuple(found)), session.project.min_grade, found)[:MOST_SHOWN], asked, chunks)


def labelled(session: Session) -> list[LabelledPair]:
    """Every label of a chunk that is there, with the distance of the search where it found the chunk."""
    front = state.pipeline_of("A", session) or session.pipeline("unfiltered")
    by_id, rows = pool.chunks_of(session).by_id, []
    cases = [case for case in session.cases if case.grades]
    for case in session.capture(front_of(front), cases):
        hits = {hit.chunk.id: hit.distance for hit in (case.candidates.hits if case.candidates else ())}
        for chunk_id, grade in case.grades.items():
            if chunk_id in by_id:
                text, distance = by_id[chunk_id].text, hits.get(chunk_id)
                rows.append(LabelledPair(case.query.id, chunk_id, grade, text, distance, case.query.text))
    return rows


@st.cache_resource(max_entries=4, show_spinner="Looking for suspect labels")
def _findings(key: int, min_grade: int, _found: Sequence[LabelledPair]) -> list[LabelFinding]:
    """The audit, once for the same labels and lists."""
    return audit(_found, min_grade)


def _sample(sample: Sequence[LabelledPair], asked: dict[str, Query], chunks: Chunks) -> None:
    """Labels drawn at random, to be given again without seeing the first."""
    if not sample:
        st.markdown("**Every label was given with distance and verdict in sight**: there is no blind one to repeat.")
        return
    st.markdown(
        f"**{len(sample)} labels drawn at random**, the same for everybody. Label them again without seeing what was "
        "said, under another name or your own: *Agreement* compares people, History the labels of one."
    )
    st.button(
        f"Label these {len(sample)} in the queue", type="primary", key="audit.sample", on_click=_to_queue,
        args=(sample, asked, chunks, "It is in the blind sample of the audit."),
    )  # fmt: skip
    rows = [{"question": one.query, "chunk": chunks.title(one.chunk_id)} for one in sample]
    table(rows, "audit.blind", "Labels of the blind sample")


def _suspects(findings: Sequence[LabelFinding], asked: dict[str, Query], chunks: Chunks) -> None:
    """The list; a row shows its chunk and opens the queue on it."""
    rows = [
        {"question": one.label.query, "chunk": chunks.title(one.label.chunk_id), "why": one.kind,
         "grade": str(one.label.grade), "suspicion": f"{one.suspicion:.3f}",
         "against": chunks.title(one.against) if one.against else ""}
        for one in findings
    ]  # fmt: skip
    config: dict[str, Any] = {
        "suspicion": {"help": "One minus how likely the label is, from 0 to 1; above 1 a near-duplicate differs."}
    }
    answer: Any = table(
        rows, "audit.suspects", "Suspect labels", config=config, on_select="rerun", selection_mode="single-row"
    )
    chosen = picked(answer, findings)
    if not chosen:
        st.markdown(":gray[Select a row to read the chunk and to label it again.]")
        return
    (finding,) = chosen
    others = [one.label for one in findings if one.label.query_id == finding.label.query_id]
    together = [finding.label, *(one for one in others if finding.against and one.chunk_id == finding.against)]
    blocks = [Block("lead", (TextRun(finding.label.query),))]
    for label in together:
        chunk = chunks.by_id[label.chunk_id]
        blocks += [
            Block("text", (TextRun(chunk.title),)),
            Block("box", (TextRun(chunk.text or "recorded without text"),)),
        ]
    inert_text.show(blocks, key="audit.chunk")
    words = "Label it again in the queue" if len(together) == 1 else "Label both again in the queue"
    why = f"The audit doubts its label: {finding.kind}."
    st.button(words, type="primary", key="audit.open", on_click=_to_queue, args=(together, asked, chunks, why))


def _to_queue(wanted: Sequence[LabelledPair], asked: dict[str, Query], chunks: Chunks, why: str) -> None:
    """Open the queue with these chunks first."""
    pairs = [Pair(asked[one.query_id], chunks.by_id[one.chunk_id], distance=one.distance) for one in wanted]
    st.session_state[WANTED] = (pairs, why)
    st.session_state["labels.view"] = "Queue"
