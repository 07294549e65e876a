"""Chroma as a filtering pipeline uses it without us: a collection, and the loops around its queries.

Runs in a child process only: Chroma never runs in ours.
"""

from __future__ import annotations

import json
from typing import Any

from rag_core.index.embed import Vectors
from rag_core.types import Chunk

K = 15
RULE = {"contain": "owlbear"}
QUESTION = "What does a 7th level cleric need to roll to hit armor class 6?"


def fill_chroma(folder: str, vectors: Vectors, chunks: tuple[Chunk, ...]) -> Any:
    """A Chroma collection with its default graph settings, cosine space, the id also as a metadata field."""
    import chromadb
    from chromadb.config import Settings

    client = chromadb.PersistentClient(folder, settings=Settings(anonymized_telemetry=False))
    configuration = {"hnsw": {"space": "cosine"}}
    collection = client.create_collection("peer", configuration=configuration, embedding_function=None)
    for start in range(0, len(chunks), 5000):
        some = chunks[start : start + 5000]
        metadatas = [
            {
                "key": chunk.id,
                "title": chunk.title,
                "query_must": json.dumps(chunk.query_must) if chunk.query_must else "",
            }
            for chunk in some
        ]
        collection.add(
            ids=[chunk.id for chunk in some],
            embeddings=vectors[start : start + 5000],
            metadatas=metadatas,
            documents=[chunk.text for chunk in some],
        )
    return collection


def meets(raw: str) -> bool:
    """The plain check of a stored rule: its term stands in the query."""
    return not raw or json.loads(raw)["contain"] in QUESTION.lower()


def plain_loop(collection: Any, query: Vectors) -> list[str]:
    """The loop as it is usually written, with a key that works: what was dropped is excluded from the next query."""
    dropped: list[str] = []
    kept: list[str] = []
    for _ in range(3):
        where = {"where": {"key": {"$nin": dropped}}} if dropped else {}
        answer = collection.query(query_embeddings=[query], n_results=K, **where)
        before = len(dropped)
        for identity, metadata in zip(answer["ids"][0], answer["metadatas"][0], strict=True):
            (kept if meets(metadata["query_must"]) else dropped).append(identity)
        if len(kept) >= K or len(dropped) == before:
            break
    return kept[:K]


def oversampled(collection: Any, query: Vectors) -> list[str]:
    """The better loop: one query for three times as many, filtered."""
    answer = collection.query(query_embeddings=[query], n_results=3 * K)
    pairs = zip(answer["ids"][0], answer["metadatas"][0], strict=True)
    return [identity for identity, metadata in pairs if meets(metadata["query_must"])][:K]
