"""History: what was asked before, with which settings, and what came of it?"""

from collections.abc import Sequence

import streamlit as st

from pages.components import header, history_state, jobs, resources, say
from pages.components.history_state import Filters
from pages.components.trace import counted
from rag_core.errors import WinnowError
from rag_core.settings import history_days
from rag_core.store.history import Asked, History

TABLE = "history.table"
PROBLEM, DONE = "history.problem", "history.done"
SHOWN = 200
DAYS = {0: "any time", 1: "last day", 7: "last 7 days", 30: "last 30 days"}

HELP = """
Every question that is asked of a collection is kept here: on Explore, and by `query` on the command line. Kept are the
question, all settings, ids, titles and distances of what stayed, how many were dropped where, hops, and times. The text
of chunks is not.

**WINNOW_HISTORY_DAYS** says for how many days (90 unless set; 0 keeps none).

**Delete** is real: the store's file is rewritten, nothing of a deleted question stays in it. Back-ups that were made
before keep theirs.
"""


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


def draw_table(listed: Sequence[Asked], total: int) -> list[Asked]:
    """The questions, newest first; those that are ticked."""
    shown = f"the newest {len(listed):,} of {total:,}" if total > len(listed) else f"{total:,}"
    st.caption(f"Questions: {shown}. Tick one to see it, or several to make an eval set or to delete them.")
    event = st.dataframe(
        {
            "asked (UTC)": [one.at[:19].replace("T", " ") for one in listed],
            "question": [one.query for one in listed],
            "collection": [one.collection for one in listed],
            "kept": [len(history_state.kept_rows(one)) for one in listed],
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


def draw_actions(chosen: Sequence[Asked]) -> None:
    """What can be done with the ticked questions."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if len(chosen) == 1 and st.button("Open in Explore", icon=":material/open_in_new:", key="history.open"):
            st.switch_page("pages/explore.py", query_params=history_state.link_of(chosen[0]))
        with st.popover("Make an eval set", icon=":material/checklist:"):
            draw_new_set(chosen)
        with st.popover("Delete", icon=":material/delete:"):
            st.markdown(f"Questions ticked: **{len(chosen):,}**. They go for good.")
            st.button("Delete them", type="primary", key="history.delete", on_click=delete, args=(numbers(chosen),))


def numbers(chosen: Sequence[Asked]) -> list[int]:
    return [one.number for one in chosen]


def draw_new_set(chosen: Sequence[Asked]) -> None:
    """The name of the set, and whether its lists are captured, so that it can be labelled."""
    name = st.text_input("Name", key="history.set_name", max_chars=64, placeholder="asked-this-week")
    one_collection = len({one.collection for one in chosen}) == 1
    lists = st.toggle(
        "Capture lists, to label them",
        value=True,
        key="history.set_lists",
        disabled=not one_collection,
        help="200 candidates a question, from the collection that was asked. Questions to several collections get no "
        "lists here.",
    )
    made = st.button("Make it", key="history.make", disabled=not name or jobs.running(), type="primary")
    labelled = st.button("Make it and label", key="history.label", disabled=not (name and lists and one_collection))
    if made or labelled:
        make_set(name or "", chosen, lists and one_collection, go_label=labelled)


def make_set(name: str, chosen: Sequence[Asked], lists: bool, go_label: bool) -> None:
    try:
        with st.spinner("Asking the questions …"):
            count = history_state.make_set(name, chosen, lists)
    except (WinnowError, OSError) as error:
        st.session_state[PROBLEM] = str(error)
        st.rerun()
    if go_label:
        st.switch_page("pages/labels/page.py", query_params={"project": name})
    st.session_state[DONE] = f"eval set {name} holds {counted(count, 'query', 'queries')}"
    st.rerun()


def delete(chosen: list[int] | None) -> None:
    try:
        st.session_state[DONE] = f"{counted(history_state.delete(chosen), 'question is', 'questions are')} deleted"
    except WinnowError as error:
        st.session_state[PROBLEM] = str(error)


def draw_one(one: Asked) -> None:
    """A question as it was: settings, what was kept, hops."""
    st.text(one.query)
    facts = [one.collection, f"{one.milliseconds:.1f} ms", history_state.settings_of(one)]
    facts += [f"{one.tokens:,} tokens"] if one.tokens is not None else []
    facts += [f"cost {one.cost:.4f}"] if one.cost is not None else []
    st.text(" · ".join(facts))
    for fallback in one.result.get("fallbacks", []):
        st.text(f"fell back: {fallback.get('stage', '')}: {fallback.get('reason', '')}")
    left, right = st.columns([3, 2], gap="medium")
    rows = history_state.kept_rows(one)
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
    header.show("History", "What was asked before, and what came of it?", HELP)
    draw_message()
    try:
        found = history_state.history()
        total = found.count() if found is not None else 0
    except WinnowError as error:
        say.problem(
            "The history cannot be read.",
            str(error),
            "The page *Status* says more. `python -m rag_core restore` brings a back-up into a fresh workspace.",
        )
        return
    if found is None or not total:
        off = " Nothing is being kept: WINNOW_HISTORY_DAYS is 0." if not history_days() else ""
        st.markdown(f"**No question is kept yet.** Ask one of a collection on *Explore*, or with `query`.{off}")
        st.page_link(
            "pages/explore.py", label="Ask the demo rulebook", icon=":material/filter_alt:",
            query_params={"set": "rulebook"},
        )  # fmt: skip
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
    resources.settle()


draw()
