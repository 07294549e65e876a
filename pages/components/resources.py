"""What all sessions share: eval sets as they are on disk and the open label store; and the frozen collector.

Cached by file content or path, never by a person's input. Streamlit collects garbage after every run and pays for every
live object; freezing what was loaded once takes that cost away.
"""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from pages.components import who
from rag_core.errors import InputError
from rag_core.eval_sets.reading import EvalSet, folders, load_set, read_meta, title_of
from rag_core.project.deeds import LABEL
from rag_core.settings import database_settings
from rag_core.workspace import resolve_workspace

if TYPE_CHECKING:
    from rag_core.store.database import Store

STORE_FILE = "winnow.db"
LISTS, CORPUS = "lists.jsonl", "corpus.jsonl"


def workspace() -> Path:
    """The folder of labels and own eval sets."""
    return resolve_workspace()


def recorded_sets() -> list[str]:
    """The names of the eval sets that hold recorded lists, shipped ones first."""
    return [name for name, folder in folders(workspace()).items() if (folder / LISTS).is_file()]


def live_sets() -> list[str]:
    """The names of the eval sets whose queries are searched in a corpus of their own."""
    found = folders(workspace()).items()
    return [name for name, folder in found if not (folder / LISTS).is_file() and (folder / CORPUS).is_file()]


def collections() -> list[str]:
    """The names of the workspace's collections, unopened."""
    return sorted(path.name for path in (workspace() / "collections").glob("*/") if path.is_dir())


@st.cache_resource(max_entries=20, show_spinner="Reading the eval set")
def _read_set(name: str, folder: str, changed_at: tuple[int, ...]) -> EvalSet:
    found = load_set(name, Path(folder))
    freeze()
    return found


def eval_set(name: str) -> EvalSet:
    """The eval set of that name, read again when its files change; an InputError lists what exists."""
    known = folders(workspace())
    if name not in known:
        raise InputError(f"there is no eval set {name[:80]!r}, expected one of {_names()}")
    folder = known[name]
    if not ((folder / LISTS).is_file() or (folder / CORPUS).is_file()):
        raise InputError(f"eval set {name} holds neither recorded lists nor a corpus, expected one of {_names()}")
    files = [folder / one for one in (LISTS, "queries.jsonl", "qrels.tsv")]
    found = _read_set(name, str(workspace()), tuple(one.stat().st_mtime_ns for one in files if one.is_file()))
    if not found.cases:
        raise InputError(f"eval set {name} holds no query, expected one of {_names()}")
    return found


def set_titles() -> dict[str, str]:
    """Name → title of every eval set whose meta can be read; it is read again when it changes, its queries never.

    A set of many lists would take long for its title.
    """
    found = {}
    for name, folder in folders(workspace()).items():
        try:
            found[name] = _title(str(folder), (folder / "meta.yaml").stat().st_mtime_ns)
        except (InputError, OSError):
            continue
    return found


@st.cache_data(max_entries=400, show_spinner=False)
def _title(folder: str, changed_at: int) -> str:
    return title_of(Path(folder), read_meta(Path(folder)))


def _names() -> str:
    return ", ".join([*recorded_sets(), *live_sets()])


@st.cache_resource(max_entries=4, show_spinner=False)
def _open(folder: str) -> Store:
    from rag_core.store.database import open_store  # late: the database layer is the slowest import of the page

    store = open_store(Path(folder))
    freeze()
    return store


def label_store() -> Store:
    """The open label store of the workspace; a StoreError where it cannot be opened.

    Whoever may not label is handed one that refuses to write: no page can forget to ask.
    """
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
