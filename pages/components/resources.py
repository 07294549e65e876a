"""What all sessions share: the open label store, and the frozen collector.

Cached by path, never by a person's input. Streamlit collects garbage after every run and pays for every
live object; freezing what was loaded once takes that cost away.
"""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from pages.components import who
from rag_core.project.deeds import LABEL
from rag_core.settings import database_settings
from rag_core.workspace import resolve_workspace

if TYPE_CHECKING:
    from rag_core.store.database import Store

STORE_FILE = "winnow.db"


def workspace() -> Path:
    """The folder of labels and own eval sets."""
    return resolve_workspace()


@st.cache_resource(max_entries=4, show_spinner=False)
def _open(folder: str) -> Store:
    from rag_core.store.database import open_store  # late: the database layer is the slowest import of the page

    store = open_store(Path(folder))
    freeze()
    return store


def label_store() -> Store:
    """The open label store of the workspace; a StoreError where it cannot be opened.

    Where another file took its place it is opened anew; where there is none any more, the old one refuses to write.
    Whoever may not label is handed one that refuses to write: no page can forget to ask.
    """
    store = _open(str(workspace()))
    if store.away and store.path.is_file():
        _open.clear()
        store.close()
        store = _open(str(workspace()))
    refusal = who.refusal(LABEL)
    return replace(store, unwritable=refusal) if refusal else store


def has_store() -> bool:
    """Whether there may be labels in this workspace; only then is the store worth opening early."""
    return database_settings() is not None or (workspace() / STORE_FILE).is_file()


@st.cache_resource(show_spinner=False)
def settle() -> bool:
    """Once a process, after the first page is drawn: everything imported and loaded until then is frozen."""
    freeze()
    return True


def freeze() -> None:
    """Take everything loaded so far out of later garbage collections."""
    gc.collect()
    gc.freeze()
