"""Connect a Chroma collection made elsewhere: where its store is, what is found there, and which one is wanted.

Names from a store are foreign text and stand in cells and in the list of choices only. Nothing is written to the store.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import streamlit as st

from pages.components import corpus_state, jobs, resources, say, who
from rag_core.errors import InputError, WinnowError
from rag_core.index.foreign import Connected, connect, list_foreign
from rag_core.index.foreign_place import IN_PLACE_WARNING, Place, named_place
from rag_core.index.foreign_records import Foreign
from rag_core.project.deeds import CONNECT, READ_FILES
from rag_core.settings import chroma_settings

FOUND = "corpus.chroma_found"
PROBLEM = "corpus.chroma_problem"
CLOUD_HELP = "With the key, tenant and database of CHROMA_API_KEY, CHROMA_TENANT and CHROMA_DATABASE."
MODEL_HELP = "What embeds the queries. Leave it empty where the store says which model it was built with."


def show() -> None:
    """Where the store is on the left, what it holds on the right."""
    left, right = st.columns(2, gap="large")
    with left:
        place = _place()
    with right:
        looked_at, found = st.session_state.get(FOUND, ("", []))
        if place is not None and looked_at == repr(place):
            _choice(place, found)
    if st.session_state.get(PROBLEM):
        say.problem("This store cannot be used; nothing was changed in it.", st.session_state[PROBLEM])


def _place() -> Place | None:
    """A folder, a server's address or Chroma Cloud; None until one is given."""
    path = st.text_input("Folder that Chroma wrote", key="corpus.chroma_path", placeholder="/home/me/chroma")
    url = st.text_input("or the address of a server", key="corpus.chroma_url", placeholder="http://127.0.0.1:8000")
    cloud = st.toggle("or Chroma Cloud", key="corpus.chroma_cloud", help=CLOUD_HELP)
    elsewhere = bool(url) or cloud
    in_place = st.toggle("Open it in place", key="corpus.chroma_in_place", disabled=elsewhere)
    if in_place and not elsewhere:
        st.markdown(f":material/warning: {IN_PLACE_WARNING}.")
    elif not elsewhere:
        st.caption("A copy of the folder is read by a process of its own: the original stays as it is, bit for bit.")
    place = None
    if (path or "").strip() or (url or "").strip() or cloud:
        try:
            place = place_of((path or "").strip(), (url or "").strip(), in_place and not elsewhere, cloud)
        except WinnowError as error:
            say.problem("This is no place of a store.", str(error))
    if st.button("Look what is there", icon=":material/search:", key="corpus.chroma_look", disabled=place is None):
        _look(place)
    return place


def place_of(path: str, url: str, in_place: bool, cloud: bool = False) -> Place:
    """The place that was typed; an InputError where several or none are given."""
    if bool(path) + bool(url) + cloud > 1:
        raise InputError("several places are given, expected one of a folder, an address and Chroma Cloud")
    return named_place(Path(path) if path else None, url, cloud, in_place, **asdict(chroma_settings()))


def _look(place: Place | None) -> None:
    st.session_state[PROBLEM] = ""
    st.session_state.pop(FOUND, None)
    if place is None:
        return
    try:
        # A path names any folder the server can read.
        with who.doing(READ_FILES, str(place.path or place.url)), st.spinner("Reading the store …"):
            st.session_state[FOUND] = (repr(place), list_foreign(place, resources.workspace()))
    except WinnowError as error:
        st.session_state[PROBLEM] = str(error)


def _choice(place: Place, found: list[Foreign]) -> None:
    """The collections of the store as a table, and what the chosen one is called here."""
    st.markdown(f"**Collections in the store: {len(found):,}**")
    if not found:
        return
    st.dataframe(
        {
            "collection": [one.name for one in found],
            "records": [one.count for one in found],
            "distance": [str(one.metric) for one in found],
            "dimensions": [one.dimension for one in found],
            "model it names": [one.model or "none" for one in found],
        },
        hide_index=True,
        alt=f"{len(found)} collections with records, distance, dimensions and model",
    )
    name = st.selectbox("Which one", [one.name for one in found], key="corpus.chroma_name")
    own = st.text_input("Its name here", key="corpus.chroma_as", max_chars=64, placeholder=name or "")
    model = st.text_input("Model", key="corpus.chroma_model", help=MODEL_HELP, placeholder="as the store says")
    ready = name is not None and not jobs.running()
    if st.button("Connect", icon=":material/link:", type="primary", key="corpus.chroma_go", disabled=not ready):
        _connect(place, name or "", (own or "").strip() or name or "", (model or "").strip())


def _connect(place: Place, foreign: str, name: str, model: str) -> None:
    """Read the collection in the background."""
    st.session_state[PROBLEM] = ""
    workspace = resources.workspace()
    try:
        jobs.start(
            "Reading a Chroma collection",
            lambda progress: connect(place, foreign, name, workspace, model, progress),
            who.deed(CONNECT, name),
            verb="read",
            unit="records",
            first="opening the store …",
        )
    except WinnowError as error:
        st.session_state[PROBLEM] = str(error)
        return
    corpus_state.choose(name)
    st.rerun()


def report(done: Connected) -> None:
    """What connecting did."""
    with st.container(border=True):
        st.markdown(
            f":material/check: **Chunks in the mirror: {done.chunks:,}**; {done.with_text:,} with text, "
            f"{done.dimension:,} dimensions, {done.metric} distances"
        )
        st.text(f"{done.origin}\n{done.notice or f'queries are embedded with {done.model}'}")
