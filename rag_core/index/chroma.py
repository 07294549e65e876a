"""Approximate search by Chroma: its graph is a cache of our vectors, in a server process over a folder of ours.

The folder can be deleted at any time; it is rebuilt from the collection. The server's process is in chroma_server.py,
exact search in search.py.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rag_core.errors import StoreError
from rag_core.index.admitted import nearest_admitted
from rag_core.index.chroma_server import reported, server_for
from rag_core.index.collection import Snapshot, folder_of
from rag_core.index.embed import Embedder, Vectors
from rag_core.index.exact import Distances, Rows, distances
from rag_core.index.lock import writing
from rag_core.index.search import CollectionIndex, reader_key
from rag_core.index.where import Mask, allowed_rows
from rag_core.types import Hit, Metric

BLOCK = 4096  # rows at a time in float64


def space_distances(vectors: Vectors, query: Vectors, metric: Metric) -> Distances:
    """The distance of every row to the query as Chroma defines it: Σ(x−q)², 1 − x·q, or 1 − cos."""
    wanted = query.astype(np.float64)
    found: Distances = np.empty(len(vectors))
    for start in range(0, len(vectors), BLOCK):
        rows = vectors[start : start + BLOCK].astype(np.float64)
        if metric is Metric.L2:
            found[start : start + BLOCK] = ((rows - wanted) ** 2).sum(axis=1)
            continue
        products = (rows * wanted).sum(axis=1)
        if metric is Metric.COSINE:
            lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(wanted)
            products = products / np.where(lengths == 0, 1, lengths)
        found[start : start + BLOCK] = 1.0 - products
    return found


class SpaceIndex(CollectionIndex):
    """A collection whose distances are not cosine, labelled as what they are."""

    def __init__(self, snapshot: Snapshot, embedder: Embedder | None = None, folder: Path | None = None) -> None:
        super().__init__(snapshot, embedder, folder)
        self.metric = snapshot.metric

    @property
    def fingerprint(self) -> str:
        """What a ranking depends on: ids, vectors, model and space."""
        return f"{self.snapshot.fingerprint}-{self.metric}"

    def reader(self, text: str, where: Mapping[str, Any] | None = None, file_filter: str | None = None) -> Any:
        """The exact ranking of the chunks that the conditions admit, in the collection's own space."""
        allowed = allowed_rows(self.snapshot.chunks, where, file_filter)
        key = reader_key(self.fingerprint, text, where, file_filter)
        return SpaceReader(self, self.embed_query(text), allowed, key)

    def distances_of(self, text: str, ids: Iterable[str]) -> dict[str, float]:
        """The distances of chunks to a query text, by id, in the collection's own space."""
        listed = [one for one in ids if one in self.rows_by_id]
        vectors = self.snapshot.vectors[[self.rows_by_id[one] for one in listed]]
        return dict(zip(listed, map(float, space_distances(vectors, self.embed_query(text), self.metric)), strict=True))


