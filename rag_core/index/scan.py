"""Ways to pass over all vectors for a query: the plain one, and for large collections one that reads a quarter.

Both give the same rows with the same distances; a test holds the second to the first. Reading the vectors is what takes
the time, so the second has them a second time as one byte a number. How far such a product can be off is known exactly
(Cauchy and Schwarz, x·q − x′·q′ = (x − x′)·q + x′·(q − q′)); only rows that could still be among the best are read
whole.
"""

from __future__ import annotations

import platform
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rag_core.index.embed import Vectors, onnx_runtime
from rag_core.index.exact import Distances, Rows, nearest, rounding, similarities, within
from rag_core.index.where import Mask

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
BLOCK = 4096  # rows turned into bytes at a time
MANY = 10  # of so many rows one: more are not looked at one by one
LEAST = 1e-12  # a unit: a dimension that reaches less far is as good as 0
ZERO = 64  # the number that stands for 0 in a query, whose numbers are 1 to 127

Scores = NDArray[np.float32]


class Scan(Protocol):
    """One pass over the vectors, and the nearest rows by it."""

    def scores(self, query: Vectors) -> Scores:
        """What one pass gives per row; for `nearest` only."""

    def nearest(self, query: Vectors, scores: Scores, count: int, allowed: Mask | None) -> tuple[Rows, Distances]:
        """The `count` nearest allowed rows with their cosine distances, by (distance, row)."""


def scan_of(vectors: Vectors) -> Scan:
    """The scan for a collection of that size."""
    return ByteScan(vectors) if len(vectors) >= LARGE_ROWS and fast() else FullScan(vectors)


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


class ByteScan:
    """Every dot product from numbers of one byte; then the few that matter.

    A dimension has a unit of its own, so that one in which vectors reach far does not coarsen the others.
    """

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors
        reach = np.abs(vectors).max(axis=0)
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
