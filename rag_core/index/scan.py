"""Exact nearest neighbours: one pass over all vectors, and the nearest rows by it, in a collection's own space.

Distances are computed the same way for every row, so that equal vectors have equal distances and ties fall to the
smaller row, which is the smaller id. Three scans give the same rows and distances as brute force: the plain one over
cosine distances; for large collections one that reads the vectors a second time as one byte a number, a quarter of the
bytes (how far such a product can be off is known exactly: Cauchy and Schwarz, x·q − x′·q′ = (x − x′)·q + x′·(q − q′);
only rows that could still be among the best are read whole); and one for the spaces that Chroma builds collections in.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_core.index.embed import Vectors, onnx_runtime
from rag_core.index.where import Mask
from rag_core.types import Metric

Rows = NDArray[np.intp]
Distances = NDArray[np.float64]
Scores = NDArray[np.floating[Any]]
EXACT_BLOCK = 64  # rows at a time in float64: they stay in the cache
GROUPS = 1024  # of scores, each represented by its greatest


def similarities(vectors: Vectors, query: Vectors) -> NDArray[np.float32]:
    """The float32 dot product of every row with the query, on one thread: two swing between 0.5 and 8 ms at 10,000."""
    with _threads().limit(limits=1, user_api="blas"):
        return np.asarray(vectors @ query, dtype=np.float32)


@lru_cache(maxsize=1)
def _threads() -> Any:
    return import_module("threadpoolctl").ThreadpoolController()


def distances(vectors: Vectors, query: Vectors, rows: Rows) -> Distances:
    """The cosine distances of some rows, in float64 and row by row: independent of which rows stand beside."""
    wanted = query.astype(np.float64)
    products: Distances = np.empty(len(rows))
    for start in range(0, len(rows), EXACT_BLOCK):
        some = vectors[rows[start : start + EXACT_BLOCK]].astype(np.float64)
        some *= wanted
        products[start : start + EXACT_BLOCK] = some.sum(axis=1)
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


MOST_LEFT, MOST_RIGHT = 127, 127
"""The greatest numbers of the row (from 0) and of the matrix (from −127). Two products stay below 2¹⁵, where processors
without instructions for the purpose would cut off their sum."""

UINT8, INT8, INT32 = 2, 3, 6  # TensorProto.DataType of ONNX
OPERATORS, FORMAT = 10, 8  # the first version of ONNX's operators with MatMulInteger, and of its files that is common


def fast() -> bool:
    """Whether this processor's kind has the kernel that takes one row; elsewhere float32 is faster."""
    return platform.machine().lower() in ("x86_64", "amd64")


def product(row: NDArray[np.uint8], matrix: NDArray[np.int8]) -> NDArray[np.int32]:
    """The product of a row (numbers 0 to 127) with each column of a matrix (−127 to 127), on one thread."""
    found: NDArray[np.int32] = _session().run(None, {"row": row[None], "matrix": matrix})[0][0]
    return found


@lru_cache(maxsize=1)
def _session() -> Any:
    runtime = onnx_runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return runtime.InferenceSession(_model(), options, providers=["CPUExecutionProvider"])


def _model() -> bytes:
    """The ONNX model of the one operation, written field by field as onnx.proto numbers them."""
    node = _part(1, b"row") + _part(1, b"matrix") + _part(2, b"product") + _part(4, b"MatMulInteger")
    inputs = _part(11, _matrix(b"row", UINT8)) + _part(11, _matrix(b"matrix", INT8))
    graph = _part(1, node) + _part(2, b"product") + inputs + _part(12, _matrix(b"product", INT32))
    return _number(1, FORMAT) + _part(7, graph) + _part(8, _part(1, b"") + _number(2, OPERATORS))


def _matrix(name: bytes, kind: int) -> bytes:
    """A value with two dimensions of any size."""
    sizes = _part(1, _part(2, name + b" rows")) + _part(1, _part(2, name + b" columns"))
    return _part(1, name) + _part(2, _part(1, _number(1, kind) + _part(2, sizes)))


