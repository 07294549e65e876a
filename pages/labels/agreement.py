"""Agreement: how far people agree beyond chance, and the chunks they differ on, each with an adjudication.

An adjudicated label is one more event, of the annotator "adjudicated" with who decided in its note; nothing anybody
said is changed, and the history of a chunk shows it all. Labels given on the Bench, with distance and verdict in sight,
are left out: two people who saw the same verdict agree for its sake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import streamlit as st

from pages.components import glossary, inert_text, who
from pages.components.act import act, tell
from pages.components.inert_text import Block, TextRun
from pages.labels import pool
from pages.widgets.take_along import picked, table
from rag_core.labelling.agreement import (
    FEWEST_CLUSTERS,
    FEWEST_ITEMS,
    LINEAR,
    UNEQUAL,
    Disagreement,
    PairAgreement,
    alpha_estimate,
    disagreements,
    pair_agreements,
)
from rag_core.project.deeds import ADJUDICATE
from rag_core.project.session import Session
from rag_core.store.events import ADJUDICATED, Event, graded_by
from rag_core.store.keys import text_hash
from rag_core.store.labels import LabelStore
from rag_core.text import counted
from rag_core.types import Chunk

FAILED = "agreement.failed"
Item = tuple[str, str]
"""Query id and what the label of the chunk is stored under."""


def show(session: Session, store: LabelStore, annotator: str) -> None:
    """Draw the view."""
    events = store.labels(session.project.labels)
    blind = [event for event in events if not event.is_led]
    graded = graded_by(blind)
    if len(graded) < 2:
        people = counted(len(graded), "person has", "people have")
        st.markdown(
            f"**{people} labelled this project in the queue.** Agreement needs two: let another label it under their "
            "own name, with *Pairs: not by me* under Settings."
        )
        return
    _figures(graded)
    if len(blind) < len(events):
        seen = counted(len(events) - len(blind), "label", "labels")
        st.markdown(f":small[:gray[{seen} given on the Bench, with distance and verdict in sight, left out here.]]")
    found = disagreements(graded)
    st.markdown(f"**{counted(len(found), 'chunk is', 'chunks are')} labelled differently**, widest difference first")
    if found:
        _list(found, blind, session, store, annotator)


def _figures(graded: Mapping[str, Mapping[Item, int]]) -> None:
    """Alpha over all with its interval, or that it is too little to say; then every two people."""
    found = alpha_estimate(graded, cluster=lambda item: item[0])
    twice = counted(found.items, "chunk", "chunks") + " of " + counted(found.clusters, "question", "questions")
    meaning = f"{glossary.told('alpha')} 95 % interval: jackknife over questions, widened."
    with st.container(horizontal=True, gap="large"):
        if found.low is None or found.high is None or found.alpha is None:
            st.metric("Agreement beyond chance (Krippendorff’s α)", "too few", width="content", help=meaning)
            st.markdown(
                f"{twice} judged by two or more people; a figure needs {FEWEST_ITEMS} chunks of {FEWEST_CLUSTERS} "
                "questions, and both relevant and irrelevant ones.",
                width="stretch",
            )
        else:
            st.metric("Agreement beyond chance (Krippendorff’s α)", f"{found.alpha:.2f}", width="content", help=meaning)
            st.metric("95 % interval", f"{found.low:.2f} to {found.high:.2f}", width="content", help=meaning)
            st.metric("judged twice", twice, width="content", help="By two or more people.")

    def share(value: float | None, items: int) -> str:
        return "–" if value is None else f"{round(value * items):,} of {items:,}"

    def kappa(pair: PairAgreement) -> str:
        too_few = pair.kappa is None or pair.low is None
        return "too few" if too_few else f"{pair.kappa:.2f} [{pair.low:.2f}, {pair.high:.2f}]"

    exact, weighted = (pair_agreements(graded, misses, lambda item: item[0]) for misses in (UNEQUAL, LINEAR))
    rows = [
        {"first": p.first, "second": p.second, "chunks both judged": p.items, "equal": share(p.observed, p.items),
         "Cohen’s kappa": kappa(p), "kappa, linear weights": kappa(w)}
        for p, w in zip(exact, weighted, strict=True)
    ]  # fmt: skip
    config: dict[str, Any] = {
        name: {"help": glossary.told("kappa")} for name in ("Cohen’s kappa", "kappa, linear weights")
    }
    table(rows, "labels.agreement.table", "Agreement of every two people", config=config)


def _list(
    disagreements: Sequence[Disagreement], events: Sequence[Event], session: Session, store: LabelStore, annotator: str
) -> None:
    decided = {(e.query_id, e.chunk_key): e for e in events if e.annotator == ADJUDICATED}
    known = {(e.query_id, e.chunk_key): e for e in events}
    asked = {case.query.id: case.query.text for case in session.cases}
    chunks = pool.chunks_of(session)

    def title(event: Event) -> str:
        chunk = chunks.of(event)
        return chunks.title(chunk.id) if chunk else f"{event.chunk_id} (not in the source any more)"

    rows = [
        {"question": asked.get(one.item[0], one.item[0]), "chunk": title(known[one.item]),
         "difference": one.spread, "grades": ", ".join(f"{name} {grade}" for name, grade in sorted(one.grades.items())),
         "adjudicated": "" if one.item not in decided else str(decided[one.item].grade)}
        for one in disagreements
    ]  # fmt: skip
    answer: Any = table(
        rows, "agreement.list", "Chunks that people label differently", on_select="rerun", selection_mode="single-row"
    )
    for one in picked(answer, disagreements):
        event = known[one.item]
        _open(event, asked.get(event.query_id, ""), chunks.of(event), store, annotator)
        return
    st.markdown(":gray[Select a row to read the chunk and decide.]")


def _open(event: Event, question: str, chunk: Chunk | None, store: LabelStore, annotator: str) -> None:
    """The chunk, what everybody said of it, and the decision."""
    if chunk is None or not question:
        st.markdown("The chunk or its question is not in this project any more: its labels are kept.")
        return
    blocks = [Block("lead", (TextRun(question),)), Block("text", (TextRun(chunk.title),))]
    inert_text.show([*blocks, Block("box", (TextRun(chunk.text or "recorded without text"),))], key="agreement.chunk")
    st.markdown("**Adjudicate**: counts from now on, until somebody labels the chunk again")

    def decide(grade: int | None) -> None:
        decision = Event(
            session=f"adjudication-{uuid4().hex}",
            seq=0,
            eval_set=event.eval_set,
            query_id=event.query_id,
            chunk_id=chunk.id,
            annotator=ADJUDICATED,
            grade=grade,
            note=f"decided by {annotator}",
            query_hash=event.query_hash,
            text_hash=text_hash(chunk.text),
        )
        act(FAILED, ADJUDICATE, event.eval_set, lambda performed: store.append([performed.signature.on(decision)]))

    with st.container(horizontal=True, gap="small"):
        for word, grade in who.CHOICES[:4]:
            st.button(word, key=f"agree.{grade}", on_click=decide, args=(grade,))
    tell(FAILED, "The decision was not stored.")
    with st.expander("History"):
        st.text("\n".join(map(_line, store.history(event.eval_set, event.query_id, event.chunk_id))))


def _line(event: Event) -> str:
    said = "took it back" if event.undoes else "unsure" if event.grade is None else f"grade {event.grade}"
    seen = f", {event.sampler}" if event.is_led else ""
    return f"{event.at[:19]}  {event.annotator}: {said}{seen}" + (f" ({event.note})" if event.note else "")
