"""A collection ready to be searched: exact readers over its snapshot, for sources that take an index.

The query is embedded with the model the collection was built with, or refused; a collection of words alone is searched
by words. What passes over the vectors is in scan.py, approximate search in chroma.py, how a deeper ranking meets a
pipeline in rag_core.retrieve.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from cachetools import LRUCache

from rag_core.errors import InputError
from rag_core.index.collection import Snapshot
from rag_core.index.embed import BundledEmbedder, Embedder, Vectors
from rag_core.index.headers import HeaderIndex
from rag_core.index.lexical import K1, B, LexicalIndex, LexicalReader, WordCounts, kept_counts, weighed
from rag_core.index.scan import Distances, FullScan, Rows, scan_of
from rag_core.index.store import embedded_text
from rag_core.index.where import Mask, allowed_rows, reader_key
from rag_core.rules.index import RuleIndex
from rag_core.rules.rule import Rule, read_rule
from rag_core.types import Chunk, Hit, Metric

REMEMBERED = 512  # vectors of queries
WORD_INDEXES = 3  # of one collection by analyzer, k1 and b: 60 MB each at 100,000 chunks


class CollectionIndex:
    """What a source searches: `reader(text)` gives the ranking of the collection's chunks for a query.

    What a search needs besides vectors (the scan, the words, the rules, the headers) is made when first asked for.
    """

    exact = True

    def __init__(self, snapshot: Snapshot, embedder: Embedder | None = None, folder: Path | None = None) -> None:
        self.snapshot = snapshot
        self.folder = folder  # where what is derived from the collection may be kept
        self.embedder: Embedder = embedder or BundledEmbedder()
        if (snapshot.model, snapshot.dimension) != (self.embedder.name, self.embedder.dimension):
            raise InputError(
                f"collection {snapshot.name} was built with {snapshot.model} ({snapshot.dimension} dimensions), this "
                f"query uses {self.embedder.name} ({self.embedder.dimension}); choose that model, or ingest again with "
                "this one by force"
            )
        self.metric = snapshot.metric if snapshot.dimension else Metric.UNKNOWN
        self.rows_by_id = {chunk.id: row for row, chunk in enumerate(snapshot.chunks)}
        self._vectors: LRUCache[str, Vectors] = LRUCache(REMEMBERED)
        self._words: LRUCache[tuple[str, float, float], LexicalIndex] = LRUCache(WORD_INDEXES)
        self._lock = RLock()

    @property
    def fingerprint(self) -> str:
        """What a ranking depends on: ids, embedded texts, model, and how it is searched."""
        return f"{self.snapshot.fingerprint}-{'exact' if self.metric is Metric.COSINE else self.metric}"

    def reader(self, text: str, where: Mapping[str, Any] | None = None, file_filter: str | None = None) -> ExactReader:
        """The exact ranking of the chunks that the conditions admit, for a query text."""
        if not self.snapshot.dimension:
            raise InputError(
                f"collection {self.snapshot.name} holds words alone, expected a search by words (Lexical), or its "
                f"documents ingested once more with --model {BundledEmbedder.name}"
            )
        allowed = allowed_rows(self.snapshot.chunks, where, file_filter)
        key = reader_key(self.fingerprint, text, where, file_filter)
        return ExactReader(self, self.embed_query(text), allowed, key)

    def lexical_reader(
        self,
        text: str,
        where: Mapping[str, Any] | None = None,
        file_filter: str | None = None,
        analyzer: str = "plain",
        k1: float = K1,
        b: float = B,
    ) -> LexicalReader:
        """The BM25 ranking of the chunks that the conditions admit and that share a word with a query text."""
        allowed = allowed_rows(self.snapshot.chunks, where, file_filter)
        key = reader_key(f"{self.snapshot.fingerprint}-bm25-{analyzer}-{k1}-{b}", text, where, file_filter)
        scores = self.words(analyzer, k1, b).scores(text)
        return LexicalReader(self.snapshot.chunks, self.rows_by_id, scores, allowed, key)

    def words(self, analyzer: str = "plain", k1: float = K1, b: float = B) -> LexicalIndex:
        """The collection's word index for an analyzer and weights; the last few are remembered."""
        with self._lock:
            if (analyzer, k1, b) not in self._words:
                self._words[analyzer, k1, b] = weighed(self._counts, analyzer, k1, b)
            return self._words[analyzer, k1, b]

    @cached_property
    def _counts(self) -> WordCounts:
        """How often each word stands in each chunk, as the ingest left it beside the collection, else counted now."""
        texts = [embedded_text(chunk) for chunk in self.snapshot.chunks]
        return kept_counts(texts, self.snapshot.fingerprint, self.folder)

    @cached_property
    def scan(self) -> FullScan:
        """What passes over the vectors."""
        return scan_of(self.snapshot.vectors, self.metric)

    @cached_property
    def headers(self) -> HeaderIndex:
        """The collection's headers."""
        return HeaderIndex(self.snapshot.chunks)

    @cached_property
    def rules(self) -> RuleIndex:
        """The rules of the chunks, compiled; one that cannot be read counts as none, so that it admits its chunk."""
        return rule_index(self.snapshot.chunks)

    def admitted(self, query: str, mode: str, without: Iterable[str], plurals: bool = True) -> Mask:
        """Which chunks a query admits by their rules, those of `without` left out: a boolean each, in their order."""
        admitted = self.rules.mask(query, mode, plurals)
        admitted[[self.rows_by_id[one] for one in without if one in self.rows_by_id]] = False
        return admitted

    def distances_of(self, text: str, ids: Iterable[str]) -> dict[str, float]:
        """The distances of chunks to a query text, by id, from their stored vectors; none where nothing is embedded."""
        if not self.snapshot.dimension:
            return {}
        listed = [one for one in ids if one in self.rows_by_id]
        rows = np.array([self.rows_by_id[one] for one in listed], dtype=np.intp)
        return dict(zip(listed, map(float, self.scan.distances(self.embed_query(text), rows)), strict=True))

    def embed_query(self, text: str) -> Vectors:
        """The query's unit vector; the last few hundred are remembered."""
        with self._lock:
            known = self._vectors.get(text)
        if known is None:
            known = self.embedder.embed([text])[0]
            with self._lock:
                self._vectors[text] = known
        return known


