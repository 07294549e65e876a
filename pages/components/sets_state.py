"""What the page Eval sets works on: the sets with their counts, read again when their files change; how actions went.

Nothing here draws. Making and changing sets is in rag_core.evaluate.set_writing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from pages.components import choice, resources, who
from rag_core.errors import WinnowError
from rag_core.evaluate.set_facts import SetFacts, facts_of
from rag_core.evaluate.set_writing import DATA
from rag_core.evaluate.sets import EvalSet, folders, load_set
from rag_core.roles import CHANGE
from rag_core.store.exchange.planning import copy_labels
from rag_core.store.labels import LabelStore

CHOSEN = choice.EVAL_SET
WIDGET = "sets.chosen"
VIEW = "sets.view"
SETS, NEW, COMPARE = "Sets", "New set", "Compare"
DONE, PROBLEM = "sets.done", "sets.problem"


def listed() -> list[SetFacts]:
    """Every set with its counts, shipped ones first."""
    return [_facts(name, str(folder), _stamp(folder)) for name, folder in folders(resources.workspace()).items()]


def _stamp(folder: Path) -> tuple[int, ...]:
    return tuple((folder / one).stat().st_mtime_ns if (folder / one).is_file() else 0 for one in DATA)


@st.cache_resource(max_entries=200, show_spinner=False)
def _facts(name: str, folder: str, changed_at: tuple[int, ...]) -> SetFacts:
    return facts_of(name, Path(folder))


def opened(name: str) -> EvalSet:
    """The set of that name, read again when its files change."""
    folder = folders(resources.workspace())[name]
    return _read(name, str(folder), str(resources.workspace()), _stamp(folder))


@st.cache_resource(max_entries=4, show_spinner=False)
def _read(name: str, folder: str, workspace: str, changed_at: tuple[int, ...]) -> EvalSet:
    return load_set(name, Path(workspace))


def folder_of(name: str) -> Path:
    """Where the set lies."""
    return folders(resources.workspace())[name]


def labels_of_people() -> dict[str, int]:
    """How many labels the label store holds per eval set; nothing where nobody labelled yet."""
    if not resources.has_store():
        return {}
    try:
        store = LabelStore(resources.label_store())
        return {name: store.stats(name).labels for name in store.eval_sets()}
    except WinnowError:
        return {}


def copy_stored_labels(source: str, name: str) -> int:
    """Copy the labels of the label store to another set; how many there were."""
    return copy_labels(LabelStore(resources.label_store()), source, name).written if resources.has_store() else 0


def act(what: Callable[[], Any], done: Callable[[Any], str], choose: str = "") -> None:
    """Do what a button asks for and keep, in one sentence, how it went; `choose`: the set to show then."""
    st.session_state[DONE] = st.session_state[PROBLEM] = ""
    try:
        who.require(CHANGE)
        st.session_state[DONE] = done(what())
    except (WinnowError, OSError) as error:
        st.session_state[PROBLEM] = str(error)
        return
    if choose:
        st.session_state[CHOSEN], st.session_state[VIEW] = choose, SETS
