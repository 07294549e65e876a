"""From a collection's name to something that can be searched, and what a check of a collection finds.

Which embedder belongs to a collection is decided here; the bundled one is made where the collection was built with it.
"""

from __future__ import annotations

from pathlib import Path

from rag_core.errors import InputError, WinnowError
from rag_core.index.chroma import ChromaIndex
from rag_core.index.collection import Snapshot, folder_of, list_collections, open_collection
from rag_core.index.embed import BundledEmbedder, Embedder
from rag_core.index.search import CollectionIndex
from rag_core.index.store import opened


def open_index(
    workspace: Path, name: str, embedder: Embedder | None = None, approximate: bool = False
) -> CollectionIndex:
    """The named collection as it stands now, ready for queries: exact, or through Chroma's graph.

    Without an embedder the bundled one is used, or the collection refused where another model built it.
    """
    snapshot = open_collection(workspace, name)
    chosen = embedder or _bundled(snapshot)
    return ChromaIndex(snapshot, workspace, chosen) if approximate else CollectionIndex(snapshot, chosen)


def _bundled(snapshot: Snapshot) -> Embedder:
    embedder = BundledEmbedder()
    if snapshot.model != embedder.name:
        raise InputError(
            f"collection {snapshot.name} was built with {snapshot.model} ({snapshot.dimension} dimensions), this query "
            f"would use {embedder.name} ({embedder.dimension}); name the endpoint that serves {snapshot.model}"
        )
    return embedder


def check_collections(workspace: Path) -> dict[str, str]:
    """Collection → what is wrong with it, in one sentence, or nothing: every file is read whole."""
    return {
        summary.name: summary.problem or _problem(workspace, summary.name) for summary in list_collections(workspace)
    }


def _problem(workspace: Path, name: str) -> str:
    try:
        with opened(folder_of(workspace, name)) as file:
            file.check()
        open_collection(workspace, name)
    except WinnowError as error:
        return str(error)
    return ""
