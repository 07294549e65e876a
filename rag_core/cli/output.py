"""How commands print: one JSON document with full precision, never NaN; text goes through typer.echo."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from typing import Any


def emit(document: Mapping[str, Any]) -> None:
    """Print one JSON document on stdout: full precision, NaN and infinities as null, with a version."""
    text = json.dumps(plain({"version": 1, **document}), ensure_ascii=False, allow_nan=False)
    sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
    sys.stdout.flush()


def plain(value: Any) -> Any:
    """The value in JSON's own types: unscored floats become None, mappings and sequences are walked."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if hasattr(value, "item") and not isinstance(value, str | bytes):
        return plain(value.item())  # a NumPy scalar
    return value if isinstance(value, str | int | bool | type(None)) else str(value)