def rule_index(chunks: Sequence[Chunk]) -> RuleIndex:
    """The rules of chunks, compiled; one that cannot be read counts as none."""
    read = (read_rule(chunk.query_must) for chunk in chunks)
    return RuleIndex([rule if isinstance(rule, Rule) else None for rule in read])


class ExactReader:
    """Reads one exact ranking, deeper on demand. `store_queries` counts the passes over the vectors."""

    def __init__(self, index: CollectionIndex, query: Vectors, allowed: Mask | None, fingerprint: str) -> None:
        self.fingerprint = fingerprint
        self.store_queries = 0
        self._index = index
        self._query = query
        self._allowed = allowed
        self._rows: Rows = np.zeros(0, dtype=np.intp)
        self._distances: Distances = np.zeros(0)
        self._scores: Any = None

    @property
    def matching(self) -> int:
        """How many chunks the conditions admit: the length of the full ranking."""
        return len(self._index.snapshot.chunks) if self._allowed is None else int(self._allowed.sum())

    def read(self, start: int, stop: int) -> tuple[Hit, ...]:
        """Hits at positions start…stop−1 (0-based) of the full ranking; fewer where it ends."""
        if stop > len(self._rows) and len(self._rows) < self.matching:
            if self._scores is None:
                self._scores = self._pass()
            depth = max(stop, 2 * len(self._rows))  # a walk in small steps looks at the scores a few times only
            self._rows, self._distances = self._index.scan.nearest(self._query, self._scores, depth, self._allowed)
        hits = zip(self._rows[start:stop], self._distances[start:stop], strict=True)
        return tuple(self._hit(row, distance, rank) for rank, (row, distance) in enumerate(hits, start + 1))

    def read_excluding(self, ids: Iterable[str], count: int) -> tuple[Hit, ...]:
        """The nearest `count` hits whose chunk id is not among `ids`, by a new pass; ranks are the full list's."""
        index = self._index
        allowed = np.ones(len(index.snapshot.chunks), dtype=bool) if self._allowed is None else self._allowed.copy()
        ahead = np.array(sorted({index.rows_by_id[one] for one in ids if one in index.rows_by_id}), dtype=np.intp)
        ahead = ahead[allowed[ahead]]
        allowed[ahead] = False
        rows, near = index.scan.nearest(self._query, self._pass(), count, allowed)
        skipped = list(zip(index.scan.distances(self._query, ahead), ahead, strict=True))
        return tuple(
            self._hit(row, distance, position + sum(one < (distance, row) for one in skipped))
            for position, (row, distance) in enumerate(zip(rows, near, strict=True), 1)
        )

    def read_admitted(
        self, query: str, mode: str, without: Iterable[str], count: int, plurals: bool = True
    ) -> tuple[Hit, ...]:
        """The nearest `count` hits whose rules admit the query, those of `without` left out; ranks are the full list's.

        Fewer only where no more chunks are admitted.
        """
        self.store_queries += 1
        admitted = self._index.admitted(query, mode, without, plurals)
        ranked = self._index.scan.nearest_ranked(self._query, count, admitted, self._allowed)
        return tuple(self._hit(*line) for line in ranked)

    def _pass(self) -> Any:
        self.store_queries += 1
        return self._index.scan.scores(self._query)

    def _hit(self, row: Any, distance: Any, rank: int) -> Hit:
        return Hit(self._index.snapshot.chunks[int(row)], rank, {"distance": float(distance)})
