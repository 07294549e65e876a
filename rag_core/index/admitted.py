"""Prefiltered exact search: which chunks of a snapshot a query's rules admit, and the nearest of those.

The rules of a collection are compiled once, when the first query asks. Deciding single rules is in rag_core.rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_core.index.embed import Vectors
from rag_core.index.exact import Distances, Rows, distances, nearest, rounding, similarities
from rag_core.index.where import Mask
from rag_core.rules.index import RuleIndex
from rag_core.rules.model import Rule
from rag_core.rules.parsing import read_rule
from rag_core.types import Chunk


class Admission:
    """Which chunks a query admits by their rules; a rule that cannot be read admits its chunk."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        self._index: RuleIndex | None = None
        self._lock = Lock()

    def mask(self, query: str, mode: str, without: Iterable[int | None] = (), plurals: bool = True) -> Mask:
        """One boolean per chunk, in the order of the chunks; the rows of `without` are not admitted."""
        admitted = self._compiled().mask(query, mode, plurals)
        admitted[[row for row in without if row is not None]] = False
        return admitted

    def _compiled(self) -> RuleIndex:
        with self._lock:
            if self._index is None:
                self._index = rule_index(self._chunks)
            return self._index


def rule_index(chunks: Sequence[Chunk]) -> RuleIndex:
    """The rules of chunks, compiled; one that cannot be read counts as none."""
    read = (read_rule(chunk.query_must) for chunk in chunks)
    return RuleIndex([rule if isinstance(rule, Rule) else None for rule in read])


def nearest_admitted(
    vectors: Vectors, query: Vectors, count: int, admitted: Mask, allowed: Mask | None = None
) -> Iterator[tuple[int, float, int]]:
    """(row, distance, rank) of the `count` nearest rows that are admitted and allowed, by (distance, row).

    The rank is the 1-based place among all allowed rows, admitted or not. One pass over the vectors.
    """
    scores = similarities(vectors, query)
    both = admitted if allowed is None else admitted & allowed
    rows, found = nearest(vectors, query, scores, count, both)
    ranks = _ranks(vectors, query, scores if allowed is None else np.where(allowed, scores, -np.inf), rows, found)
    for row, distance, rank in zip(rows, found, ranks, strict=True):
        yield int(row), float(distance), rank


def _ranks(
    vectors: Vectors, query: Vectors, scores: NDArray[np.floating[Any]], rows: Rows, found: Distances
) -> Iterator[int]:
    """The rank of each row; only rows whose score is within rounding of its own are looked at exactly."""
    ordered = np.sort(scores)
    margin = 2 * rounding(vectors.shape[1])
    for row, distance in zip(rows, found, strict=True):
        low, high = scores[row] - margin, scores[row] + margin
        near = np.flatnonzero((scores >= low) & (scores <= high))
        exact = distances(vectors, query, near)
        before = int(((exact < distance) | ((exact == distance) & (near < row))).sum())
        yield 1 + len(ordered) - int(np.searchsorted(ordered, high, side="right")) + before
