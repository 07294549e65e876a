"""From a collection's name to something that can be searched, and what a check of a collection finds.

Which embedder belongs to a collection is decided here: the bundled one, or an endpoint of the model that built it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rag_core.errors import InputError, WinnowError
from rag_core.index.chroma import ChromaIndex
from rag_core.index.collection import Snapshot, folder_of, list_collections, open_collection
from rag_core.index.embed import BundledEmbedder, Embedder
from rag_core.index.remote import OpenAIEmbedder
from rag_core.index.search import CollectionIndex
from rag_core.index.spaces import SpaceIndex
from rag_core.index.store import opened
from rag_core.llm.client import Client
from rag_core.llm.named import endpoint_of, endpoints, named_endpoint
from rag_core.types import Metric


def open_index(
    workspace: Path, name: str, embedder: Embedder | None = None, approximate: bool = False
) -> CollectionIndex:
    """The named collection as it stands now, ready for queries: exact, or through Chroma's graph.

    Without an embedder it is that of the collection's model: the bundled one, or the endpoint that serves it.
    """
    snapshot = open_collection(workspace, name)
    chosen = embedder or _embedder(workspace, snapshot)
    folder = folder_of(workspace, name)
    if snapshot.metric is not Metric.COSINE:
        if approximate:
            raise InputError(f"collection {name} has {snapshot.metric} distances, expected a cosine one to approximate")
        return SpaceIndex(snapshot, chosen, folder)
    return ChromaIndex(snapshot, workspace, chosen) if approximate else CollectionIndex(snapshot, chosen, folder)


def _embedder(workspace: Path, snapshot: Snapshot) -> Embedder:
    """The bundled model where it built the collection; else the endpoint of that model, or the environment's."""
    if snapshot.model == BundledEmbedder.name:
        return BundledEmbedder()
    known = endpoints(workspace).values()
    serves = next((one for one in known if one.model == snapshot.model), None) or named_endpoint(workspace)
    if serves is None:
        bundled = BundledEmbedder
        raise InputError(
            f"collection {snapshot.name} was built with {snapshot.model} ({snapshot.dimension} dimensions), this query "
            f"would use {bundled.name} ({bundled.dimension}); name the endpoint that serves {snapshot.model}"
        )
    client = Client(endpoint_of(replace(serves, model=snapshot.model)))
    return OpenAIEmbedder(client, snapshot.model, snapshot.dimension)


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
