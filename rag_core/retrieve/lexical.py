"""Lexical: the source that ranks a collection's chunks by BM25, the words they share with the query.

The index is handed in (rag_core.index scores and keeps it). Each hit also gets its distance from its stored vector, so
that what reads distances works behind this source too; where the query cannot be embedded, or nothing is, the list goes
without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rag_core.errors import EndpointError, SurroundingsError
from rag_core.retrieve.dense import CollectionSource, SearchedIndex, WordReader
from rag_core.stage import setting
from rag_core.text import ANALYZERS
from rag_core.types import Candidates, Fallback, Hit, Notice, Order, Query, Step


@dataclass(frozen=True)
class WordSource(CollectionSource):
    """What a source that searches words has besides: how words are read and weighed."""

    analyzer: str = setting(
        "plain",
        "what is the same word: plain takes words as they stand, a language drops its stop words and endings",
        choices=ANALYZERS,
    )
    k1: float = setting(
        1.2, "BM25: how much a word's repetition in a chunk adds", low=0, high=10, step=0.1, usual=(0.5, 3)
    )
    b: float = setting(0.75, "BM25: how much a long chunk counts as diluted", low=0, high=1, step=0.05)

    def words_reader(self, query: Query) -> WordReader:
        """The BM25 ranking of a query; a SurroundingsError where there is no index that holds words."""
        index = self.collection()
        if not hasattr(index, "lexical_reader"):
            raise SurroundingsError(
                f"{self.name} searches words, this source has none; expected a collection of chunks"
            )
        text = query.lexical_text or query.text
        return index.lexical_reader(text, self.where, self.file_filter, self.analyzer, self.k1, self.b)


@dataclass(frozen=True)
class Lexical(WordSource):
    """Bring the `depth` chunks with the highest BM25 score, of those that share a word with the query."""

    title: ClassVar[str] = "word search"

    @classmethod
    def said(cls, step: Step) -> str:
        """How deep it read of how many chunks that share a word."""
        if "depth" not in step.facts:
            return super().said(step)
        return f"depth {step.facts['depth']} of {step.facts['matching']:,} chunks that share a word, BM25"

    def fetch(self, candidates: Candidates) -> tuple[Candidates, Mapping[str, Any]]:
        """The first `depth` hits of the query's ranking, and the reader of the rest."""
        query = candidates.query
        words = self.words_reader(query)
        index = self.collection()
        reader = MeasuredWords(words, index, query.dense_text or query.text)
        hits = reader.read(0, self.depth)
        measured = bool(hits) and hits[0].distance is not None
        fallbacks = (Fallback(self.name, reader.failed),) if reader.failed else ()
        after = replace(
            candidates,
            hits=hits,
            metric=index.metric,
            order=Order.FUSED if measured else Order.DISTANCE,
            reader=reader,
            notices=candidates.notices + self._notices(words),
            fallbacks=candidates.fallbacks + fallbacks,
        )
        facts = {"depth": self.depth, "matching": words.matching, "store_queries": words.store_queries}
        return after, {**facts, "exact": True, "index": words.fingerprint}

    def _notices(self, reader: WordReader) -> tuple[Notice, ...]:
        """A word where nothing was found: no chunk shares a word with the query, or none that the conditions admit."""
        if reader.matching:
            return ()
        condition = " and meets where and file_filter" if self.where or self.file_filter else ""
        return (Notice(self.name, f"no chunk of the collection shares a word with the query{condition}"),)


class MeasuredWords:
    """A BM25 ranking whose hits also carry their distance. `failed` says why they do not, where the query could not be
    embedded: word search needs no model, so the list stands without.
    """

    def __init__(self, reader: WordReader, index: SearchedIndex, text: str) -> None:
        self.fingerprint = reader.fingerprint
        self.failed = ""
        self._reader, self._index, self._text = reader, index, text

    def read(self, start: int, stop: int) -> tuple[Hit, ...]:
        """Hits at positions start…stop−1 (0-based) of the ranking."""
        return self._measured(self._reader.read(start, stop))

    def read_excluding(self, ids: Iterable[str], count: int) -> tuple[Hit, ...]:
        """The best `count` hits whose chunk id is not among `ids`."""
        return self._measured(self._reader.read_excluding(ids, count))

    def _measured(self, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
        if self.failed or not hits:
            return hits
        try:
            near = self._index.distances_of(self._text, [hit.chunk.id for hit in hits])
        except EndpointError as error:
            self.failed = f"ranked by words alone, without distances: {error}"
            return hits
        return tuple(
            replace(hit, scores={"distance": near[hit.chunk.id], **hit.scores}) if hit.chunk.id in near else hit
            for hit in hits
        )
