"""Prefiltered exact search: which chunks of a snapshot a query's rules admit, and the nearest of those.

The rules of a collection are compiled once, when the first query asks. Deciding single rules is in rag_core.rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from rag_core.index.embed import Vectors
from rag_core.index.exact import Distances, Rows, distances
from rag_core.index.where import Mask
from rag_core.rules.index import RuleIndex
from rag_core.rules.model import Rule, read_rule
from rag_core.types import Chunk


class Admission:
    """Which chunks a query admits by their rules; a rule that cannot be read admits its chunk."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        self._index: RuleIndex | None = None
        self._lock = Lock()

    def mask(self, query: str, mode: str) -> Mask:
        """One boolean per chunk, in the order of the chunks."""
        return self._compiled().mask(query, mode)

    def _compiled(self) -> RuleIndex:
        with self._lock:
            if self._index is None:
                self._index = rule_index(self._chunks)
            return self._index


def rule_index(chunks: Sequence[Chunk]) -> RuleIndex:
    """The rules of chunks, compiled; one that cannot be read counts as none."""
    read = (read_rule(chunk.query_must) for chunk in chunks)
    return RuleIndex([rule if isinstance(rule, Rule) else None for rule in read])


def places(
    vectors: Vectors,
    query: Vectors,
    scores: NDArray[np.float32],
    rows: Rows,
    found: Distances,
    allowed: Mask | None = None,
) -> list[int]:
    """The 1-based ranks that rows with these distances have among all allowed rows, by (distance, row).

    `scores` are the query's similarities; only rows whose score is within rounding of a row's are looked at exactly.
    """
    standing = scores if allowed is None else np.where(allowed, scores, np.float32(-np.inf))
    ordered = np.sort(standing)
    margin = np.float32(4 * vectors.shape[1] * np.finfo(np.float32).eps)
    ranks = []
    for row, distance in zip(rows, found, strict=True):
        low, high = standing[row] - margin, standing[row] + margin
        surely = len(ordered) - int(np.searchsorted(ordered, high, side="right"))
        near = np.flatnonzero((standing >= low) & (standing <= high))
        exact = distances(vectors, query, near)
        ranks.append(1 + surely + int(((exact < distance) | ((exact == distance) & (near < row))).sum()))
    return ranks
