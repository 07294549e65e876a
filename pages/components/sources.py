"""Where Explore's queries come from: a shipped or own eval set, or a recorded list that a person dropped on the page.

A dropped list lives in the session and is read with the importer of rag_core; its labels are stored under a name made
from its content, so that dropping the same file again finds them.
"""

from __future__ import annotations

import hashlib

import streamlit as st

from pages.components import resources
from pages.components.session import UPLOAD_PROBLEM
from rag_core.errors import InputError
from rag_core.eval_sets.reading import EvalSet
from rag_core.records import load_lists

UPLOADS = "explore.uploads"
FILE = "explore.file"
PREFIX = "dropped-"


def titles() -> dict[str, str]:
    """Name → what the list of eval sets shows; a dropped file is shown without its own name."""
    dropped = uploads()
    named = {name: _title(name) for name in resources.recorded_sets()}
    named |= {name: f"{_title(name)} (live)" for name in resources.live_sets()}
    return named | {name: f"Your dropped list (queries: {len(found.cases)})" for name, found in dropped.items()}


def _title(name: str) -> str:
    """The title of an eval set; one that cannot be read keeps its place under its name, so that the others stay."""
    try:
        return resources.eval_set(name).title
    except InputError:
        return f"{name} (cannot be read)"


def uploads() -> dict[str, EvalSet]:
    """The lists dropped in this session, by name."""
    found: dict[str, EvalSet] = st.session_state.setdefault(UPLOADS, {})
    return found


def find(name: str) -> EvalSet:
    """The eval set of that name; an InputError says what exists, or that a dropped file must be dropped again."""
    if name in uploads():
        return uploads()[name]
    if name.startswith(PREFIX):
        raise InputError("the link names a list that was dropped on this page before, expected that file dropped again")
    return resources.eval_set(name)


def take_upload(key: str = FILE) -> str:
    """Read the file dropped on the uploader `key`; its eval set's name, or '' with the problem kept."""
    st.session_state[UPLOAD_PROBLEM] = ""
    file = st.session_state.get(key)
    if file is None:
        return ""
    data: bytes = file.getvalue()
    name = PREFIX + hashlib.sha256(data).hexdigest()[:12]
    try:
        cases = tuple(load_lists(data, "the file"))
    except InputError as error:
        st.session_state[UPLOAD_PROBLEM] = str(error)
        return ""
    uploads()[name] = EvalSet(name, "Your dropped list", cases)
    return name


def upload_problem() -> str:
    """What was wrong with the file dropped last, '' for nothing."""
    found: str = st.session_state.get(UPLOAD_PROBLEM, "")
    return found
