"""Ways to pass over all vectors for a query: the plain one, and for large collections one that reads half as much.

Both give the same rows with the same distances; a test holds the second to the first. Reading the vectors is what takes
the time, so the second keeps each one's leading half in a rotated basis and the length of the rest: by Cauchy and
Schwarz, x·q ≤ x₁·q₁ + |x₂||q₂|, and only rows whose bound reaches the best found are read whole.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rag_core.index.embed import Vectors
from rag_core.index.exact import Distances, Rows, distances, nearest, one_thread, rounding, similarities
from rag_core.index.where import Mask

LARGE_ROWS = 50_000
SAMPLE = 20_000
MANY = 50
SPARE = 64  # rows looked at besides twice the wanted ones, to find a good bound

Scores = NDArray[np.float32]


class Scan(Protocol):
    """One pass over the vectors, and the nearest rows by it."""

    def scores(self, query: Vectors) -> Scores:
        """What one pass gives per row; for `nearest` only."""

    def nearest(self, query: Vectors, scores: Scores, count: int, allowed: Mask | None) -> tuple[Rows, Distances]:
        """The `count` nearest allowed rows with their cosine distances, by (distance, row)."""


def scan_of(vectors: Vectors) -> Scan:
    """The scan for a collection of that size."""
    return HalfScan(vectors) if len(vectors) >= LARGE_ROWS else FullScan(vectors)


class FullScan:
    """Every dot product."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    def scores(self, query: Vectors) -> Scores:
        """The similarity of every row."""
        return similarities(self._vectors, query)

    def nearest(self, query: Vectors, scores: Scores, count: int, allowed: Mask | None) -> tuple[Rows, Distances]:
        """The nearest rows."""
        return nearest(self._vectors, query, scores, count, allowed)


class HalfScan:
    """Every dot product's leading half, along the directions in which vectors vary most; then the few that matter."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors
        self._basis = _leading_half(vectors)
        heads = vectors @ self._basis
        self._heads = np.ascontiguousarray(heads.T)  # a direction a row: read in two thirds of the time
        self._rests = _rests(vectors, heads)

    def scores(self, query: Vectors) -> Scores:
        """The leading half of every row's similarity."""
        with one_thread():
            return np.asarray((query @ self._basis) @ self._heads, dtype=np.float32)

    def nearest(self, query: Vectors, scores: Scores, count: int, allowed: Mask | None) -> tuple[Rows, Distances]:
        """The nearest rows: those whose bound reaches the `count`-th best of a first handful."""
        eligible = scores if allowed is None else np.where(allowed, scores, np.float32(-np.inf))
        admitted = len(scores) if allowed is None else int(allowed.sum())
        handful = 2 * count + SPARE
        if handful >= admitted:
            return nearest(self._vectors, query, similarities(self._vectors, query), count, allowed)
        place = len(eligible) - handful  # partition and compare: a fifth of argpartition's time
        first = np.flatnonzero(eligible >= np.partition(eligible, place)[place])
        with one_thread():
            known = self._vectors[first] @ query
        reached = np.partition(known, len(known) - count)[len(known) - count]
        head = query @ self._basis
        rest = np.sqrt(max(0.0, float(query @ query) - float(head @ head))) + rounding(len(query))
        rows = np.flatnonzero(eligible + self._rests * np.float32(rest) >= reached - 2 * rounding(len(query)))
        if len(rows) > len(scores) // MANY:  # the bound tells little here: whole products cost less
            return nearest(self._vectors, query, similarities(self._vectors, query), count, allowed)
        found = distances(self._vectors, query, rows)
        order = np.lexsort((rows, found))[:count]
        return rows[order], found[order]


def _leading_half(vectors: Vectors) -> Vectors:
    """An orthonormal basis (dimension × half of it) of the directions with most of the vectors' energy."""
    step = max(1, len(vectors) // SAMPLE)
    some = vectors[::step].astype(np.float64)
    _, directions = np.linalg.eigh(some.T @ some)
    half = max(1, vectors.shape[1] // 2)
    return np.ascontiguousarray(directions[:, ::-1][:, :half], dtype=np.float32)


def _rests(vectors: Vectors, heads: Vectors) -> NDArray[np.float32]:
    """The length of what of each row the heads leave out, rounded up."""
    whole = np.einsum("ij,ij->i", vectors, vectors) - np.einsum("ij,ij->i", heads, heads)
    slack = rounding(vectors.shape[1])
    return np.asarray(np.sqrt(np.maximum(whole, 0) + slack), dtype=np.float32)
