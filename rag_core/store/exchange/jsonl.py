"""Labels as JSONL, the lossless format: one JSON object a line, only the newline ends a line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from rag_core.errors import InputError
from rag_core.files import lines as numbered
from rag_core.files import parse_json
from rag_core.store.exchange.line import DRAWN, LabelLine, at_line, check_line

NEEDED = ("query_id", "chunk_id", "grade")
OPTIONAL = ("annotator", "note", "query_hash", "text_hash", "at", *DRAWN)


def write_jsonl(labels: Iterable[LabelLine]) -> str:
    """One object a line; what is not known is left out, an unsure grade is null."""
    return "".join(json.dumps(_document(label), ensure_ascii=False) + "\n" for label in labels)


def _document(label: LabelLine) -> dict[str, Any]:
    known = {name: getattr(label, name) for name in OPTIONAL if getattr(label, name)}
    return {name: getattr(label, name) for name in NEEDED} | known


def read_jsonl(text: str, source: str) -> list[LabelLine]:
    """The labels; unknown or repeated keys, NaN and grades that are no whole number are a RecordError."""
    return [_read_line(line, number, source) for number, line in numbered(text)]


def _read_line(line: str, number: int, source: str) -> LabelLine:
    with at_line(source, number):
        document = parse_json(line, "the line")
        if not isinstance(document, dict):
            raise InputError(f"a {type(document).__name__}, expected an object")
        missing = [name for name in NEEDED if name not in document]
        unknown = [name[:40] for name in document if name not in NEEDED + OPTIONAL]
        if missing or unknown:
            raise InputError(f"missing {missing}, unknown {unknown[:5]}, expected {', '.join(NEEDED + OPTIONAL)}")
        return check_line(LabelLine(**document, number=number))
