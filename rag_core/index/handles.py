"""From a collection's name to something that can be searched, and what a check of a collection finds.

Which embedder belongs to a collection is decided here: the bundled one, or an endpoint of the model that built it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rag_core.errors import InputError, WinnowError
from rag_core.index.chroma import ChromaIndex
from rag_core.index.collection import Snapshot, folder_of, list_collections, open_collection
from rag_core.index.embed import BundledEmbedder, Embedder, OpenAIEmbedder, WordsOnly
from rag_core.index.search import CollectionIndex
from rag_core.index.store import opened
from rag_core.llm.client import Client
from rag_core.llm.endpoint import endpoint_of, endpoints, named_endpoint
from rag_core.types import Metric


def open_index(
    workspace: Path, name: str, embedder: Embedder | None = None, approximate: bool = False
) -> CollectionIndex:
    """The named collection as it stands now, ready for queries: exact, or through Chroma's graph.

    Without an embedder it is that of the collection's model: the bundled one, or the endpoint that serves it.
    """
    snapshot = open_collection(workspace, name)
    chosen = embedder or _embedder(workspace, snapshot)
    if not approximate:
        return CollectionIndex(snapshot, chosen, folder_of(workspace, name))
    if snapshot.metric is not Metric.COSINE:
        raise InputError(f"collection {name} has {snapshot.metric} distances, expected a cosine one to approximate")
    return ChromaIndex(snapshot, workspace, chosen)


def ingest_embedder(workspace: Path, name: str, model: str = "", dimension: int | None = None) -> Embedder:
    """What an ingest into the named collection embeds with: `model`, else the one that built it, else the bundled one.

    `none` embeds nothing: the collection is searched by words. A model that is not the bundled one is asked of the
    endpoint that serves it; its `dimension` has to be given where neither the collection nor OpenAI's published list
    says it. An InputError says what is missing.
    """
    own_ones = (one for one in list_collections(workspace) if one.name == name and not one.origin)
    built, width = next(((one.model, one.dimension) for one in own_ones), ("", None))
    wanted = model or built
    own = _own_embedder(wanted or BundledEmbedder.name)
    if own is not None:
        return own
    client = _client(workspace, wanted)
    if client is None:
        raise InputError(
            f"no endpoint serves {wanted[:80]}, expected OPENAI_BASE_URL or an entry of endpoints.yaml, or the bundled "
            f"{BundledEmbedder.name}"
        )
    return OpenAIEmbedder(client, wanted, dimension or (width if wanted == built else None))


def _embedder(workspace: Path, snapshot: Snapshot) -> Embedder:
    """The bundled model where it built the collection; else the endpoint of that model, or the environment's."""
    own = _own_embedder(snapshot.model)
    if own is not None:
        return own
    client = _client(workspace, snapshot.model)
    if client is None:
        bundled = BundledEmbedder
        raise InputError(
            f"collection {snapshot.name} was built with {snapshot.model} ({snapshot.dimension} dimensions), this query "
            f"would use {bundled.name} ({bundled.dimension}); name the endpoint that serves {snapshot.model}"
        )
    return OpenAIEmbedder(client, snapshot.model, snapshot.dimension)


def _own_embedder(model: str) -> Embedder | None:
    """The embedder of a model that asks no endpoint."""
    return next((embedder() for embedder in (BundledEmbedder, WordsOnly) if embedder.name == model), None)


def _client(workspace: Path, model: str) -> Client | None:
    """A client of the endpoint that names the model, else of the environment's; None where there is neither."""
    known = endpoints(workspace).values()
    serves = next((one for one in known if one.model == model), None) or named_endpoint(workspace)
    return None if serves is None else Client(endpoint_of(replace(serves, model=model)))


def check_collections(workspace: Path) -> dict[str, str]:
    """Collection → what is wrong with it, in one sentence, or nothing: every file is read whole."""
    problems = {}
    for summary in list_collections(workspace):
        problems[summary.name] = summary.problem
        try:
            with opened(folder_of(workspace, summary.name)) as file:
                file.check()
            open_collection(workspace, summary.name)
        except WinnowError as error:
            problems[summary.name] = summary.problem or str(error)
    return problems
