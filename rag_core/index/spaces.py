"""Exact search in the space a foreign collection was built in: squared Euclidean distance or 1 − inner product.

The plain way: every distance in float64, then one sort. Cosine collections are searched by search.py, which is faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rag_core.index.collection import Snapshot
from rag_core.index.embed import Embedder, Vectors
from rag_core.index.exact import Distances, Rows
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

    def read_admitted(self, query: str, mode: str, without: Iterable[str], count: int) -> tuple[Hit, ...]:
        """The nearest `count` hits whose rules admit the query, those of `without` left out."""
        rows_by_id = self._index.rows_by_id
        admitted = self._index.admission.mask(query, mode, [rows_by_id.get(one) for one in without])
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