class SpaceReader:
    """Reads one exact ranking, by (distance, id). Everything is ordered when the first hit is asked for."""

    def __init__(self, index: SpaceIndex, query: Vectors, allowed: Mask | None, fingerprint: str) -> None:
        self.fingerprint = fingerprint
        self.store_queries = 0
        self._index = index
        self._query = query
        self._allowed = allowed
        self._order: Rows | None = None
        self._distances: Distances = np.zeros(0)

    @property
    def matching(self) -> int:
        """How many chunks the conditions admit: the length of the full ranking."""
        return len(self._index.snapshot.chunks) if self._allowed is None else int(self._allowed.sum())

    def read(self, start: int, stop: int) -> tuple[Hit, ...]:
        """Hits at positions start…stop−1 (0-based) of the full ranking; fewer where it ends."""
        rows = self._ranking()[start:stop]
        return tuple(self._hit(row, rank) for rank, row in enumerate(rows, start + 1))

    def read_excluding(self, ids: Iterable[str], count: int) -> tuple[Hit, ...]:
        """The nearest `count` hits whose chunk id is not among `ids`; ranks are the full list's."""
        without = {self._index.rows_by_id[one] for one in ids if one in self._index.rows_by_id}
        ranked = [(rank, row) for rank, row in enumerate(self._ranking(), 1) if int(row) not in without]
        return tuple(self._hit(row, rank) for rank, row in ranked[:count])

    def read_admitted(
        self, query: str, mode: str, without: Iterable[str], count: int, plurals: bool = True
    ) -> tuple[Hit, ...]:
        """The nearest `count` hits whose rules admit the query, those of `without` left out."""
        rows_by_id = self._index.rows_by_id
        admitted = self._index.admission.mask(query, mode, [rows_by_id.get(one) for one in without], plurals)
        ranked = [(rank, row) for rank, row in enumerate(self._ranking(), 1) if admitted[row]]
        return tuple(self._hit(row, rank) for rank, row in ranked[:count])

    def _ranking(self) -> Rows:
        if self._order is None:
            self.store_queries += 1
            self._distances = space_distances(self._index.snapshot.vectors, self._query, self._index.metric)
            order = np.argsort(self._distances, kind="stable")  # rows are in the order of ids: ties fall to the smaller
            self._order = order if self._allowed is None else order[self._allowed[order]]
        return self._order

    def _hit(self, row: Any, rank: int) -> Hit:
        return Hit(self._index.snapshot.chunks[int(row)], rank, {"distance": float(self._distances[row])})


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

    def rebuild(self) -> None:
        """Delete Chroma's folder and fill it again from the collection."""
        with self._server.guard:
            self.close()
            with writing(self._server.folder):
                shutil.rmtree(self._server.folder / "data", ignore_errors=True)
            self._collection()

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
        return self._built(client, name)

    def _built(self, client: Any, name: str) -> Any:
        space = {"space": "cosine", "ef_search": self.ef_search}
        collection = client.create_collection(name, configuration={"hnsw": space}, embedding_function=None)
        ids = [chunk.id for chunk in self.snapshot.chunks]
        for start in range(0, len(ids), BATCH):
            some = ids[start : start + BATCH]
            vectors = self.snapshot.vectors[start : start + BATCH]
            collection.add(ids=some, embeddings=vectors, metadatas=[{ID_FIELD: one} for one in some])
        return collection


class ChromaReader:
    """Reads an approximate ranking. What was read once keeps its place: a deeper query only adds to it."""

    def __init__(self, index: ChromaIndex, query: Vectors, allowed: Mask | None, fingerprint: str) -> None:
        self.fingerprint = fingerprint
        self.store_queries = 0
        self._index = index
        self._query = query
        self._allowed = allowed
        self._rows: list[int] = []
        self._asked = 0

    @property
    def matching(self) -> int:
        """How many chunks the conditions admit; Chroma may find fewer."""
        return len(self._index.snapshot.chunks) if self._allowed is None else int(self._allowed.sum())

    def read(self, start: int, stop: int) -> tuple[Hit, ...]:
        """Hits at positions start…stop−1 of what was found, asking for more while more may be there."""
        total = len(self._index.snapshot.chunks)
        while len(self._rows) < stop and self._asked < total:
            self._asked = min(total, max(stop, 2 * self._asked))
            known = set(self._rows)
            self._rows += [row for row in self._find(self._asked) if row not in known]
        return self._hits(self._rows[start:stop], start + 1)

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

    def read_admitted(
        self, query: str, mode: str, without: Iterable[str], count: int, plurals: bool = True
    ) -> tuple[Hit, ...]:
        """The nearest `count` hits whose rules admit the query, exactly: this one does not go through Chroma."""
        index = self._index
        admitted = index.admission.mask(query, mode, [index.rows_by_id.get(one) for one in without], plurals)
        found = nearest_admitted(index.snapshot.vectors, self._query, count, admitted, self._allowed)
        return tuple(Hit(index.snapshot.chunks[row], rank, {"distance": distance}) for row, distance, rank in found)

    def _find(self, count: int, excluded: Iterable[str] = ()) -> list[int]:
        """Admitted rows of one query, by (exact distance, row)."""
        rows = np.array(self._index.found(self._query, count, excluded), dtype=np.intp)
        self.store_queries += 1
        if self._allowed is not None:
            rows = rows[self._allowed[rows]]
        order = np.lexsort((rows, distances(self._index.snapshot.vectors, self._query, rows)))
        return [int(row) for row in rows[order]]

    def _hits(self, rows: list[int], first: int) -> tuple[Hit, ...]:
        chunks, vectors = self._index.snapshot.chunks, self._index.snapshot.vectors
        found = distances(vectors, self._query, np.array(rows, dtype=np.intp))
        return tuple(
            Hit(chunks[row], rank, {"distance": float(distance)})
            for rank, (row, distance) in enumerate(zip(rows, found, strict=True), first)
        )
