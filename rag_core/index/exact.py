"""Exact nearest neighbours over unit vectors: the ranking everything else is measured against.

Pure functions on arrays. Distances are cosine (1 − cos), computed the same way for every row, so that equal vectors
have equal distances and ties fall to the smaller row, which is the smaller id.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_core.index.embed import Vectors
from rag_core.index.where import Mask

Rows = NDArray[np.intp]
Distances = NDArray[np.float64]
BLOCK = 64  # rows at a time in float64: they stay in the cache
GROUPS = 1024  # of scores, each represented by its greatest


def similarities(vectors: Vectors, query: Vectors) -> NDArray[np.float32]:
    """The float32 dot product of every row with the query, on one thread: two swing between 0.5 and 8 ms at 10,000."""
    with one_thread():
        return np.asarray(vectors @ query, dtype=np.float32)


def one_thread() -> Any:
    """A context in which matrix products use one thread."""
    return _threads().limit(limits=1, user_api="blas")


@lru_cache(maxsize=1)
def _threads() -> Any:
    return import_module("threadpoolctl").ThreadpoolController()


def distances(vectors: Vectors, query: Vectors, rows: Rows) -> Distances:
    """The cosine distances of some rows, in float64 and row by row: independent of which rows stand beside."""
    wanted = query.astype(np.float64)
    products: Distances = np.empty(len(rows))
    for start in range(0, len(rows), BLOCK):
        some = vectors[rows[start : start + BLOCK]].astype(np.float64)
        some *= wanted
        products[start : start + BLOCK] = some.sum(axis=1)
    return np.clip(1.0 - products, 0.0, 2.0)


def nearest(
    vectors: Vectors, query: Vectors, scores: NDArray[np.float32], count: int, allowed: Mask | None = None
) -> tuple[Rows, Distances]:
    """The `count` nearest allowed rows with their distances, by (distance, row).

    `scores` are the query's `similarities`. They choose whom to look at, with a margin of their rounding error; the
    order comes from `distances`.
    """
    rows = within(scores, count, allowed, rounding(vectors.shape[1]))
    found = distances(vectors, query, rows)
    order = np.lexsort((rows, found))[:count]
    return rows[order], found[order]


def within(scores: NDArray[np.float32], count: int, allowed: Mask | None, margin: float) -> Rows:
    """The allowed rows, ascending, that score at least the `count`-th greatest score less a margin; all are few."""
    eligible = scores if allowed is None else np.where(allowed, scores, np.float32(-np.inf))
    count = min(count, len(scores) if allowed is None else int(np.count_nonzero(allowed)))
    if count <= 0:
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(eligible >= greatest(eligible, count) - np.float32(margin))


def greatest(scores: NDArray[np.float32], count: int) -> np.float32:
    """The `count`-th greatest score.

    The `count`-th greatest of what groups have for their greatest is reached by `count` scores at least, and by few
    more: only those are ordered, which takes a tenth of the time of ordering all.
    """
    groups = max(GROUPS, 4 * count)
    size = len(scores) // groups
    if size > 1:
        heads = scores[: size * groups].reshape(size, groups).max(axis=0)
        scores = scores[scores >= _ordered(heads, count)]
    return _ordered(scores, count)


def _ordered(scores: NDArray[np.float32], count: int) -> np.float32:
    place = len(scores) - count
    found: np.float32 = np.partition(scores, place)[place]
    return found


def rounding(dimension: int) -> float:
    """Twice the bound on the rounding error of a float32 dot product of unit vectors."""
    return float(2 * dimension * np.finfo(np.float32).eps)


def nearest_lists(vectors: Vectors, queries: Vectors, count: int) -> list[tuple[Rows, Distances]]:
    """`nearest` for each row of `queries`, over all rows, by blocks of one matrix product (80 MB): fewer cost less."""
    block = max(1, 20_000_000 // max(1, len(vectors)))
    found: list[tuple[Rows, Distances]] = []
    for start in range(0, len(queries), block):
        some = queries[start : start + block]
        scores = some @ vectors.T
        found += [nearest(vectors, query, line, count) for query, line in zip(some, scores, strict=True)]
    return found
