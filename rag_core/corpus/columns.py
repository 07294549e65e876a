"""Which column of a table, or key of a JSON line, holds a chunk's text, title, id …: our field → their name.

Without a mapping the names are ours. What the values must be is checked where chunks are made (jsonl.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rag_core.errors import InputError

FIELDS = ("text", "title", "id", "type", "ref_ids", "query_must")
"""The fields of a chunk that a column may be mapped to; every other column becomes metadata."""

Columns = Mapping[str, str]
"""Field → the name of the column that holds it."""

_ALSO_KNOWN_AS = {
    "text": ("text", "content", "body", "passage", "page_content", "document", "chunk"),
    "title": ("title", "name", "heading", "header", "subject"),
    "id": ("id", "_id", "doc_id", "docid", "chunk_id", "uuid"),
    "type": ("type", "kind", "category"),
    "ref_ids": ("ref_ids",),
    "query_must": ("query_must",),
}


def check_columns(columns: Columns) -> None:
    """Nothing, or an InputError where a mapping names an unknown field or one column for two fields."""
    seen: dict[str, str] = {}
    for field, column in columns.items():
        if field not in FIELDS:
            raise InputError(f"the mapping has the field {field[:40]!r}, expected one of {', '.join(FIELDS)}")
        if column in seen:
            raise InputError(
                f"the column {column[:80]!r} is mapped to {seen[column]} and {field}, expected one of them"
            )
        seen[column] = field


def check_present(columns: Columns, names: Sequence[str], where: str) -> None:
    """Nothing, or an InputError where a table lacks a mapped column or has none for the text."""
    shown = [" ".join(name.split())[:40] for name in names[:20]]  # a name may hold line breaks; an error is one line
    listed = ", ".join(shown)
    for field, column in columns.items():
        if column not in names:
            raise InputError(f"{where} has no column {column[:80]!r} for {field}, expected one of {listed}")
    if "text" not in columns and "text" not in names:
        raise InputError(f"{where} has no column text but {listed}; say which holds it, for example text={shown[0]}")


def guess_columns(names: Iterable[str]) -> dict[str, str]:
    """A mapping to propose for these names: for each field the first column that is usually called so."""
    by_name = {name.strip().casefold(): name for name in names}
    found = {
        field: next((by_name[known] for known in usual if known in by_name), None)
        for field, usual in _ALSO_KNOWN_AS.items()
    }
    return {field: column for field, column in found.items() if column is not None}


def mapped(record: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
    """The record with the mapped columns under our names; what stood under such a name before becomes metadata."""
    taken = {column for column in columns.values() if column in record}
    rest = {name: value for name, value in record.items() if name not in taken}
    ours = {*columns, *(["_id"] if "id" in columns else [])}
    displaced = {name: rest.pop(name) for name in list(rest) if name in ours}
    found = rest | {field: record[column] for field, column in columns.items() if column in record}
    if displaced:
        nested = found.get("metadata")
        found["metadata"] = {**(nested if isinstance(nested, Mapping) else {}), **displaced}
    return found
