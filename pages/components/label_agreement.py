"""Agreement on Label: kappa by pair, alpha over all, and the chunks people differ on, each with an adjudication.

An adjudicated label is one more event, of the annotator "adjudicated" with who decided in its note; nothing anybody
said is changed, and the history of a chunk shows it all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import streamlit as st

from pages.components import glossary, inert_text, labels, say, who
from pages.components.inert_text import Block, Run
from rag_core.errors import InputError, StoreError
from rag_core.evaluate.agreement import Disagreement, disagreements, fleiss_kappa, krippendorff_alpha, pair_agreements
from rag_core.evaluate.sets import EvalSet
from rag_core.project.deeds import ADJUDICATE
from rag_core.store.events import ADJUDICATED, Event
from rag_core.store.keys import text_hash
from rag_core.store.labels import LabelStore
from rag_core.types import Case, Hit

FAILED = "agreement.failed"
Item = tuple[str, str]


def show(chosen: EvalSet, store: LabelStore, annotator: str) -> None:
    """Draw the view."""
    events = store.labels(chosen.name)
    graded = _by_annotator(events)
    if len(graded) < 2:
        st.markdown(
            f"**{len(graded)} person has labelled this eval set.** Agreement needs two: let another label it under "
            "their own name, with *Pairs: not by me*."
        )
        return
    _figures(graded)
    found = disagreements(graded)
    st.markdown(f"**{len(found)} chunks are labelled differently**, widest difference first")
    if found:
        _list(found, events, chosen, store, annotator)


def _by_annotator(events: Sequence[Event]) -> dict[str, dict[Item, int]]:
    graded: dict[str, dict[Item, int]] = {}
    for event in events:
        if event.grade is not None and event.annotator != ADJUDICATED:
            graded.setdefault(event.annotator, {})[event.query_id, event.chunk_key] = event.grade
    return graded


def _figures(graded: Mapping[str, Mapping[Item, int]]) -> None:
    with st.container(horizontal=True):
        st.metric("Krippendorff’s alpha, ordinal", _digits(krippendorff_alpha(graded)), help=glossary.told("alpha"))
        st.metric("Fleiss’ kappa, chunks all judged", _digits(fleiss_kappa(graded)), help=glossary.told("kappa"))
    rows = [
        {"first": p.first, "second": p.second, "chunks both judged": p.items, "equal": _percent(p.observed),
         "Cohen’s kappa": _digits(p.kappa), "kappa, linear weights": _digits(w.kappa)}
        for p, w in zip(pair_agreements(graded), pair_agreements(graded, "linear"), strict=True)
    ]  # fmt: skip
    st.dataframe(rows, hide_index=True, width="stretch")


def _digits(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _list(
    found: Sequence[Disagreement], events: Sequence[Event], chosen: EvalSet, store: LabelStore, annotator: str
) -> None:
    decided = {(e.query_id, e.chunk_key): e for e in events if e.annotator == ADJUDICATED}
    known = {(e.query_id, e.chunk_key): e for e in events}
    rows = [
        {"query": one.item[0], "chunk": known[one.item].chunk_id, "difference": one.spread,
         "grades": ", ".join(f"{name} {grade}" for name, grade in sorted(one.grades.items())),
         "adjudicated": "" if one.item not in decided else str(decided[one.item].grade)}
        for one in found
    ]  # fmt: skip
    answer: Any = st.dataframe(
        rows, hide_index=True, width="stretch", on_select="rerun", selection_mode="single-row", key="agreement.list"
    )
    picked = answer.selection.rows
    if picked and picked[0] < len(found):
        _open(known[found[picked[0]].item], chosen, store, annotator)
    else:
        st.markdown(":gray[Select a row to read the chunk and decide.]")


def _open(event: Event, chosen: EvalSet, store: LabelStore, annotator: str) -> None:
    """The chunk, what everybody said of it, and the decision."""
    case, hit = _chunk(event, chosen)
    if case is None or hit is None:
        st.markdown("The chunk is not in this eval set’s lists any more: its labels are kept as orphans.")
        return
    blocks = [Block("lead", (Run(case.query.text),)), Block("text", (Run(hit.chunk.title),))]
    inert_text.show([*blocks, Block("box", (Run(hit.chunk.text or "recorded without text"),))], key="agreement.chunk")
    st.markdown("**Adjudicate**: counts from now on, until somebody labels the chunk again")
    with st.container(horizontal=True, gap="small"):
        for word, grade in labels.CHOICES[:4]:
            st.button(word, key=f"agree.{grade}", on_click=_decide, args=(event, hit, grade, store, annotator))
    failed = st.session_state.pop(FAILED, "")
    if failed:
        say.problem("The decision was not stored.", failed)
    with st.expander("History"):
        st.text("\n".join(_line(one) for one in store.history(chosen.name, event.query_id, event.chunk_id)))


def _line(event: Event) -> str:
    said = "took it back" if event.undoes else "unsure" if event.grade is None else f"grade {event.grade}"
    return f"{event.at[:19]}  {event.annotator}: {said}" + (f" ({event.note})" if event.note else "")


def _chunk(event: Event, chosen: EvalSet) -> tuple[Case | None, Hit | None]:
    for case in chosen.cases:
        if case.query.id == event.query_id and case.candidates is not None:
            hits = case.candidates.hits
            return case, next((hit for hit in hits if labels.key_of(hit) == event.chunk_key), None)
    return None, None


def _decide(event: Event, hit: Hit, grade: int | None, store: LabelStore, annotator: str) -> None:
    decision = Event(
        session=f"adjudication-{uuid4().hex}",
        seq=0,
        eval_set=event.eval_set,
        query_id=event.query_id,
        chunk_id=hit.chunk.id,
        annotator=ADJUDICATED,
        grade=grade,
        note=f"decided by {annotator}",
        query_hash=event.query_hash,
        text_hash=text_hash(hit.chunk.text),
    )
    try:
        with who.doing(ADJUDICATE, event.eval_set) as performed:
            store.append([performed.signature.on(decision)])
    except (InputError, StoreError) as error:
        st.session_state[FAILED] = str(error)
