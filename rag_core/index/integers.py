"""Products of small whole numbers, a row with a matrix, exactly: what NumPy has no fast way for, onnxruntime has.

One byte per number is a quarter of what a float32 product reads, and reading is what takes the time. What the numbers
stand for is the business of scan.py.
"""

from __future__ import annotations

import platform
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_core.index.embed import onnx_runtime

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
