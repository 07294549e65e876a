"""Dense: the source that ranks a collection's chunks by the distance of their vectors to the query's.

And what all sources over a collection share.

The index is handed in (rag_core.index gives exact and approximate ones); this stage asks it once and leaves the reader
in the candidates for stages that read on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from rag_core.errors import SpecError, SurroundingsError
from rag_core.stage import Source, resource, setting
from rag_core.text import counted
from rag_core.types import Candidates, Metric, Notice, Order, Query, Reader, Step


class DenseReader(Reader, Protocol):
    """A reader that also says how many chunks the conditions admit and how often it asked its store."""

    store_queries: int

    @property
    def matching(self) -> int:
        """The length of the full ranking."""


class WordReader(DenseReader, Protocol):
    """A reader of one BM25 ranking; it ends where chunks share no word with the query."""

    def scores_of(self, ids: Iterable[str]) -> Mapping[str, float]:
        """The BM25 score of chunks by id, 0 where no word is shared."""


class SearchedIndex(Protocol):
    """What sources need of an index."""

    metric: Metric
    exact: bool

    @property
    def fingerprint(self) -> str:
        """What a ranking depends on besides the query."""

    def reader(self, text: str, where: Mapping[str, Any] | None = None, file_filter: str | None = None) -> DenseReader:
        """The ranking for a query text under the conditions."""

    def lexical_reader(
        self, text: str, where: Mapping[str, Any] | None, file_filter: str | None, analyzer: str, k1: float, b: float
    ) -> WordReader:
        """The BM25 ranking for a query text under the conditions; an index without words has no such method."""

    def distances_of(self, text: str, ids: Iterable[str]) -> Mapping[str, float]:
        """Distances of chunks to a query text, from their stored vectors."""


@dataclass(frozen=True)
class CollectionSource(Source):
    """What every source over a collection has: how deep it reads, and which chunks it may return."""

    depth: int = setting(
        200, "how many chunks are read", low=1, high=10000, priority=1, unit="chunks", step=10, usual=(50, 500)
    )
    where: Mapping[str, Any] | None = setting(
        None, "metadata a chunk must have: field → value or list of values", optional=True, priority=2
    )
    file_filter: str | None = setting(
        None, "part of the source's file name, a glob (* ?), or re: and a pattern", optional=True
    )
    index: SearchedIndex | None = resource()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.where is not None and not isinstance(self.where, Mapping):
            raise SpecError(
                f"{self.name}.where is {self.where!r:.80}, expected a mapping of field to value or list of values"
            )

    def collection(self) -> SearchedIndex:
        """The index, or a SurroundingsError where none was handed in."""
        if self.index is None:
            raise SurroundingsError(f"{self.name} has no collection to search, expected one to be named (--collection)")
        return self.index

    def dense_reader(self, query: Query) -> DenseReader:
        """The ranking of a query by distance."""
        return self.collection().reader(query.dense_text or query.text, self.where, self.file_filter)

    def nothing_met(self, matching: int) -> tuple[Notice, ...]:
        """A word where the conditions admit nothing: the empty list is then no property of the query."""
        if matching or not (self.where or self.file_filter):
            return ()
        return (Notice(self.name, "no chunk of the collection meets where and file_filter"),)


@dataclass(frozen=True)
class Dense(CollectionSource):
    """Bring the `depth` nearest chunks, optionally only those of some metadata values or files."""

    title: ClassVar[str] = "vector search"

    @classmethod
    def said(cls, step: Step) -> str:
        """How deep it read of how many chunks, how exactly, and how often it asked its store."""
        facts = step.facts
        if "depth" not in facts:
            return super().said(step)
        kind = "exact" if facts["exact"] else "approximate (Chroma)"
        depth = f"depth {facts['depth']} of {facts['matching']:,} chunks"
        return f"{depth}, {kind}, {counted(facts['store_queries'], 'store query', 'store queries')}"

    def fetch(self, candidates: Candidates) -> tuple[Candidates, Mapping[str, Any]]:
        """The first `depth` hits of the query's ranking, and the reader of the rest."""
        reader, index = self.dense_reader(candidates.query), self.collection()
        hits = reader.read(0, self.depth)
        after = replace(
            candidates,
            hits=hits,
            metric=index.metric,
            order=Order.DISTANCE,
            reader=reader,
            notices=candidates.notices + self.nothing_met(reader.matching),
        )
        facts = {
            "depth": self.depth,
            "matching": reader.matching,
            "store_queries": reader.store_queries,
            "exact": index.exact,
            "index": index.fingerprint,
        }
        return after, facts
