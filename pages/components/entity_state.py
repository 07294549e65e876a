"""What Entities works on: a structure with the aliases added to it, its filter, and labelled queries for it.

The structure, the added aliases and dropped files live in the session; filters are shared between sessions by a key
made from content. Nothing here draws.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import streamlit as st

from pages.components import resources, who
from rag_core.entities import Structure, TeamFilter, load_structure
from rag_core.entities.agreement import Labelled, labelled_from_text, read_labelled
from rag_core.entities.document import structure_text
from rag_core.entities.structure import structure_from_text
from rag_core.errors import InputError
from rag_core.evaluate.sets import SHIPPED
from rag_core.files import decode, write_whole
from rag_core.project.deeds import CHANGE_STRUCTURE
from rag_core.resources import STRUCTURE_FILES, structure_path

DEMO, OWN = "demo", "workspace"
LABELLED = SHIPPED / "skirmish-entities" / "queries.jsonl"
PROBLEM = "entities.problem"
DROPPED = "entities.dropped"
DROPPED_LABELS = "entities.dropped_labels"
ALIASES = "entities.added"
SOURCE = "entities.source"

Added = tuple[tuple[str, tuple[str, ...]], ...]
"""Aliases added on the page, in order: (alias, entities)."""


def sources() -> dict[str, str]:
    """Which structures can be chosen: key → what the list shows."""
    found = {DEMO: "Demo: 48 invented teams"}
    if structure_path(resources.workspace()):
        found[OWN] = "The workspace’s structure"
    if DROPPED in st.session_state:
        found[st.session_state[DROPPED][0]] = "Your dropped structure"
    return found


def loaded(source: str) -> tuple[str, Structure]:
    """(key of its content, the structure) of a source; an InputError names what is wrong with the file."""
    if DROPPED in st.session_state and source == st.session_state[DROPPED][0]:
        held: tuple[str, Structure] = st.session_state[DROPPED]
        return held
    path = structure_path(resources.workspace()) if source == OWN else None
    changed_at = path.stat().st_mtime_ns if path else 0
    return f"{path or DEMO} {changed_at}", _read(path, changed_at)


@st.cache_resource(max_entries=4, show_spinner=False)
def _read(path: Path | None, changed_at: int) -> Structure:
    return load_structure(path)


@st.cache_resource(max_entries=12, show_spinner=False)
def team_filter(key: str, added: Added, _structure: Structure) -> TeamFilter:
    """The filter of a structure with these aliases; built once for a content and its aliases."""
    for alias, teams in added:
        _structure = _structure.with_alias(alias, teams)
    return TeamFilter(_structure)


def added(key: str) -> Added:
    """The aliases added to the structure of that content in this session."""
    found: dict[str, Added] = st.session_state.setdefault(ALIASES, {})
    return found.get(key, ())


def add(key: str, alias: str, teams: tuple[str, ...]) -> None:
    """Add an alias; one that stands already is replaced."""
    rest = tuple(pair for pair in added(key) if pair[0] != alias)
    st.session_state[ALIASES][key] = (*rest, (alias, teams))


def take_back(key: str) -> None:
    """Take the last added alias back."""
    st.session_state[ALIASES][key] = added(key)[:-1]


def take_structure(uploader: str) -> None:
    """Read the structure dropped on an uploader and choose it; what is wrong with it is kept as a sentence."""
    read = _dropped(uploader)
    if read is None:
        return
    digest, text = read
    try:
        st.session_state[DROPPED] = (f"dropped {digest}", structure_from_text(text, "the file"))
        st.session_state[SOURCE] = st.session_state[DROPPED][0]
    except InputError as error:
        st.session_state[PROBLEM] = str(error)


def take_labels(uploader: str) -> None:
    """Read labelled queries dropped on an uploader; what is wrong with them is kept as a sentence."""
    read = _dropped(uploader)
    if read is None:
        return
    try:
        rows = labelled_from_text(read[1], "the file")
        if not rows:
            raise InputError("the file holds no line, expected labelled queries")
        st.session_state[DROPPED_LABELS] = rows
    except InputError as error:
        st.session_state[PROBLEM] = str(error)


def _dropped(uploader: str) -> tuple[str, str] | None:
    """(hash, text) of the file on an uploader, or None where there is none or it is not text."""
    st.session_state[PROBLEM] = ""
    file = st.session_state.get(uploader)
    if file is None:
        return None
    data: bytes = file.getvalue()
    try:
        return hashlib.sha256(data).hexdigest()[:12], decode(data, "the file")
    except InputError as error:
        st.session_state[PROBLEM] = str(error)
        return None


def labelled(names: frozenset[str]) -> tuple[list[Labelled], int]:
    """(labelled queries for these entities, how many were left out because they mean an entity that is not there).

    Those dropped on the page; else the shipped ones, where the structure has all their teams; else none.
    """
    dropped: list[Labelled] | None = st.session_state.get(DROPPED_LABELS)
    rows = dropped if dropped is not None else _shipped()
    fitting = [row for row in rows if names.issuperset(row.teams)]
    if dropped is None and len(fitting) < len(rows):
        return [], 0
    return fitting, len(rows) - len(fitting)


@st.cache_resource(show_spinner=False)
def _shipped() -> list[Labelled]:
    return read_labelled(LABELLED)


def keep(structure: Structure) -> Path:
    """Store the structure in the workspace, where pipelines with EntityFilter find it.

    One that was written by hand there is set aside under a name of its own: its comments would be lost.
    """
    with who.doing(CHANGE_STRUCTURE, STRUCTURE_FILES[-1]):
        before = structure_path(resources.workspace())
        path = resources.workspace() / STRUCTURE_FILES[-1]
        write_whole(path, structure_text(structure))
        if before is not None and before != path:
            before.rename(before.with_name(f"{before.name}.before"))
        return path
