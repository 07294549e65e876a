"""Audit on Label: the labels to look at again, most suspect first; one of them or a blind sample opens the queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages.components import inert_text
from pages.components.inert_text import Block, Run
from pages.components.label_settings import VIEW_KEY, WANTED
from rag_core.evaluate.audit import Finding, Labelled, audit, blind_sample, labelled
from rag_core.evaluate.pooling import Pair
from rag_core.evaluate.sets import EvalSet
from rag_core.types import Case, Hit

MOST_SHOWN = 500
SAMPLE_SIZE = 30
SUSPECT, SAMPLE = "most suspect first", "blind sample"


def show(chosen: EvalSet) -> None:
    """Draw the view on an eval set with its labels and lists."""
    found = labelled(chosen.cases)
    if not found:
        st.markdown("**No chunk of this eval set has a label yet.** The audit looks at labels: give some in the queue.")
        return
    how = st.segmented_control("Which labels", (SUSPECT, SAMPLE), default=SUSPECT, required=True, key="audit.how")
    if how == SAMPLE:
        _sample(blind_sample(found, SAMPLE_SIZE), chosen.cases)
    else:
        _suspects(_findings(_key(found), chosen.min_grade, found)[:MOST_SHOWN], chosen.cases)


def _key(found: Sequence[Labelled]) -> int:
    return hash(tuple((one.query_id, one.chunk_id, one.grade, one.distance) for one in found))


@st.cache_resource(max_entries=4, show_spinner="Looking for suspect labels")
def _findings(key: int, min_grade: int, _found: Sequence[Labelled]) -> list[Finding]:
    """The audit, once for the same labels and lists."""
    return audit(_found, min_grade)


def _sample(sample: Sequence[Labelled], cases: Sequence[Case]) -> None:
    """Labels drawn at random, to be given again without seeing the first."""
    st.markdown(
        f"**{len(sample)} labels drawn at random**, the same for everybody. Label them again without seeing what was "
        "said, under another name or your own: *Agreement* compares people, History the labels of one."
    )
    st.button(
        f"Label these {len(sample)} in the queue", type="primary", key="audit.sample", on_click=_to_queue,
        args=(sample, cases, "It is in the blind sample of the audit."),
    )  # fmt: skip
    rows = [{"query": one.query_id, "chunk": one.chunk_id} for one in sample]
    st.dataframe(rows, hide_index=True, width="stretch", key="audit.blind")


def _suspects(findings: Sequence[Finding], cases: Sequence[Case]) -> None:
    """The list; a row shows its chunk and opens the queue on it."""
    rows = [
        {"query": one.label.query_id, "chunk": one.label.chunk_id, "why": one.kind, "grade": str(one.label.grade),
         "suspicion": f"{one.suspicion:.3f}", "against": one.against}
        for one in findings
    ]  # fmt: skip
    answer: Any = st.dataframe(
        rows, hide_index=True, width="stretch", on_select="rerun", selection_mode="single-row", key="audit.suspects"
    )
    picked = answer.selection.rows
    if picked and picked[0] < len(findings):
        _open(findings[picked[0]], cases)
    else:
        st.markdown(":gray[Select a row to read the chunk and to label it again.]")


def _open(finding: Finding, cases: Sequence[Case]) -> None:
    """The chunk, what speaks against its label, and the way into the queue."""
    together = [finding.label, *_against(finding, cases)]
    blocks: list[Block] = []
    for label in together:
        case, hit = _hit(label, cases)
        blocks += [Block("lead", (Run(case.query.text),))] if not blocks else []
        blocks += [
            Block("text", (Run(hit.chunk.title),)),
            Block("box", (Run(hit.chunk.text or "recorded without text"),)),
        ]
    inert_text.show(blocks, key="audit.chunk")
    words = "Label it again in the queue" if len(together) == 1 else "Label both again in the queue"
    why = f"The audit doubts its label: {finding.kind}."
    st.button(words, type="primary", key="audit.open", on_click=_to_queue, args=(together, cases, why))


def _against(finding: Finding, cases: Sequence[Case]) -> list[Labelled]:
    """The near-duplicate that contradicts, where there is one."""
    case = next(case for case in cases if case.query.id == finding.label.query_id)
    return [one for one in labelled([case]) if finding.against and one.chunk_id == finding.against]


def _hit(label: Labelled, cases: Sequence[Case]) -> tuple[Case, Hit]:
    case = next(case for case in cases if case.query.id == label.query_id)
    hits = case.candidates.hits if case.candidates else ()
    return case, next(hit for hit in hits if hit.chunk.id == label.chunk_id)


def _to_queue(wanted: Sequence[Labelled], cases: Sequence[Case], why: str) -> None:
    """Open the queue with these chunks first."""
    found = [_hit(label, cases) for label in wanted]
    pairs = [Pair(case.query, hit.chunk, distance=hit.distance) for case, hit in found]
    st.session_state[WANTED] = (pairs, why)
    st.session_state[VIEW_KEY] = "Queue"