def _part(field: int, content: bytes) -> bytes:
    """A field of protobuf that holds text or fields; shorter than 128 bytes, or its length in two."""
    length = len(content)
    size = bytes([length]) if length < 128 else bytes([length % 128 + 128, length // 128])
    return bytes([field * 8 + 2]) + size + content


def _number(field: int, value: int) -> bytes:
    return bytes([field * 8, value])


LARGE_ROWS = 8_000
BLOCK = 4096  # rows turned into bytes, or into float64, at a time
MANY = 10  # of so many rows one: more are not looked at one by one
LEAST = 1e-12  # a unit: a dimension that reaches less far is as good as 0
ZERO = 64  # the number that stands for 0 in a query, whose numbers are 1 to 127


def scan_of(vectors: Vectors, metric: Metric = Metric.COSINE) -> FullScan:
    """The scan for a collection of that size and space."""
    if metric is not Metric.COSINE:
        return SpaceScan(vectors, metric)
    return ByteScan(vectors) if len(vectors) >= LARGE_ROWS and fast() else FullScan(vectors)


class FullScan:
    """One pass over the vectors, and the nearest rows by it: here every dot product."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    def scores(self, query: Vectors) -> Scores:
        """What one pass gives per row, the nearest greatest, for `nearest` only: here the similarity of every row."""
        return similarities(self._vectors, query)

    def nearest(self, query: Vectors, scores: Scores, count: int, allowed: Mask | None) -> tuple[Rows, Distances]:
        """The `count` nearest allowed rows with their distances, by (distance, row)."""
        return nearest(self._vectors, query, scores, count, allowed)

    def distances(self, query: Vectors, rows: Rows) -> Distances:
        """The distances of some rows."""
        return distances(self._vectors, query, rows)

    def nearest_ranked(
        self, query: Vectors, count: int, admitted: Mask, allowed: Mask | None
    ) -> Iterator[tuple[int, float, int]]:
        """(row, distance, rank) of the `count` nearest rows that are admitted and allowed, by (distance, row).

        The rank is the 1-based place among all allowed rows, admitted or not. By whole products, one pass; for it only
        rows whose score is within rounding of a row's own are looked at.
        """
        scores = similarities(self._vectors, query)
        rows, near = nearest(self._vectors, query, scores, count, admitted if allowed is None else admitted & allowed)
        everywhere = scores if allowed is None else np.where(allowed, scores, np.float32(-np.inf))
        ordered, margin = np.sort(everywhere), 2 * rounding(self._vectors.shape[1])
        for row, distance in zip(rows, near, strict=True):
            low, high = scores[row] - margin, scores[row] + margin
            close = np.flatnonzero((everywhere >= low) & (everywhere <= high))
            exact = distances(self._vectors, query, close)
            before = int(((exact < distance) | ((exact == distance) & (close < row))).sum())
            yield int(row), float(distance), 1 + len(ordered) - int(ordered.searchsorted(high, "right")) + before


class SpaceScan(FullScan):
    """Every distance as Chroma defines it in the spaces it builds collections in: Σ(x−q)², 1 − x·q, or 1 − cos."""

    def __init__(self, vectors: Vectors, metric: Metric) -> None:
        super().__init__(vectors)
        self._metric = metric

    def scores(self, query: Vectors) -> Scores:
        """Minus the distance of every row."""
        return -self.distances(query, np.arange(len(self._vectors)))

    def nearest(self, query: Vectors, scores: Scores, count: int, allowed: Mask | None) -> tuple[Rows, Distances]:
        """The nearest rows."""
        rows = within(scores, count, allowed, 0.0)
        near = self.distances(query, rows)
        order = np.lexsort((rows, near))[:count]
        return rows[order], near[order]

    def distances(self, query: Vectors, rows: Rows) -> Distances:
        """Row by row, in float64."""
        wanted, found = query.astype(np.float64), np.empty(len(rows))
        for start in range(0, len(rows), BLOCK):
            some = self._vectors[rows[start : start + BLOCK]].astype(np.float64)
            if self._metric is Metric.L2:
                found[start : start + BLOCK] = ((some - wanted) ** 2).sum(axis=1)
                continue
            products = (some * wanted).sum(axis=1)
            if self._metric is Metric.COSINE:
                lengths = np.linalg.norm(some, axis=1) * np.linalg.norm(wanted)
                products /= np.where(lengths == 0, 1, lengths)
            found[start : start + BLOCK] = 1.0 - products
        return found

    def nearest_ranked(
        self, query: Vectors, count: int, admitted: Mask, allowed: Mask | None
    ) -> Iterator[tuple[int, float, int]]:
        """From the whole ranking."""
        scores = self.scores(query)
        rows, near = self.nearest(query, scores, len(scores), allowed)
        ranked = (
            (int(row), float(distance), rank) for rank, (row, distance) in enumerate(zip(rows, near, strict=True), 1)
        )
        yield from islice((line for line in ranked if admitted[line[0]]), count)


class ByteScan(FullScan):
    """Every dot product from numbers of one byte; then the few that matter.

    A dimension has a unit of its own, so that one in which vectors reach far does not coarsen the others.
    """

    def __init__(self, vectors: Vectors) -> None:
        super().__init__(vectors)
        reach = np.maximum(vectors.max(axis=0), -vectors.min(axis=0))
        self._units = np.maximum(reach / MOST_RIGHT, LEAST).astype(np.float32)
        self._bytes = np.empty(vectors.shape[::-1], dtype=np.int8)  # a dimension a row, as the product reads it
        self._middle = np.empty(len(vectors), dtype=np.int32)  # what a query of nothing but zeros gives
        self._off = self._length = 0.0  # the greatest |x − x′|, and the greatest |x′| in units
        for start in range(0, len(vectors), BLOCK):
            self._fill(start, vectors[start : start + BLOCK])

    def _fill(self, start: int, some: Vectors) -> None:
        near = np.rint(some / self._units).clip(-MOST_RIGHT, MOST_RIGHT)
        self._bytes[:, start : start + BLOCK] = near.T
        self._middle[start : start + BLOCK] = ZERO * near.sum(axis=1)
        self._off = max(self._off, float(np.linalg.norm(near * self._units - some, axis=1).max()))
        self._length = max(self._length, float(np.linalg.norm(near, axis=1).max()))

    def scores(self, query: Vectors) -> Scores:
        """The similarity of every row, up to `margin`."""
        row, unit = self._rounded(query)
        found = product(row, self._bytes)
        found -= self._middle
        return np.multiply(found, np.float32(unit), dtype=np.float32)

    def nearest(self, query: Vectors, scores: Scores, count: int, allowed: Mask | None) -> tuple[Rows, Distances]:
        """The nearest rows: those that could reach the `count`-th greatest score are read whole."""
        rows = within(scores, count, allowed, 2 * self.margin(query))
        if len(rows) > len(scores) // MANY:  # the bytes tell little here: whole products cost less
            return nearest(self._vectors, query, similarities(self._vectors, query), count, allowed)
        some = self._vectors[rows]
        places, found = nearest(some, query, similarities(some, query), count)
        return rows[places], found

    def margin(self, query: Vectors) -> float:
        """How far a score can be from the similarity; both roundings, and that of float32."""
        row, unit = self._rounded(query)
        off = query * self._units.astype(np.float64) - (row.astype(np.float64) - ZERO) * unit
        length = float(np.linalg.norm(query.astype(np.float64)))
        return self._off * length + self._length * float(np.linalg.norm(off)) + rounding(len(query))

    def _rounded(self, query: Vectors) -> tuple[NDArray[np.uint8], float]:
        """The query in the dimensions' units, as numbers around ZERO; and what one of its steps is worth."""
        scaled = query * self._units.astype(np.float64)
        unit = float(np.abs(scaled).max()) / (ZERO - 1) or 1.0
        return (np.rint(scaled / unit) + ZERO).astype(np.uint8), unit
