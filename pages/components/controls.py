"""The sidebar of Explore: which eval set and query, which filters with which settings. All bound to the view."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

import streamlit as st

from pages.components import choice, live_controls, llm_controls, session, sources
from pages.components.view import View, compact
from rag_core.types import Case

MODES = ("token", "substring")
POLICIES = ("largest", "first", "relative")


def choose_set(titles: Mapping[str, str]) -> None:
    """The eval set, in the header: recorded lists, or queries with a corpus that is searched live."""
    bound = session.bind("eval_set")
    if session.current().eval_set not in titles:
        st.session_state[bound["key"]] = None  # an empty box, so that any choice is a change
    choice.select(
        "Eval set",
        list(titles),
        format_func=lambda name: titles[name],
        placeholder="choose an eval set",
        help="Queries with their labels, and either recorded result lists or a corpus that is searched live.",
        **bound,
    )


def open_file() -> None:
    """A place to drop one's own recorded lists."""
    st.file_uploader(
        "Open my result lists (JSONL)",
        type=["jsonl"],
        key=sources.FILE,
        on_change=_uploaded,
        help="One query a line: a query and its candidates, each with a distance or another score. "
        "Read in this session only; labels you give are kept.",
    )


def _uploaded() -> None:
    name = sources.take_upload()
    if name:
        session.change(eval_set=name, query_id="")


def choose_query(cases: Sequence[Case]) -> None:
    """The query, with steps to the one before and after."""
    ids = [case.query.id for case in cases]
    texts = {case.query.id: case.query.text for case in cases}
    bound = session.bind("query_id")
    own = bool(session.current().question)
    at = -1 if own else ids.index(session.current().query_id)
    if own:
        st.session_state[bound["key"]] = None  # an empty box, so that any choice is a change
    st.selectbox(
        f"Query (one of {len(ids)})" if own else f"Query ({at + 1} of {len(ids)})",
        ids,
        format_func=lambda query_id: f"{query_id}: {texts[query_id][:90]}",
        placeholder="your own question",
        **bound,
    )
    with st.container(horizontal=True):
        st.button("Previous", icon=":material/arrow_back:", disabled=at < 1, on_click=_go, args=(ids[max(at - 1, 0)],))
        st.button(
            "Next",
            icon=":material/arrow_forward:",
            disabled=at == len(ids) - 1,
            on_click=_go,
            args=(ids[min(at + 1, len(ids) - 1)],),
        )


def _go(query_id: str) -> None:
    session.change(query_id=query_id)


def filters(limit_maximum: Mapping[str, float], step: Mapping[str, float]) -> None:
    """The filters in the order they run; their settings show while they are on."""
    view = session.current()
    st.markdown("**Filters**")
    st.toggle(
        "query_must",
        help="Drops a chunk whose rule the query does not satisfy. A chunk without a rule stays.",
        **session.bind("rules_on"),
    )
    if view.rules_on:
        st.segmented_control("Matching", MODES, required=True, help=MODE_HELP, **session.bind("mode"))
        live_controls.refill()
    st.toggle(
        "adaptive",
        help="Cuts the list at its largest gap in distance, else at an offset from the nearest chunk.",
        **session.bind("adaptive_on"),
    )
    if view.adaptive_on:
        _adaptive(view, limit_maximum, step)
    llm_controls.choose()
    st.toggle("top-k", help="Keeps the first k of what is left.", **session.bind("top_on"))
    if view.top_on:
        st.number_input("k", min_value=1, max_value=1000, step=1, **session.bind("k"))


MODE_HELP = (
    "token: words and signed numbers, fillers skipped (“armor class of 6” holds “armor class 6”, not “-6”). "
    "substring: letter for letter, as the original design had it."
)


def _adaptive(view: View, limit_maximum: Mapping[str, float], step: Mapping[str, float]) -> None:
    relative = view.gap_policy == "relative"
    _limit("gap_threshold", "Gap threshold" + (" (share of the span)" if relative else ""), limit_maximum, step)
    if view.relative_offset is None:
        _limit("distance_offset", "Distance offset", limit_maximum, step)
    else:
        _limit("relative_offset", "Offset (share of the span)", limit_maximum, step)
    st.segmented_control("Gap policy", POLICIES, required=True, help=POLICY_HELP, **session.bind("gap_policy"))
    if relative:
        st.toggle(
            "offset as a share too", key="explore.share", value=view.relative_offset is not None, on_change=_share
        )
    st.toggle("query_specific", help=FORM_HELP, **session.bind("query_specific"))
    low, high = st.columns(2)
    low.number_input("Min results", min_value=0, max_value=view.max_results, step=1, **session.bind("min_results"))
    high.number_input(
        "Max results", min_value=max(1, view.min_results), max_value=1000, step=1, **session.bind("max_results")
    )


FORM_HELP = (
    "Half the gap threshold for a specific question (What is a …?), 1.5 times for a broad one (Tell me about …). "
    "The chart shows the threshold of this question."
)

POLICY_HELP = (
    "Which gap of at least the threshold ends the list: the largest, or the first. "
    "relative: the threshold is a share of the list’s own span of distances."
)


def _share() -> None:
    session.change(relative_offset=0.5 if st.session_state["explore.share"] else None)


def _limit(field: str, label: str, limit_maximum: Mapping[str, float], step: Mapping[str, float]) -> None:
    """A slider of one limit; the same value can be dragged in the chart."""
    digits = 4 if step[field] >= 0.0001 else 6
    st.slider(label, 0.0, limit_maximum[field], step=step[field], format=f"%.{digits}f", **session.bind(field))


def take_along() -> None:
    """The pipeline as a spec and as a command, and the way back to no filter."""
    view = session.current()
    if not (view.filtered or view.collection):
        return
    spec = compact(view)
    with st.container(horizontal=True):
        with st.popover("Copy", icon=":material/content_copy:"):
            st.markdown("The page’s address holds this view: copy it to share. The pipeline as a spec:")
            st.code(spec, language=None, wrap_lines=True)
            st.markdown("The same from the command line:")
            command = f"{_command(view)} --pipeline {shlex.quote(spec)}"
            st.code(command, language=None, wrap_lines=True)
        st.button(
            "Reset", icon=":material/restart_alt:", on_click=_reset, help="All filters off, settings as at first."
        )


def _command(view: View) -> str:
    if not view.collection:
        return "python -m rag_core replay lists.jsonl"
    approximate = " --approximate" if view.approximate else ""
    place = f"--collection {shlex.quote(view.collection)}{approximate}"
    if view.question:
        return f"python -m rag_core query {shlex.quote(view.question)} {place}"
    simulated = " --simulated-hops" if view.max_hops else ""
    return f"python -m rag_core evaluate --eval-set {view.eval_set} {place} -t {shlex.quote(view.query_id)}{simulated}"


def _reset() -> None:
    view = session.current()
    asked = {name: getattr(view, name) for name in ("eval_set", "query_id", "collection", "question")}
    st.session_state[session.VIEW] = View(**asked)
