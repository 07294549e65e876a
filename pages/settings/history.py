"""History, a table: what was asked of a collection before, with which settings, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages import rail, state
from pages.components import resources, say
from pages.components.act import act, tell
from pages.widgets.take_along import table
from rag_core.errors import WinnowError
from rag_core.project.deeds import CHANGE_PROJECT, DELETE_HISTORY, Performed
from rag_core.project.project import COLLECTION, ProjectSource, init_project, open_project
from rag_core.settings import history_days
from rag_core.spec import parse_pipeline
from rag_core.store.history import History, HistoryEntry
from rag_core.text import counted
from rag_core.types import Query

TABLE = "history.table"
DONE, NAME = "history.done", "history.project"


def draw_table(listed: Sequence[HistoryEntry], total: int) -> list[HistoryEntry]:
    """The questions, newest first; those that are ticked."""
    shown = f"the newest {len(listed):,} of {total:,}" if total > len(listed) else f"{total:,}"
    st.caption(f"Questions: {shown}. Tick one to see it, or several to make a project of them or to delete them.")
    event = table(
        {
            "asked (UTC)": [one.at[:19].replace("T", " ") for one in listed],
            "question": [one.query for one in listed],
            "collection": [one.collection for one in listed],
            "kept": [len(one.result.get("kept", ())) for one in listed],
            "dropped": [sum(one.result.get("dropped", {}).values()) for one in listed],
            "hops": [len(one.hops) for one in listed],
            "ms": [round(one.milliseconds, 1) for one in listed],
            "by": [one.asked_by for one in listed],
        },
        TABLE,
        f"{len(listed)} questions with time, collection, kept and dropped chunks, hops and milliseconds",
        tall=388,
        config={"question": st.column_config.TextColumn("question", width="large")},
        on_select="rerun",
        selection_mode="multi-row",
    )
    rows = event["selection"]["rows"]
    return [listed[row] for row in rows if row < len(listed)]


def draw_actions(entries: Sequence[HistoryEntry]) -> None:
    """What can be done with the ticked questions."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if len(entries) == 1:
            _draw_open(entries[0])
        with st.popover("Make a project of them", icon=":material/add:"):
            st.text_input("Name", key=NAME, max_chars=64, placeholder="asked-this-week")
            st.button("Make it", key="history.make", type="primary", on_click=make_project, args=(list(entries),))
        with st.popover("Delete", icon=":material/delete:"):
            st.markdown(f"Questions ticked: **{len(entries):,}**. They go for good.")
            numbers = [one.number for one in entries]
            st.button("Delete them", type="primary", key="history.delete", on_click=delete, args=(numbers,))


def _draw_open(asked: HistoryEntry) -> None:
    """The way to the Bench with question and settings as they were, where its collection is still there."""
    try:
        project = open_project(asked.collection, resources.workspace()).name
        entry = state.encode(parse_pipeline(list(asked.pipeline)))
    except WinnowError as error:
        st.caption("It cannot be opened again.", help=str(error))
        return
    place = next(one for one in rail.PLACES if one.name == "bench")
    link = state.link(project=project, question=f"?{asked.query}", zoom=state.ONE, a=entry, b="", c="")
    st.page_link(place.script, label="Open on the Bench", icon=":material/open_in_new:", query_params=link)


def make_project(entries: Sequence[HistoryEntry]) -> None:
    """A project of these questions, each once, on the collection they were asked of."""
    name = str(st.session_state.get(NAME) or "").strip()
    texts = list(dict.fromkeys(one.query for one in reversed(entries)))
    queries = [Query(f"q{number}", text) for number, text in enumerate(texts, 1)]
    collections = {one.collection for one in entries}
    source = ProjectSource(COLLECTION, collections.pop()) if len(collections) == 1 else ProjectSource()
    said = f"project {name} holds {counted(len(queries), 'question', 'questions')}"
    if act(
        DONE, CHANGE_PROJECT, name, lambda _: init_project(resources.workspace(), name, source, questions=queries), said
    ):
        state.change(project=name)


def delete(numbers: Sequence[int] | None) -> None:
    """Delete questions for good, all of them where no numbers are given."""

    def work(_: Performed) -> int:
        found = history()
        return found.delete(numbers) if found is not None else 0

    what = "all" if numbers is None else f"{len(numbers)} questions"
    act(DONE, DELETE_HISTORY, what, work, lambda count: f"{counted(count, 'question is', 'questions are')} deleted")


def history() -> History | None:
    """The history of the workspace, None where nothing was ever stored. A StoreError where it cannot be read."""
    return History(resources.label_store()) if resources.has_store() else None


def draw_all_gone(total: int) -> None:
    """Delete everything, once that was said twice."""
    with st.popover("Delete the whole history", icon=":material/delete_forever:"):
        st.markdown(f"All questions of this workspace, **{total:,}**, go for good.")
        st.button("Delete everything", key="history.delete_all", on_click=delete, args=(None,))


def draw() -> None:
    """The table with what narrows it, and what can be done with the ticked questions."""
    tell(DONE)
    try:
        found = history()
        total = found.count() if found is not None else 0
    except WinnowError as error:
        say.problem(
            "The history cannot be read.",
            str(error),
            "*Status* says more. `winnow restore` brings a back-up into a fresh workspace.",
        )
        return
    if found is None or not total:
        off = " Nothing is being kept: WINNOW_HISTORY_DAYS is 0." if not history_days() else ""
        st.markdown(f"**No question is kept yet.** Ask one of your own on the Bench, or with `winnow query`.{off}")
        rail.link("bench", "Ask a question")
        return
    holds = st.text_input("Holds", key="history.holds", placeholder="part of the question", width=260).strip()
    matching, listed = found.count(holds=holds), found.find(holds)
    chosen = draw_table(listed, matching)
    if chosen:
        draw_actions(chosen)
    if len(chosen) == 1:
        st.markdown("**What came of it**")
        st.text(chosen[0].to_text())
    elif not chosen:
        draw_all_gone(total)
