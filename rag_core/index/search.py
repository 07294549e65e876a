"""A collection ready to be searched: exact readers over its snapshot, for sources that take an index.

The query is embedded with the model the collection was built with, or refused. Approximate search is in chroma.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from cachetools import LRUCache

from rag_core.errors import InputError
from rag_core.index.admitted import Admission, nearest_admitted
from rag_core.index.collection import Snapshot
from rag_core.index.embed import BundledEmbedder, Embedder, Vectors
from rag_core.index.exact import Distances, Rows, distances
from rag_core.index.headers import HeaderIndex
from rag_core.index.lexical import LexicalIndex, LexicalReader, kept_lexical
from rag_core.index.scan import Scan, scan_of
from rag_core.index.store import embedded_text
from rag_core.index.where import Mask, allowed_rows
from rag_core.types import Hit, Metric

REMEMBERED = 512


class CollectionIndex:
    """What a dense source searches: `reader(text)` gives the ranking of the collection's chunks for a query."""

    metric = Metric.COSINE
    exact = True

    def __init__(self, snapshot: Snapshot, embedder: Embedder | None = None, folder: Path | None = None) -> None:
        self.snapshot = snapshot
        self.folder = folder  # where what is derived from the collection may be kept
        self.embedder: Embedder = embedder or BundledEmbedder()
        check_model(snapshot, self.embedder)
        self.scan = scan_of(snapshot.vectors)
        self.rows_by_id = {chunk.id: row for row, chunk in enumerate(snapshot.chunks)}
        self.admission = Admission(snapshot.chunks)
        self._vectors: LRUCache[str, Vectors] = LRUCache(REMEMBERED)
        self._lock = Lock()
        self._words: LexicalIndex | None = None
        self._headers: HeaderIndex | None = None
        self._building = Lock()

    @property
    def fingerprint(self) -> str:
        """What a ranking depends on: ids, embedded texts, model, and how it is searched."""
        return f"{self.snapshot.fingerprint}-exact"

    def reader(self, text: str, where: Mapping[str, Any] | None = None, file_filter: str | None = None) -> ExactReader:
        """The exact ranking of the chunks that the conditions admit, for a query text."""
        allowed = allowed_rows(self.snapshot.chunks, where, file_filter)
        key = reader_key(self.fingerprint, text, where, file_filter)
        return ExactReader(self, self.embed_query(text), allowed, key)

    def lexical_reader(
        self, text: str, where: Mapping[str, Any] | None = None, file_filter: str | None = None
    ) -> LexicalReader:
        """The BM25 ranking of the chunks that the conditions admit and that share a word with a query text."""
        allowed = allowed_rows(self.snapshot.chunks, where, file_filter)
        key = reader_key(f"{self.snapshot.fingerprint}-bm25", text, where, file_filter)
        return LexicalReader(self.snapshot.chunks, self.rows_by_id, self.words.scores(text), allowed, key)

    @property
    def words(self) -> LexicalIndex:
        """The collection's word index, made or read when first asked for."""
        with self._building:
            if self._words is None:
                texts = [embedded_text(chunk) for chunk in self.snapshot.chunks]
                self._words = kept_lexical(texts, self.snapshot.fingerprint, self.folder)
            return self._words

    @property
    def headers(self) -> HeaderIndex:
        """The collection's headers, put together when first asked for."""
        with self._building:
            if self._headers is None:
                self._headers = HeaderIndex(self.snapshot.chunks)
            return self._headers

    def distances_of(self, text: str, ids: Iterable[str]) -> dict[str, float]:
        """The distances of chunks to a query text, by id, from their stored vectors."""
        listed = [one for one in ids if one in self.rows_by_id]
        rows = np.array([self.rows_by_id[one] for one in listed], dtype=np.intp)
        found = distances(self.snapshot.vectors, self.embed_query(text), rows)
        return dict(zip(listed, map(float, found), strict=True))

    def embed_query(self, text: str) -> Vectors:
        """The query's unit vector; the last few hundred are remembered."""
        with self._lock:
            known = self._vectors.get(text)
        if known is None:
            known = self.embedder.embed([text])[0]
            with self._lock:
                self._vectors[text] = known
        return known


