"""Lexical: the source that ranks a collection's chunks by BM25, the words they share with the query.

The index is handed in (rag_core.index scores and keeps it). Each hit also gets its distance from its stored vector, so
that what reads distances works behind this source too; where the query cannot be embedded the list goes without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from rag_core.errors import EndpointError, SurroundingsError
from rag_core.retrieve.dense import check_where
from rag_core.stage import Source, resource, setting
from rag_core.types import Candidates, Fallback, Hit, Metric, Notice, Order, Reader, Step


class WordReader(Reader, Protocol):
    """A reader of one BM25 ranking; it ends where chunks share no word with the query."""

    store_queries: int
    matching: int

    def scores_of(self, ids: Iterable[str]) -> Mapping[str, float]:
        """The BM25 score of chunks by id, 0 where no word is shared."""


class LexicalSearch(Protocol):
    """What the stage needs of an index."""

    metric: Metric

    @property
    def fingerprint(self) -> str:
        """What a ranking depends on besides the query."""

    def lexical_reader(
        self, text: str, where: Mapping[str, Any] | None = None, file_filter: str | None = None
    ) -> WordReader:
        """The BM25 ranking for a query text under the conditions."""

    def distances_of(self, text: str, ids: Iterable[str]) -> Mapping[str, float]:
        """Distances of chunks to a query text, from their stored vectors."""


@dataclass(frozen=True)
class Lexical(Source):
    """Bring the `depth` chunks with the highest BM25 score, of those that share a word with the query."""

    depth: int = setting(
        200, "how many chunks are read", low=1, high=10000, priority=1, unit="chunks", step=10, usual=(50, 500)
    )
    where: Mapping[str, Any] | None = setting(
        None, "metadata a chunk must have: field → value or list of values", optional=True, priority=2
    )
    file_filter: str | None = setting(
        None, "part of the source's file name, a glob (* ?), or re: and a pattern", optional=True
    )
    index: LexicalSearch | None = resource()

    title: ClassVar[str] = "word search"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_where(self.name, self.where)

    @classmethod
    def said(cls, step: Step) -> str:
        """How deep it read of how many chunks that share a word."""
        if "depth" not in step.facts:
            return super().said(step)
        return f"depth {step.facts['depth']} of {step.facts['matching']:,} chunks that share a word, BM25"

    def fetch(self, candidates: Candidates) -> tuple[Candidates, Mapping[str, Any]]:
        """The first `depth` hits of the query's ranking, and the reader of the rest."""
        index = has_words(self.name, self.index)
        query = candidates.query
        words = index.lexical_reader(query.lexical_text or query.text, self.where, self.file_filter)
        reader = MeasuredWords(words, index, query.dense_text or query.text)
        hits = reader.read(0, self.depth)
        fallbacks = (Fallback(self.name, reader.failed),) if reader.failed else ()
        after = replace(
            candidates,
            hits=hits,
            metric=index.metric,
            order=Order.FUSED if hits and not reader.failed else Order.DISTANCE,
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

    def __init__(self, reader: WordReader, index: LexicalSearch, text: str) -> None:
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
            found = self._index.distances_of(self._text, [hit.chunk.id for hit in hits])
        except EndpointError as error:
            self.failed = f"ranked by words alone, without distances: {error}"
            return hits
        return tuple(replace(hit, scores={"distance": found[hit.chunk.id], **hit.scores}) for hit in hits)


def has_words(stage: str, index: Any) -> Any:
    """The index, or a SurroundingsError where there is none or it holds no words to search."""
    if index is None:
        raise SurroundingsError(f"{stage} has no collection to search, expected one to be named (--collection)")
    if not hasattr(index, "lexical_reader"):
        raise SurroundingsError(f"{stage} searches words, this source has none; expected a collection of chunks")
    return index
