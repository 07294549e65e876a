"""History, a table: what was asked of a collection before, with which settings, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import streamlit as st

from pages import rail, state
from pages.components import resources, say, who
from rag_core.errors import WinnowError
from rag_core.project.deeds import CHANGE_PROJECT, DELETE_HISTORY
from rag_core.project.project import COLLECTION, ProjectSource, init_project, open_project
from rag_core.settings import history_days
from rag_core.spec import parse_pipeline
from rag_core.store.history import History, HistoryEntry
from rag_core.text import counted
from rag_core.types import Query

TABLE = "history.table"
PROBLEM, DONE, NAME = "history.problem", "history.done", "history.project"
SHOWN = 200
DAYS = {0: "any time", 1: "last day", 7: "last 7 days", 30: "last 30 days"}


@dataclass(frozen=True, slots=True)
class Filters:
    """What a person looks for; empty admits all."""

    collection: str = ""
    holds: str = ""
    days: int = 0

    @property
    def since(self) -> str:
        """The earliest time that is shown."""
        if not self.days:
            return ""
        return (datetime.now(UTC) - timedelta(days=self.days)).isoformat(timespec="milliseconds")


def choose_filters(found: History) -> Filters:
    """The filters in one row."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        holds = st.text_input("Holds", key="history.holds", placeholder="part of the question", width=260)
        names = found.collections()
        collection = st.selectbox(
            "Collection", ["", *names], format_func=lambda name: name or "all", key="history.collection", width=220
        )
        days = st.selectbox("Asked", list(DAYS), format_func=lambda key: DAYS[key], key="history.days", width=160)
    return Filters(collection or "", (holds or "").strip(), days or 0)


def draw_table(listed: Sequence[HistoryEntry], total: int) -> list[HistoryEntry]:
    """The questions, newest first; those that are ticked."""
    shown = f"the newest {len(listed):,} of {total:,}" if total > len(listed) else f"{total:,}"
    st.caption(f"Questions: {shown}. Tick one to see it, or several to make a project of them or to delete them.")
    event = st.dataframe(
        {
            "asked (UTC)": [one.at[:19].replace("T", " ") for one in listed],
            "question": [one.query for one in listed],
            "collection": [one.collection for one in listed],
            "kept": [len(kept_rows(one)) for one in listed],
            "dropped": [sum(one.result.get("dropped", {}).values()) for one in listed],
            "hops": [len(one.hops) for one in listed],
            "ms": [round(one.milliseconds, 1) for one in listed],
            "by": [one.asked_by for one in listed],
        },
        hide_index=True,
        key=TABLE,
        on_select="rerun",
        selection_mode="multi-row",
        height=min(38 + 35 * len(listed), 388),
        column_config={"question": st.column_config.TextColumn("question", width="large")},
        alt=f"{len(listed)} questions with time, collection, kept and dropped chunks, hops and milliseconds",
    )
    rows = event["selection"]["rows"]
    return [listed[row] for row in rows if row < len(listed)]


