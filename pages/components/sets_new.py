"""A new eval set out of a list of queries: pasted or dropped, looked at, then made."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.components import resources, say, sets_state
from rag_core.errors import InputError
from rag_core.evaluate.set_queries import FORMS, form_of, read_query_list, repeated_texts
from rag_core.evaluate.set_writing import new_set
from rag_core.files import decode
from rag_core.store.events import GRADES
from rag_core.types import Query

FILE, TEXT, NAME = "sets.new.file", "sets.new.text", "sets.new.name"
AS_WRITTEN = "as it is written"
SHOWN = 200
EXAMPLE = "How far can a wounded knight move?\nWhat does a fireball cost?"
FORMS_HELP = (
    "Lines: one query a line. CSV: a header with query, and id, tags (; between), split where wanted. JSONL: an object "
    "a line with query, and id, tags, split; BEIR and Ragas files are read by their own keys."
)


def show() -> None:
    """The list on the left, what it is read as on the right."""
    left, right = st.columns(2, gap="large")
    with left:
        text, source = _text()
    with right:
        queries = _read(text, source)
    with left:
        _make(queries)


def _text() -> tuple[str, str]:
    """The list and where it comes from; a dropped file goes before what is pasted."""
    st.text_area("Queries, one a line", key=TEXT, height=180, placeholder=EXAMPLE, persist_state="session")
    file = st.file_uploader("or drop a list", type=["txt", "csv", "jsonl", "ndjson"], key=FILE, help=FORMS_HELP)
    st.selectbox(
        "Read",
        [AS_WRITTEN, *FORMS],
        key="sets.new.form",
        help=f"As the ending or the first character says. {FORMS_HELP}",
    )
    if file is None:
        return st.session_state.get(TEXT) or "", ""
    try:
        return decode(file.getvalue(), "the file"), file.name
    except InputError as error:
        say.problem("This file cannot be read.", str(error))
        return "", ""


def _read(text: str, source: str) -> list[Query]:
    """The queries as they are understood, shown; none where the list is empty or wrong."""
    if not text.strip():
        st.markdown("**Nothing to look at yet.** Paste queries on the left, or drop a file.")
        return []
    chosen = st.session_state.get("sets.new.form", AS_WRITTEN)
    try:
        queries = read_query_list(text, form_of(text, source) if chosen == AS_WRITTEN else chosen, source or "the list")
    except InputError as error:
        say.problem("This list cannot be read; nothing was made.", str(error))
        return []
    again = repeated_texts(queries)
    st.markdown(f"**Queries: {len(queries):,}**" + (f"; {again:,} ask what another one asks" if again else ""))
    _table(queries)
    return queries


def _table(queries: Sequence[Query]) -> None:
    first = queries[:SHOWN]
    columns = {"id": [q.id for q in first], "query": [q.text for q in first]}
    if any(q.tags for q in first):
        columns["tags"] = [", ".join(q.tags) for q in first]
    if any(q.metadata.get("split") for q in first):
        columns["split"] = [str(q.metadata.get("split") or "") for q in first]
    st.dataframe(columns, hide_index=True, width="stretch", alt=f"The first {len(first)} queries as they are read")


def _make(queries: list[Query]) -> None:
    st.text_input("Name", key=NAME, max_chars=64, placeholder="table-talk", help="Letters, digits, dots, - and _.")
    st.text_input("Title", key="sets.new.title", max_chars=120, help="What lists show; the name where it is empty.")
    st.segmented_control(
        "Relevant from grade",
        [grade for grade in GRADES if grade],
        format_func=lambda grade: f"{grade} {GRADES[grade]}",
        default=1,
        required=True,
        key="sets.new.grade",
    )
    if st.button("Make the set", type="primary", icon=":material/add:", disabled=not queries, key="sets.new.make"):
        name = (st.session_state.get(NAME) or "").strip()
        title, grade = st.session_state.get("sets.new.title") or "", int(st.session_state.get("sets.new.grade") or 1)
        sets_state.act(
            lambda: new_set(resources.workspace(), name, queries, title, min_grade=grade),
            lambda _: f"Made {name} with {len(queries):,} queries. Take lists from a collection to label and tune it.",
        )
        if not st.session_state[sets_state.PROBLEM]:
            st.session_state["sets.go"] = name
        st.rerun()
