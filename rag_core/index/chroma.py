"""Approximate search by Chroma: its graph is a cache of our vectors, in a server process over a folder of ours.

The folder can be deleted at any time; it is rebuilt from the collection. The server's process is in chroma_server.py,
exact search in search.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rag_core.errors import StoreError
from rag_core.index.chroma_server import reported, server_for
from rag_core.index.collection import Snapshot, folder_of
from rag_core.index.embed import Embedder, Vectors
from rag_core.index.search import CollectionIndex, ExactReader
from rag_core.index.where import Mask, allowed_rows, reader_key
from rag_core.types import Hit

EF_SEARCH = 1000
BATCH = 5000  # Chroma takes at most 5,461 records in one call
MOST_EXCLUDED = 16_000  # values of $nin; 17,000 fail
ID_FIELD = "chunk_id"  # conditions read metadata, never a record's own id


class ChromaIndex(CollectionIndex):
    """A collection searched through Chroma's graph. Distances are recomputed from our vectors, so they are exact;
    which chunks are found is not.
    """

    exact = False

    def __init__(
        self, snapshot: Snapshot, workspace: Path, embedder: Embedder | None = None, ef_search: int = EF_SEARCH
    ) -> None:
        super().__init__(snapshot, embedder, folder_of(workspace, snapshot.name))
        self.ef_search = ef_search
        self.store_queries = 0
        self._server = server_for(folder_of(workspace, snapshot.name) / "chroma")
        self._handle: tuple[Any, Any] = (None, None)  # the client and its collection

    @property
    def fingerprint(self) -> str:
        """What a ranking depends on, as far as an approximate one can be named."""
        return f"{self.snapshot.fingerprint}-chroma-{self.ef_search}"

    def reader(self, text: str, where: Mapping[str, Any] | None = None, file_filter: str | None = None) -> Any:
        """The approximate ranking of the chunks that the conditions admit."""
        allowed = allowed_rows(self.snapshot.chunks, where, file_filter)
        key = reader_key(self.fingerprint, text, where, file_filter)
        return ChromaReader(self, self.embed_query(text), allowed, key)

    def close(self) -> None:
        """Stop the folder's server; whoever still searches through it starts it again."""
        self._handle = (None, None)
        self._server.stop()

    def found(self, query: Vectors, count: int, excluded: Iterable[str] = ()) -> list[int]:
        """The rows Chroma finds for a query vector: at most `count`, none excluded."""
        without = sorted(excluded)
        if len(without) > MOST_EXCLUDED:
            raise StoreError(f"{len(without):,} chunks are to be excluded, Chroma takes {MOST_EXCLUDED:,}; use deepen")
        where = {"where": {ID_FIELD: {"$nin": without}}} if without else {}
        collection = self._collection()
        with reported("answer a query"):
            answer = collection.query(query_embeddings=[query], n_results=count, include=[], **where)
        self.store_queries += 1
        return [self.rows_by_id[one] for one in dict.fromkeys(answer["ids"][0]) if one in self.rows_by_id]

    def _collection(self) -> Any:
        """Chroma's collection of exactly this snapshot, built where it is missing or incomplete."""
        with self._server.guard:
            client = self._server.client()
            if self._handle[0] is not client:
                with reported("open its index"):
                    self._handle = (client, self._opened(client))
            return self._handle[1]

    def _opened(self, client: Any) -> Any:
        name = f"c-{self.snapshot.fingerprint}-{self.ef_search}"
        names = [collection.name for collection in client.list_collections()]
        if name in names:
            collection = client.get_collection(name, embedding_function=None)
            if collection.count() == len(self.snapshot.chunks):
                return collection
        for old in names:  # of an earlier state of the collection, or half-built
            client.delete_collection(old)
        space = {"space": "cosine", "ef_search": self.ef_search}
        collection = client.create_collection(name, configuration={"hnsw": space}, embedding_function=None)
        ids = [chunk.id for chunk in self.snapshot.chunks]
        for start in range(0, len(ids), BATCH):
            some = ids[start : start + BATCH]
            vectors = self.snapshot.vectors[start : start + BATCH]
            collection.add(ids=some, embeddings=vectors, metadatas=[{ID_FIELD: one} for one in some])
        return collection


class ChromaReader(ExactReader):
    """Reads an approximate ranking. What was read once keeps its place: a deeper query only adds to it.

    What the rules admit is read exactly: that does not go through Chroma.
    """

    def __init__(self, index: ChromaIndex, query: Vectors, allowed: Mask | None, fingerprint: str) -> None:
        super().__init__(index, query, allowed, fingerprint)
        self._chroma = index
        self._read: list[int] = []
        self._asked = 0

    def read(self, start: int, stop: int) -> tuple[Hit, ...]:
        """Hits at positions start…stop−1 of what was found, asking for more while more may be there."""
        total = len(self._index.snapshot.chunks)
        while len(self._read) < stop and self._asked < total:
            self._asked = min(total, max(stop, 2 * self._asked))
            known = set(self._read)
            self._read += [row for row in self._find(self._asked) if row not in known]
        return self._hits(self._read[start:stop], start + 1)

    def read_excluding(self, ids: Iterable[str], count: int) -> tuple[Hit, ...]:
        """The nearest `count` hits Chroma finds that are not among `ids`, asked with `$nin`."""
        excluded = {one for one in ids if one in self._index.rows_by_id}
        left = len(self._index.snapshot.chunks) - len(excluded)
        asked, rows = min(count, left), list[int]()
        while asked > 0:
            rows = self._find(asked, excluded)
            if len(rows) >= count or asked >= left:
                break
            asked = min(left, 2 * asked)
        return self._hits(rows[:count], len(excluded) + 1)

    def _find(self, count: int, excluded: Iterable[str] = ()) -> list[int]:
        """Admitted rows of one query, by (exact distance, row)."""
        rows = np.array(self._chroma.found(self._query, count, excluded), dtype=np.intp)
        self.store_queries += 1
        if self._allowed is not None:
            rows = rows[self._allowed[rows]]
        order = np.lexsort((rows, self._index.scan.distances(self._query, rows)))
        return [int(row) for row in rows[order]]

    def _hits(self, rows: list[int], first: int) -> tuple[Hit, ...]:
        near = self._index.scan.distances(self._query, np.array(rows, dtype=np.intp))
        return tuple(
            self._hit(row, distance, rank) for rank, (row, distance) in enumerate(zip(rows, near, strict=True), first)
        )