def draw_actions(chosen: Sequence[HistoryEntry]) -> None:
    """What can be done with the ticked questions."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if len(chosen) == 1:
            _draw_open(chosen[0])
        with st.popover("Make a project of them", icon=":material/add:"):
            st.text_input("Name", key=NAME, max_chars=64, placeholder="asked-this-week")
            st.button("Make it", key="history.make", type="primary", on_click=make_project, args=(list(chosen),))
        with st.popover("Delete", icon=":material/delete:"):
            st.markdown(f"Questions ticked: **{len(chosen):,}**. They go for good.")
            numbers = [one.number for one in chosen]
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


def make_project(chosen: Sequence[HistoryEntry]) -> None:
    """A project of these questions, each once, on the collection they were asked of."""
    name = str(st.session_state.get(NAME) or "").strip()
    texts = list(dict.fromkeys(one.query for one in reversed(chosen)))
    queries = [Query(f"q{number}", text) for number, text in enumerate(texts, 1)]
    collections = {one.collection for one in chosen}
    source = ProjectSource(COLLECTION, collections.pop()) if len(collections) == 1 else ProjectSource()
    try:
        with who.doing(CHANGE_PROJECT, name):
            init_project(resources.workspace(), name, source, questions=queries)
    except (WinnowError, OSError) as error:
        st.session_state[PROBLEM] = str(error)
        return
    state.change(project=name)
    st.session_state[DONE] = f"project {name} holds {counted(len(queries), 'question', 'questions')}"


def delete(numbers: Sequence[int] | None) -> None:
    """Delete questions for good, all of them where no numbers are given."""
    try:
        with who.doing(DELETE_HISTORY, "all" if numbers is None else f"{len(numbers)} questions"):
            found = history()
            count = found.delete(numbers) if found is not None else 0
        st.session_state[DONE] = f"{counted(count, 'question is', 'questions are')} deleted"
    except WinnowError as error:
        st.session_state[PROBLEM] = str(error)


def history() -> History | None:
    """The history of the workspace, None where nothing was ever stored. A StoreError where it cannot be read."""
    return History(resources.label_store()) if resources.has_store() else None


def settings_of(asked: HistoryEntry) -> str:
    """The stages of a question in one line."""
    return " → ".join(str(next(iter(stage))) if isinstance(stage, dict) and stage else "?" for stage in asked.pipeline)


def kept_rows(asked: HistoryEntry) -> list[dict[str, Any]]:
    """The kept chunks of a question, as they were."""
    return [dict(row) for row in asked.result.get("kept", []) if isinstance(row, dict)]


def draw_one(one: HistoryEntry) -> None:
    """A question as it was: settings, what was kept, hops."""
    st.text(one.query)
    facts = [one.collection, f"{one.milliseconds:.1f} ms", settings_of(one)]
    facts += [f"{one.tokens:,} tokens"] if one.tokens is not None else []
    facts += [f"cost {one.cost:.4f}"] if one.cost is not None else []
    st.text(" · ".join(facts))
    for fallback in one.result.get("fallbacks", []):
        st.text(f"fell back: {fallback.get('stage', '')}: {fallback.get('reason', '')}")
    left, right = st.columns([3, 2], gap="medium")
    rows = kept_rows(one)
    with left:
        st.markdown(f"**Kept: {len(rows):,}**, {one.result.get('metric', 'unknown')} distance")
        if rows:
            kinds = [key for key in ("distance", "similarity", "bm25", "rrf", "score") if key in rows[0]]
            columns = {"title": [row.get("title") or row.get("id") for row in rows]}
            columns |= {kind: [row.get(kind) for row in rows] for kind in kinds}
            if any(row.get("origin") for row in rows):
                columns["came by"] = [row.get("origin") or "the search" for row in rows]
            st.dataframe({**columns, "id": [row.get("id") for row in rows]}, alt=f"{len(rows)} kept chunks")
    with right:
        dropped = one.result.get("dropped", {})
        st.markdown(f"**Dropped: {sum(dropped.values()):,}**")
        if dropped:
            st.dataframe({"stage": list(dropped), "chunks": list(dropped.values())}, hide_index=True)
        st.markdown("**Settings**")
        st.json(list(one.pipeline), expanded=2)
    if one.hops:
        st.markdown(f"**Hops: {len(one.hops)}**")
        keys = list(dict.fromkeys(key for hop in one.hops for key in hop))
        st.dataframe({key: [str(hop.get(key, "")) for hop in one.hops] for key in keys}, hide_index=True)


def draw_all_gone(total: int) -> None:
    """Delete everything, once that was said twice."""
    with st.popover("Delete the whole history", icon=":material/delete_forever:"):
        st.markdown(f"All questions of this workspace, **{total:,}**, go for good.")
        st.button("Delete everything", key="history.delete_all", on_click=delete, args=(None,))


def draw_message() -> None:
    problem, done = st.session_state.pop(PROBLEM, ""), st.session_state.pop(DONE, "")
    if problem:
        say.problem("Nothing was changed.", problem)
    elif done:
        with st.container(border=True):
            st.text(f"✓ {done}")


def draw() -> None:
    """The table with its filters, and what can be done with the ticked questions."""
    draw_message()
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
    filters = choose_filters(found)
    matching = found.count(filters.collection, filters.holds, filters.since)
    listed = found.find(filters.collection, filters.holds, filters.since, limit=SHOWN)
    chosen = draw_table(listed, matching)
    if chosen:
        draw_actions(chosen)
    if len(chosen) == 1:
        draw_one(chosen[0])
    elif not chosen:
        draw_all_gone(total)
