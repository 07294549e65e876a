"""Dense: the source that ranks a collection's chunks by the distance of their vectors to the query's.

The index is handed in (rag_core.index gives exact and approximate ones); this stage asks it once and leaves the reader
in the candidates for stages that read on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from rag_core.errors import SpecError, SurroundingsError
from rag_core.stage import Source, resource, setting
from rag_core.text import counted
from rag_core.types import Candidates, Metric, Notice, Order, Reader, Step


class DenseReader(Reader, Protocol):
    """A reader that also says how many chunks the conditions admit and how often it asked its store."""

    store_queries: int

    @property
    def matching(self) -> int:
        """The length of the full ranking."""


class DenseIndex(Protocol):
    """What the stage needs of an index."""

    metric: Metric
    exact: bool

    @property
    def fingerprint(self) -> str:
        """What a ranking depends on besides the query."""

    def reader(self, text: str, where: Mapping[str, Any] | None = None, file_filter: str | None = None) -> DenseReader:
        """The ranking for a query text under the conditions."""


@dataclass(frozen=True)
class Dense(Source):
    """Bring the `depth` nearest chunks, optionally only those of some metadata values or files."""

    depth: int = setting(
        200, "how many chunks are read", low=1, high=10000, priority=1, unit="chunks", step=10, usual=(50, 500)
    )
    where: Mapping[str, Any] | None = setting(
        None, "metadata a chunk must have: field → value or list of values", optional=True, priority=2
    )
    file_filter: str | None = setting(
        None, "part of the source's file name, a glob (* ?), or re: and a pattern", optional=True
    )
    index: DenseIndex | None = resource()

    title: ClassVar[str] = "vector search"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_where(self.name, self.where)

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
        if self.index is None:
            raise SurroundingsError("Dense has no collection to search, expected one to be named (--collection)")
        query = candidates.query
        reader = self.index.reader(query.dense_text or query.text, self.where, self.file_filter)
        hits = reader.read(0, self.depth)
        after = replace(
            candidates,
            hits=hits,
            metric=self.index.metric,
            order=Order.DISTANCE,
            reader=reader,
            notices=candidates.notices + self._notices(reader),
        )
        facts = {
            "depth": self.depth,
            "matching": reader.matching,
            "store_queries": reader.store_queries,
            "exact": self.index.exact,
            "index": self.index.fingerprint,
        }
        return after, facts

    def _notices(self, reader: DenseReader) -> tuple[Notice, ...]:
        """A word where the conditions admit nothing: the empty list is then no property of the query."""
        if reader.matching or not (self.where or self.file_filter):
            return ()
        return (Notice(self.name, "no chunk of the collection meets where and file_filter"),)


def check_where(stage: str, where: Any) -> None:
    """Refuse conditions that are no mapping, naming the stage."""
    if where is not None and not isinstance(where, Mapping):
        raise SpecError(f"{stage}.where is {where!r:.80}, expected a mapping of field to value or list of values")
