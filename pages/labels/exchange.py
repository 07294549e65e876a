"""Import and export: first what a file would do, then as a batch that can be taken back; labels that meet nothing.

After a corpus was cut anew, or where a file names what is not there, labels stay in the store and count for nothing
until their chunk or question is back: here they are named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TypeVar

import streamlit as st

from pages.components import resources, say, who
from pages.components.act import act, refuse, tell
from pages.labels import pool
from pages.widgets.take_along import table
from rag_core.child import give_back
from rag_core.errors import InputError, StoreError
from rag_core.files import decode
from rag_core.project.deeds import Performed, import_kind, undo_kind
from rag_core.project.project import LISTS
from rag_core.project.session import Session
from rag_core.store.events import Event
from rag_core.store.exchange.formats import FORMATS, SUFFIXES, format_of, lines_to_export, read_labels, write_labels
from rag_core.store.exchange.line import LabelLine
from rag_core.store.exchange.planning import ImportPlan, apply_import_beside, plan_import
from rag_core.store.exchange.ragas import read_ragas, write_ragas
from rag_core.store.keys import text_hash
from rag_core.store.labels import LabelStore
from rag_core.text import counted

RAGAS = "ragas"
DONE, VERSION, TOLD = "exchange.done", "labels.version", "exchange.told"
UNMET = "exchange.unmet"
MOST_SHOWN, MANY = 200, 10_000
Label = TypeVar("Label", LabelLine, Event)
NO_QUESTION, NO_CHUNK = "no such question here", "no such chunk here"
NOT_FOUND = "in no list: counts as not found"


def show(session: Session, store: LabelStore, annotator: str) -> None:
    """Draw import, export, and where labels are after a new cut."""
    left, right = st.columns(2, gap="large")
    with left:
        _import(session, store, annotator)
    with right:
        _export(session, store)
        _stray(session, store)


def _import(session: Session, store: LabelStore, annotator: str) -> None:
    st.markdown("**Bring labels in.** Nothing is stored before you have seen what is new, equal, conflicting and lost.")
    imports = st.session_state.get(VERSION, 0)  # after one the file is put away, with what was read of it
    file = st.file_uploader(
        "Label file",
        type=[ending[1:] for ending in SUFFIXES],
        key=f"exchange.file.{imports}" if imports else "exchange.file",
    )
    chosen = st.selectbox("Format", ["by the file’s ending", *FORMATS, RAGAS], key="exchange.format")
    tell(TOLD, "Nothing was stored.")
    if done := st.session_state.get(DONE):
        st.markdown(f"**{counted(done['written'], 'label', 'labels')} brought in** as one batch.")
        st.button("Take this import back", icon=":material/undo:", on_click=_take_back, args=(done["batch"],))
    if file is None:
        return
    try:
        text = decode(file.getvalue(), "the file")
        if chosen == RAGAS:
            lines, unread = read_ragas(text, "the file", _questions(session), _texts(session))
        else:
            form = chosen if chosen in FORMATS else format_of(file.name)
            lines, unread = read_labels(text, form, "the file"), 0
        plan = plan_import(store, session.project.labels, lines, annotator)
    except (InputError, StoreError) as error:
        say.problem("This file cannot be brought in; nothing was changed.", str(error))
        return
    _offer(plan, store, len(lines), unread, _lost(lines, session))
    if len(lines) > MANY:
        del lines
        give_back()


def _questions(session: Session) -> dict[str, str]:
    return {case.query.id: case.query.text for case in session.cases}


def _texts(session: Session) -> dict[str, str]:
    return {chunk_id: chunk.text for chunk_id, chunk in pool.chunks_of(session).by_id.items()}


def _lost(lines: Sequence[LabelLine], session: Session) -> list[tuple[LabelLine, str]]:
    """The lines that would count for nothing, each with why."""
    by_id = pool.chunks_of(session).by_id
    no_chunk = NOT_FOUND if session.project.source.kind == LISTS else NO_CHUNK
    hashes = {text_hash(chunk.text) for chunk in by_id.values() if chunk.text}
    return _unmet(lines, session, lambda line: line.chunk_id in by_id or line.text_hash in hashes, no_chunk)


def _unmet(
    labels: Sequence[Label], session: Session, has_chunk: Callable[[Label], bool], no_chunk: str
) -> list[tuple[Label, str]]:
    """The labels whose question or chunk is not here, each with why."""
    asked = _questions(session)
    return [
        (one, no_chunk if one.query_id in asked else NO_QUESTION)
        for one in labels
        if one.query_id not in asked or not has_chunk(one)
    ]


def _offer(plan: ImportPlan, store: LabelStore, count: int, unread: int, lost: Sequence[tuple[LabelLine, str]]) -> None:
    figures = {
        "read": (count, "Labels of the file."),
        "new": (len(plan.new), "Labels of the file that are not here yet."),
        "equal": (len(plan.equal), "Labels that are here with the same grade."),
        "conflicting": (len(plan.conflicting), "Labels that are here with another grade."),
        "lost": (len(lost) + unread, "Labels that would count for nothing until their question or chunk is here."),
    }
    with st.container(horizontal=True, gap="large"):
        for name, (number, meaning) in figures.items():
            st.metric(name, f"{number:,}", width="content", help=meaning)
    if unread:
        st.markdown(f":gray[{counted(unread, 'line asks', 'lines ask')} what this project does not: left out.]")
    if lost:
        rows = [{"why": why, "question": one.query_id, "chunk": one.chunk_id} for one, why in lost[:MOST_SHOWN]]
        table(rows, "exchange.lost", "Labels of the file that meet nothing", tall=180)
    if plan.conflicting:
        table([
                {"question": line.query_id, "chunk": line.chunk_id, "annotator": line.annotator,
                 "file says": str(line.grade), "stands": str(there.grade)}
                for line, there in plan.conflicting[:MOST_SHOWN]
            ], "exchange.conflicting", "Labels of the file that are here with another grade")  # fmt: skip
    with st.container(horizontal=True):
        new, both = f"Bring in {len(plan.new)} new", f"Bring in new and replace {len(plan.conflicting)}"
        st.button(new, on_click=_apply, args=(plan, store, False), disabled=not plan.new)
        st.button(both, on_click=_apply, args=(plan, store, True), disabled=not plan.conflicting)


def _apply(plan: ImportPlan, store: LabelStore, overwrite: bool) -> None:
    def work(performed: Performed) -> None:
        done = apply_import_beside(store, plan, overwrite, performed.signature)
        give_back()
        performed.result = f"{done.written} labels, {done.batch}"
        st.session_state[DONE] = asdict(done)
        st.session_state[VERSION] = st.session_state.get(VERSION, 0) + 1

    whose = ", ".join(plan.annotators)
    act(TOLD, import_kind(who.person(), plan.annotators), plan.eval_set, work, whose=whose)


def _take_back(batch: str) -> None:
    store = LabelStore(resources.label_store())

    def work(performed: Performed) -> None:
        performed.result = f"{store.undo_batch(batch, performed.signature)} labels"
        st.session_state[DONE] = None
        st.session_state[VERSION] = st.session_state.get(VERSION, 0) + 1

    try:
        kind = undo_kind(who.person(), store.authors(batch))
    except StoreError as error:
        refuse(TOLD, str(error))
        return
    act(TOLD, kind, batch, work)


def _export(session: Session, store: LabelStore) -> None:
    st.markdown(
        "**Take labels out.** JSONL keeps everything; trec, beir, quepid and srw hold one grade per chunk, ragas the "
        "texts of relevant ones."
    )
    chosen = st.selectbox("Format to write", [*FORMATS, RAGAS], key="exchange.out")
    plain = "trec" if chosen == RAGAS else chosen  # like it, one grade per chunk
    name = session.project.labels
    try:
        count, unsure = store.standing(name)
        ragas = ""
        if chosen == RAGAS:
            lines, _ = lines_to_export(store, name, None, "trec")
            ragas = write_ragas(lines, _questions(session), _texts(session), session.project.min_grade)
    except (InputError, StoreError) as error:
        say.problem("These labels cannot be written in this format.", str(error))
        return
    left_out = f", {unsure} unsure ones left out" if unsure and FORMATS[plain].grades_only else ""
    st.markdown(f":gray[{counted(count, 'label', 'labels')} of people{left_out}.]")
    ending = ".jsonl" if chosen == RAGAS else next((one for one, name in SUFFIXES.items() if name == chosen), ".json")
    st.download_button(  # written when it is pressed: of 60,000 labels the file has 15 MB
        f"Download as {chosen}",
        lambda: ragas or write_labels(lines_to_export(store, name, None, chosen)[0], chosen),
        f"labels{ending}",
        disabled=not count,
    )


def _stray(session: Session, store: LabelStore) -> None:
    """The labels that meet nothing now, by name, and where their texts went."""
    chunks = pool.chunks_of(session)
    stands = (session.project.name, store.newest(), session.source.revision)
    if st.session_state.get(UNMET, (None,))[0] != stands:
        events = store.labels(session.project.labels)
        found = _unmet(events, session, lambda event: chunks.of(event) is not None, NO_CHUNK)
        st.session_state[UNMET] = (stands, len(events), found)
    _, given, stray = st.session_state[UNMET]
    if not given:
        return
    st.divider()
    if not stray:
        st.markdown(f"**All {counted(given, 'label', 'labels')} given here meet a question and a chunk.**")
    else:
        st.markdown(
            f"**{counted(len(stray), 'label meets', 'labels meet')} nothing now**, of {given:,} given here: "
            "kept, and counted again when the question or the text is back."
        )
        asked = _questions(session)
        table([
                {"why": why, "question": asked.get(event.query_id, event.query_id), "chunk": event.chunk_id,
                 "annotator": event.annotator, "grade": "unsure" if event.grade is None else str(event.grade)}
                for event, why in stray[:MOST_SHOWN]
            ], "exchange.stray", "Labels that meet nothing", tall=200)  # fmt: skip
    st.caption("Where their texts went: `winnow labels remap`.")
