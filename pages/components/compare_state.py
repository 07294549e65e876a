"""Compare's view in the session: one plain key, widgets bound to its fields, and the address kept in step."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.components import address, choice, session, tuning_set
from pages.components.compare_view import MOST, CompareView, from_address, settled, to_address
from pages.components.view import compact
from rag_core.errors import InputError

VIEW, ADDRESS, PROBLEM = "compare", "compare.address", "compare.problem"


def current() -> CompareView:
    """The view of this session."""
    view: CompareView = st.session_state.setdefault(VIEW, CompareView())
    return view


def change(**changes: Any) -> None:
    """Change fields of the view; another eval set is then the choice of the other pages too."""
    st.session_state[VIEW] = current().changed(**changes)
    st.session_state[PROBLEM] = ""
    if "eval_set" in changes:
        st.session_state[tuning_set.SET] = changes["eval_set"]


def follow() -> None:
    """Take over the eval set that another page chose since."""
    if choice.eval_set() not in ("", current().eval_set):
        change(eval_set=choice.eval_set())


def follow_pipeline() -> None:
    """Look closely at the pipeline that another page chose since."""
    entry = choice.met(VIEW)
    if entry:
        put_in(entry)


def put_in(entry: str) -> None:
    """Hold this pipeline against the baseline, beside those that are compared already; it is the one of all pages."""
    choice.take(choice.PIPELINE, entry)
    choice.met(VIEW)
    view = current()
    entries = choice.added(view.pipelines, entry, MOST)
    at = entries.index(entry)
    change(pipelines=entries, **({"other": at} if at != view.baseline else {}))


def settle(**changes: Any) -> None:
    """Name what is shown where the view named nothing."""
    values = {field: getattr(current(), field) for field in CompareView.__slots__}
    st.session_state[VIEW] = settled(CompareView(**{**values, **changes}))


def bind(field: str) -> dict[str, Any]:
    """Arguments that tie a widget to a field of the view."""
    key = f"{VIEW}.{field}"
    st.session_state[key] = getattr(current(), field)
    return {"key": key, "on_change": _taken_over, "args": (field,)}


def _taken_over(field: str) -> None:
    value = st.session_state[f"{VIEW}.{field}"]
    change(**{field: tuple(value) if isinstance(value, list) else value})


def add_from_explore() -> None:
    """Take what Explore has now into the comparison, in place of what was taken before."""
    put_in(choice.working_copy(compact(session.current())))


def read_address() -> None:
    """Take the view from an address that was opened or edited; what is wrong with it is kept as a sentence."""
    parameters = address.opened(ADDRESS)
    if not parameters:
        return
    try:
        st.session_state[VIEW] = from_address({"set": choice.eval_set(), **parameters})
        st.session_state[PROBLEM] = ""
        if parameters.get("set"):
            choice.take(choice.EVAL_SET, current().eval_set)
        choice.met(VIEW)  # the pipelines of a link stand as they are
    except InputError as error:
        st.session_state[PROBLEM] = str(error)


def write_address() -> None:
    """Put the view into the address; a link copied from there restores it."""
    address.write(ADDRESS, to_address(current()))
