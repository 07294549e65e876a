"""What Corpus works on: the collection that is looked at, its numbers, and documents a person brings.

Only names, ids and settings stay in the session; chunks are read from the collection when they are shown. Dropped files
are stored in the workspace, so that a second ingest of them embeds nothing. Nothing here draws.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from pages.components import address, choice, jobs, resources, who
from rag_core.corpus.load import Corpus, load
from rag_core.errors import InputError
from rag_core.evaluate.sets import EvalSet, folders, load_set
from rag_core.files import write_whole
from rag_core.index.browse import Overview, overview
from rag_core.index.collection import Summary, folder_of, list_collections, revision_of
from rag_core.index.handles import ingest_embedder
from rag_core.project.deeds import INGEST, READ_FILES

COLLECTION = choice.COLLECTION
CHUNK = "corpus.chunk"
PAGE = "corpus.page"
BELOW = "corpus.below"
ADDRESS = "corpus.address"
DROPS = "dropped"
STORED = "corpus.stored"
SUFFIXES = ("md", "markdown", "jsonl", "ndjson", "csv", "tsv", "parquet", "json", "yaml", "yml")
SHOWN = 20  # chunks of a preview


def collections() -> list[Summary]:
    """All collections of the workspace."""
    return list_collections(resources.workspace())


def chosen(known: Sequence[Summary]) -> Summary | None:
    """The collection that is looked at: the one chosen, else the first."""
    name = st.session_state.get(COLLECTION)
    return next((one for one in known if one.name == name), known[0] if known else None)


def choose(name: str) -> None:
    """Look at another collection."""
    st.session_state[COLLECTION] = name
    st.session_state[CHUNK] = ""
    st.session_state[PAGE] = 1


def read_address(views: Sequence[str]) -> None:
    """Take collection and view from a link, once; a view that is not there is passed over."""
    parameters = address.opened(ADDRESS)
    if parameters.get("collection"):
        choose(parameters["collection"][: choice.LONGEST])
    if parameters.get("view") in views:
        st.session_state[BELOW] = parameters["view"]


def write_address(name: str) -> None:
    """Put collection and view into the address; a link copied from there opens them."""
    address.write(ADDRESS, {"collection": name, "view": str(st.session_state.get(BELOW) or "")})


def numbers(name: str) -> Overview:
    """The collection's numbers, counted anew when it changes."""
    workspace = resources.workspace()
    return _numbers(str(workspace), name, revision_of(workspace, name))


@st.cache_resource(max_entries=8, show_spinner="Counting chunks …")
def _numbers(workspace: str, name: str, revision: str) -> Overview:
    return overview(Path(workspace), name)


def demo_sets() -> dict[str, str]:
    """Eval sets with a corpus of their own: name → title."""
    found = {}
    for name, folder in folders(resources.workspace()).items():
        if (folder / "corpus.jsonl").is_file():
            found[name] = str(_set(name, str(resources.workspace())).title)
    return found


@st.cache_resource(max_entries=20, show_spinner=False)
def _set(name: str, workspace: str) -> EvalSet:
    return load_set(name, Path(workspace))


def bring_demo(name: str) -> None:
    """Bring the collection of a live eval set up to date, in the background."""
    workspace = resources.workspace()

    def work(progress: jobs.Progress) -> object:
        from rag_core.workbench import bring_up_to_date

        return bring_up_to_date(load_set(name, workspace), workspace, progress)

    jobs.start("Bringing the demo collection up to date", work, who.deed(INGEST, name))
    choose(name)


@dataclass(frozen=True, slots=True)
class Order:
    """What a person wants ingested, and how."""

    collection: str
    paths: tuple[str, ...]
    header_level: int = 3
    split_long: bool = False
    columns: tuple[tuple[str, str], ...] = ()
    model: str = ""  # none: that of the collection, else the bundled one
    dimension: int | None = None

    @property
    def mapping(self) -> dict[str, str]:
        """Field → column."""
        return dict(self.columns)


def check(order: Order) -> None:
    """Nothing, or an InputError that says what the order lacks."""
    who.check(INGEST, order.collection)
    folder_of(resources.workspace(), order.collection)
    ingest_embedder(resources.workspace(), order.collection, order.model, order.dimension)
    if not order.paths:
        raise InputError("no document was given, expected a folder, a file or dropped files")


def bring_in(order: Order) -> None:
    """Ingest in the background."""
    workspace = resources.workspace()

    def work(progress: jobs.Progress) -> object:
        from rag_core.index.ingest import ingest

        return ingest(
            order.paths,
            order.collection,
            workspace,
            ingest_embedder(workspace, order.collection, order.model, order.dimension),
            header_level=order.header_level,
            columns=order.mapping,
            split_long=order.split_long,
            progress=progress,
        )

    jobs.start("Ingesting documents", work, who.deed(INGEST, order.collection))
    choose(order.collection)


@dataclass(frozen=True, slots=True)
class Preview:
    """What an ingest would read: counts, the first chunks, and what is doubtful. No more than is shown."""

    documents: Mapping[str, int]  # name → chunks, of the first documents
    document_count: int
    chunk_count: int
    rows: tuple[tuple[str, str, str, int], ...]  # id, title, type, characters
    warnings: tuple[str, ...]
    others: tuple[str, ...]


def preview(order: Order) -> Preview:
    """Read and check the documents as an ingest would, and write nothing."""
    with who.doing(READ_FILES, " ".join(order.paths)):  # a path names any file the server can read
        return _preview(load(order.paths, "auto", order.header_level, order.mapping))


def _preview(corpus: Corpus) -> Preview:
    chunks = corpus.chunks
    return Preview(
        documents={document.name: len(document.chunks) for document in corpus.documents[:SHOWN]},
        document_count=len(corpus.documents),
        chunk_count=len(chunks),
        rows=tuple((chunk.id, chunk.title, chunk.type, len(chunk.text)) for chunk in chunks[:SHOWN]),
        warnings=corpus.warnings,
        others=tuple(map(str, corpus.others)),
    )


def store_dropped(collection: str, files: Sequence[UploadedFile]) -> Path:
    """Put dropped files into the workspace, once each, and give their folder; names that are none are refused."""
    who.check(INGEST, collection)
    folder_of(resources.workspace(), collection)  # refuses a name that leads elsewhere
    folder = resources.workspace() / DROPS / collection
    stored: set[tuple[str, str]] = st.session_state.setdefault(STORED, set())
    for file in files:
        name = file.name
        if (collection, file.file_id) in stored:
            continue
        if not re.fullmatch(r"[^./\\\x00-\x1f][^/\\\x00-\x1f]{0,199}", name):
            raise InputError(f"a dropped file is called {name[:80]!r}, expected a plain file name")
        write_whole(folder / name, file.getvalue())
        stored.add((collection, file.file_id))
    return folder.resolve()
