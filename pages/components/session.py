"""The page's view in the session: one plain key, widgets bound to its fields, and the address kept in step.

Widget keys vanish when another page is opened, plain keys stay: so the view is the truth and every widget is set from
it before it is drawn. What a view means is in view.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from pages.components import address, choice
from pages.components.view import DEFAULT_SET, View, compact, from_address, to_address
from rag_core.errors import InputError

VIEW = "explore"
ADDRESS = "explore.address"
UNFILTERED = "unfiltered"  # the shipped pipeline a fresh view stands at; nobody chose it
PROBLEM = "explore.problem"
UPLOAD_PROBLEM = "explore.upload_problem"
SELECTED = "explore.selected"
MET_COLLECTION, NOTED = "explore.met_collection", "explore.noted"


def current() -> View:
    """The view of this session."""
    view: View = st.session_state.setdefault(VIEW, View())
    return view


def change(**changes: Any) -> None:
    """Change fields of the view; what was wrong before is past, another query forgets the selected chunk."""
    if "eval_set" in changes:
        changes = {"query_id": "", "collection": "", "where": "", "file_filter": "", **changes}
        choice.take(choice.EVAL_SET, changes["eval_set"])
    if "query_id" in changes:
        changes.setdefault("question", "")
    if {"query_id", "question", "collection"} & set(changes):
        select("")
    st.session_state[VIEW] = current().changed(**changes)
    st.session_state[PROBLEM] = st.session_state[UPLOAD_PROBLEM] = ""
    _search_in(current().collection)


def _search_in(collection: str) -> None:
    """A collection that is searched here is the one of all pages; recorded lists are none."""
    if collection:
        choice.take(choice.COLLECTION, collection)
    st.session_state[MET_COLLECTION] = choice.collection()


def settle(**changes: str) -> None:
    """Name the query or the collection that is shown where the view named none, or one that is not there."""
    st.session_state[VIEW] = current().changed(**changes)
    _search_in(current().collection)


def follow() -> None:
    """Take over the eval set and the collection that another page chose since."""
    if choice.eval_set() not in ("", current().eval_set):
        change(eval_set=choice.eval_set())
    if choice.collection() not in ("", current().collection, st.session_state.get(MET_COLLECTION, "")):
        change(collection=choice.collection())


def note_pipeline(name: str) -> None:
    """Make what the controls stand at the pipeline of all pages, once it is another: by name, or as it is."""
    view = current()
    entry = name or (choice.working_copy(compact(view)) if view.filtered else "")
    if entry == st.session_state.get(NOTED, UNFILTERED):
        return
    st.session_state[NOTED] = entry
    choice.take(choice.PIPELINE, entry)
    choice.met(VIEW)


def typed(field: str, check: Callable[[str], object]) -> dict[str, Any]:
    """Arguments that tie a text box to a field of the view; what `check` refuses stays in the box, with its reason."""
    key = f"{VIEW}.{field}"
    if not st.session_state.get(f"{key}.refused"):
        st.session_state[key] = getattr(current(), field)
    return {"key": key, "on_change": _typed, "args": (field, check)}


def refused(field: str) -> str:
    """Why what stands in the text box of a field was not taken over, '' where it was."""
    reason: str = st.session_state.get(f"{VIEW}.{field}.refused", "")
    return reason


def _typed(field: str, check: Callable[[str], object]) -> None:
    text = st.session_state[f"{VIEW}.{field}"].strip()
    try:
        if text:
            check(text)
    except InputError as error:
        st.session_state[f"{VIEW}.{field}.refused"] = str(error)
        return
    st.session_state[f"{VIEW}.{field}.refused"] = ""
    change(**{field: text})


def bind(field: str) -> dict[str, Any]:
    """Arguments that tie a widget to a field of the view."""
    key = f"{VIEW}.{field}"
    st.session_state[key] = getattr(current(), field)
    return {"key": key, "on_change": _taken_over, "args": (field,)}


def _taken_over(field: str) -> None:
    change(**{field: st.session_state[f"{VIEW}.{field}"]})


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
        _search_in(current().collection)
    except InputError as error:
        st.session_state[PROBLEM] = str(error)


def write_address(view: View) -> None:
    """Put the view into the address; a link copied from there restores it."""
    address.write(ADDRESS, to_address(view))


def selected() -> str:
    """The id of the selected chunk, '' for none."""
    chosen: str = st.session_state.get(SELECTED, "")
    return chosen


def select(chunk_id: str) -> None:
    """Make a chunk the selected one."""
    st.session_state[SELECTED] = chunk_id


def start_over() -> None:
    """Back to the view a fresh session has."""
    st.query_params.clear()
    choice.take(choice.EVAL_SET, DEFAULT_SET)
    st.session_state[VIEW] = View(eval_set=DEFAULT_SET)
    st.session_state[PROBLEM] = ""
    select("")
