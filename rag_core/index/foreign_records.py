"""What a foreign Chroma store holds: its collections with their facts, and the records of one as chunks with vectors.

Only reads. How a store is reached is in foreign_place.py, the mirror that is made of the records in foreign.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_core.corpus.columns import guess_columns
from rag_core.errors import Cancelled, StoreError
from rag_core.index.embed import Progress, Vectors, normalise
from rag_core.index.foreign_place import Place
from rag_core.types import Chunk, Metric

PAGE = 500  # records at a time


@dataclass(frozen=True, slots=True)
class Foreign:
    """A collection of a foreign store: its size, its space, and the model Chroma says built it, if any."""

    name: str
    count: int
    metric: Metric
    dimension: int | None
    model: str  # '' where the store does not say


def collection_named(client: Any, foreign: str, place: Place) -> Any:
    """The collection of that name, or a StoreError that lists those there are."""
    known = {one.name: one for one in client.list_collections(limit=1000)}
    if foreign not in known:
        names = ", ".join(sorted(known)[:20]) or "none"
        raise StoreError(f"{place.said} has no collection {foreign[:80]!r}, expected one of {names}")
    return known[foreign]


def described(collection: Any) -> Foreign:
    """A collection's facts; the newer form of the configuration is read first, then the metadata of older versions."""
    settings = collection.configuration_json or {}
    graph = settings.get("hnsw") or settings.get("spann") or {}
    space = graph.get("space") or (collection.metadata or {}).get("hnsw:space") or "l2"
    if space not in ("cosine", "l2", "ip"):
        raise StoreError(f"collection {collection.name[:80]!r} has the space {str(space)[:40]!r}, which is not known")
    function = settings.get("embedding_function") or {}
    held = function.get("config") or {}
    says = str(held.get("model_name") or function.get("name") or "")
    model = "" if says in ("legacy", "unknown") else says
    some = collection.get(limit=1, include=["embeddings"])["embeddings"]
    width = None if some is None or not len(some) else len(some[0])
    return Foreign(collection.name, collection.count(), Metric(space), width, model)


def read_records(
    collection: Any, about: Foreign, place: Place, progress: Progress | None, cancel: Callable[[], bool]
) -> tuple[list[Chunk], Vectors]:
    """Every record, in the order of the ids; a StoreError where the collection changed while it was read."""
    chunks: dict[str, Chunk] = {}
    vectors: dict[str, Any] = {}
    for start in range(0, about.count, PAGE):
        if cancel():
            raise Cancelled(f"stopped after {start:,} of {about.count:,} records; nothing was stored")
        page = collection.get(limit=PAGE, offset=start, include=["embeddings", "documents", "metadatas"])
        for chunk, vector in _records(page):
            chunks[chunk.id], vectors[chunk.id] = chunk, np.asarray(vector, dtype=np.float32)
        if progress is not None:
            progress(min(start + PAGE, about.count), about.count)
    if len(chunks) != about.count or collection.count() != about.count:
        raise StoreError(f"{place.said} changed while it was read; connect again")
    if not chunks:
        raise StoreError(f"collection {about.name[:80]!r} of {place.said} is empty, expected records")
    ids = sorted(chunks)
    array = np.array([vectors[one] for one in ids], dtype=np.float32)
    if not np.isfinite(array).all():
        raise StoreError(f"collection {about.name[:80]!r} of {place.said} holds a vector that is not finite")
    return [chunks[one] for one in ids], normalise(array) if about.metric is Metric.COSINE else array


def _records(page: Mapping[str, Any]) -> Iterator[tuple[Chunk, Any]]:
    documents = page["documents"] or [None] * len(page["ids"])
    metadatas = page["metadatas"] or [None] * len(page["ids"])
    for identity, text, metadata, vector in zip(page["ids"], documents, metadatas, page["embeddings"], strict=True):
        yield _chunk(str(identity), text or "", dict(metadata or {})), vector


def _chunk(identity: str, text: str, metadata: dict[str, Any]) -> Chunk:
    """A record as a chunk: title, type, rule and references from metadata of the usual names; the rest stays there."""
    names = {field: key for field, key in guess_columns(metadata).items() if field not in ("id", "text")}
    taken = {field: metadata.pop(key) for field, key in names.items()}
    rule, references = _parsed(taken.get("query_must")), _parsed(taken.get("ref_ids")) or []
    listed = references if isinstance(references, list) else [references]
    title, type_ = (_clean(str(taken.get(field, ""))) for field in ("title", "type"))
    return Chunk(_clean(identity), title, _clean(text), type_, rule or None, tuple(map(str, listed)), metadata)


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _parsed(value: Any) -> Any:
    """Chroma's metadata is flat: a rule or a list stands there as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
