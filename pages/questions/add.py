"""Adding questions: pasted or dropped, read before anything is stored, joined to the project in one press."""

from __future__ import annotations

import streamlit as st

from pages.components import say
from pages.questions import change, more
from pages.widgets.take_along import table
from rag_core.errors import InputError
from rag_core.eval_sets.queries import FORMS, expected_answer, form_of, read_query_list, repeated_texts
from rag_core.files import decode
from rag_core.project.project import LISTS, add_questions
from rag_core.project.session import Session
from rag_core.text import counted
from rag_core.types import Query

TEXT, FILE, FORM = "questions.text", "questions.file", "questions.form"
BY_LOOK = "as it looks"
SHOWN = 200
FORM_WORDS = {"lines": "one question a line", "csv": "CSV", "jsonl": "JSONL"}
FORMS_HELP = (
    "Lines: one question a line. CSV: a header with `query` or `question`, and where wanted `id`, `tags` (; between), "
    "`split`, `expected_answer`. JSONL: an object a line with the same keys; BEIR and Ragas files are read by theirs."
)


def show(session: Session) -> None:
    """The box, what stands in it as it is read, and the button; or why this project takes none."""
    project = session.project
    if project.shipped:
        st.markdown("**A shipped project keeps its questions.** Make a copy of it to add your own.")
        change.copy_form(session)
        return
    if project.source.kind == LISTS:
        st.markdown("**These questions came with their recorded lists**; add them there, on Data.")
        return
    if not session.cases:
        st.markdown(
            "**No questions yet.** Paste what people ask of this material, one question a line, or drop a file."
        )
    st.text_area(
        "Questions, one a line", key=TEXT, height=170, placeholder="How much coffee does a double shot take?\nWhat is …"
    )
    st.file_uploader("or a file", type=["txt", "csv", "jsonl", "ndjson"], key=FILE, help=FORMS_HELP)
    try:
        text, name = _given()
    except InputError as error:
        say.problem("This file cannot be read.", str(error))
        text = name = ""
    # Never disabled: a press on it is also what takes over a text that is still being typed.
    st.button(
        "Add questions", type="primary", icon=":material/add:", key="questions.add", on_click=_add, args=(session,)
    )
    with st.expander("Read it as", expanded=False):
        st.selectbox("Read", [BY_LOOK, *FORMS], key=FORM, help=FORMS_HELP, label_visibility="collapsed")
    if text.strip():
        _preview(session, text, name)
    more.show(session)


def _given() -> tuple[str, str]:
    """What stands in the box or the file by now, and the file's name."""
    file = st.session_state.get(FILE)
    if file is None:
        return st.session_state.get(TEXT) or "", ""
    return decode(file.getvalue(), "the file"), file.name


def _read(session: Session, text: str, name: str) -> list[Query]:
    form = st.session_state.get(FORM, BY_LOOK)
    present = {case.query.id: case.query.text for case in session.cases}
    return read_query_list(text, form_of(text, name) if form == BY_LOOK else form, name or "the list", present)


def _preview(session: Session, text: str, name: str) -> None:
    """What was read, in words and as a table, or the line that cannot be read."""
    try:
        queries = _read(session, text, name)
    except InputError as error:
        say.problem("This cannot be read; nothing is added.", str(error))
        return
    form = st.session_state.get(FORM, BY_LOOK)
    present = {case.query.id for case in session.cases}
    new = [query for query in queries if query.id not in present]
    read_as = FORM_WORDS[form_of(text, name) if form == BY_LOOK else form]
    said = [f"**{counted(len(new), 'new question', 'new questions')}**, read as {read_as}"]
    if len(new) < len(queries):
        said.append(f"{len(queries) - len(new):,} there already")
    if again := repeated_texts(new):
        said.append(f"{again:,} ask what another one asks")
    brought = {
        "tags": sum(bool(query.tags) for query in new),
        "a side": sum(bool(query.metadata.get("split")) for query in new),
        "an expected answer": sum(bool(expected_answer(query)) for query in new),
    }
    said += [f"{count:,} with {what}" for what, count in brought.items() if count]
    st.markdown("; ".join(said) + ".")
    if not new:
        return
    first = new[:SHOWN]
    columns = {
        "question": [query.text for query in first],
        "id": [query.id for query in first],
        "tags": [", ".join(query.tags) for query in first],
        "side": [str(query.metadata.get("split") or "") for query in first],
        "expected answer": [expected_answer(query) for query in first],
    }
    columns = {name: values for name, values in columns.items() if any(values)}
    table(columns, "questions.add.table", f"The first {len(first)} questions as they are read")


def _add(session: Session) -> None:
    """Read again what stands there by now, and add it."""

    def added() -> int:
        text, name = _given()
        if not text.strip():
            raise InputError("the box is empty, expected a question a line or a file")
        return add_questions(session.project, _read(session, text, name))

    if change.do(added, lambda count: f"{counted(count, 'question', 'questions')} added."):
        st.session_state[TEXT] = ""