def check_model(snapshot: Snapshot, embedder: Embedder) -> None:
    """Refuse a query with another model than the collection's, naming both."""
    if (snapshot.model, snapshot.dimension) != (embedder.name, embedder.dimension):
        raise InputError(
            f"collection {snapshot.name} was built with {snapshot.model} ({snapshot.dimension} dimensions), this query "
            f"uses {embedder.name} ({embedder.dimension}); choose that model, or ingest again with this one by force"
        )


def reader_key(fingerprint: str, text: str, where: Mapping[str, Any] | None, file_filter: str | None) -> str:
    """The fingerprint of one ranking: index, query and conditions."""
    asked = json.dumps([fingerprint, text, where or {}, file_filter or ""], sort_keys=True, default=str)
    return hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class ExactReader:
    """Reads one exact ranking, deeper on demand. `store_queries` counts the passes over the vectors."""

    def __init__(self, index: CollectionIndex, query: Vectors, allowed: Mask | None, fingerprint: str) -> None:
        self.fingerprint = fingerprint
        self._rows_by_id = index.rows_by_id
        self.store_queries = 0
        self._snapshot = index.snapshot
        self._admission = index.admission
        self._scan: Scan = index.scan
        self._query = query
        self._allowed = allowed
        self._rows: Rows = np.zeros(0, dtype=np.intp)
        self._distances: Distances = np.zeros(0)
        self._scores: Any = None

    @property
    def matching(self) -> int:
        """How many chunks the conditions admit: the length of the full ranking."""
        return len(self._snapshot.chunks) if self._allowed is None else int(self._allowed.sum())

    def read(self, start: int, stop: int) -> tuple[Hit, ...]:
        """Hits at positions start…stop−1 (0-based) of the full ranking; fewer where it ends."""
        if stop > len(self._rows) and len(self._rows) < self.matching:
            if self._scores is None:
                self._scores = self._pass()
            depth = max(stop, 2 * len(self._rows))  # a walk in small steps looks at the scores a few times only
            found = self._scan.nearest(self._query, self._scores, depth, self._allowed)
            self._rows, self._distances = found
        hits = zip(self._rows[start:stop], self._distances[start:stop], strict=True)
        return tuple(self._hit(row, distance, rank) for rank, (row, distance) in enumerate(hits, start + 1))

    def read_excluding(self, ids: Iterable[str], count: int) -> tuple[Hit, ...]:
        """The nearest `count` hits whose chunk id is not among `ids`, by a new pass; ranks are the full list's."""
        allowed = np.ones(len(self._snapshot.chunks), dtype=bool) if self._allowed is None else self._allowed.copy()
        ahead = np.array(sorted({self._rows_by_id[one] for one in ids if one in self._rows_by_id}), dtype=np.intp)
        ahead = ahead[allowed[ahead]]
        allowed[ahead] = False
        rows, found = self._scan.nearest(self._query, self._pass(), count, allowed)
        skipped = list(zip(distances(self._snapshot.vectors, self._query, ahead), ahead, strict=True))
        return tuple(
            self._hit(row, distance, position + sum(one < (distance, row) for one in skipped))
            for position, (row, distance) in enumerate(zip(rows, found, strict=True), 1)
        )

    def read_admitted(
        self, query: str, mode: str, without: Iterable[str], count: int, plurals: bool = True
    ) -> tuple[Hit, ...]:
        """The nearest `count` hits whose rules admit the query, those of `without` left out; ranks are the full list's.

        Fewer only where no more chunks are admitted.
        """
        self.store_queries += 1
        admitted = self._admission.mask(query, mode, [self._rows_by_id.get(one) for one in without], plurals)
        found = nearest_admitted(self._snapshot.vectors, self._query, count, admitted, self._allowed)
        return tuple(self._hit(*line) for line in found)

    def _pass(self) -> Any:
        self.store_queries += 1
        return self._scan.scores(self._query)

    def _hit(self, row: Any, distance: Any, rank: int) -> Hit:
        return Hit(self._snapshot.chunks[int(row)], rank, {"distance": float(distance)})
