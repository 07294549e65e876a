"""A record of a vector store as a chunk: what its flat metadata holds as text is read as what it is.

Standard library and ours alone: an exported file reads a service's own store with it (see export/assemble.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from rag_core.errors import WinnowError
from rag_core.rules.rule import parse_text
from rag_core.types import Chunk


def chunk_of_record(identity: str, text: str, metadata: Mapping[str, Any], fields: Mapping[str, str]) -> Chunk:
    """A record as a chunk: title, type, rule and references from the metadata; the rest stays there, the file too.

    `fields` says which key of the metadata is what.
    """
    keys = {field: key for field, key in fields.items() if field != "file" and key in metadata}
    said = {field: metadata[key] for field, key in keys.items()}
    rest = {key: value for key, value in metadata.items() if key not in keys.values()}
    rule = parsed_value(said.get("query_must"))
    title, type_ = (_clean(str(said.get(field, ""))) for field in ("title", "type"))
    return Chunk(_clean(identity), title, _clean(text), type_, rule or None, references_of(said.get("ref_ids")), rest)


def references_of(value: Any) -> tuple[str, ...]:
    """The ids a chunk refers to: a list, its text as JSON or as Python writes it, or ids between commas."""
    parsed = parsed_value(value)
    if isinstance(parsed, str) and parsed.startswith("["):
        with suppress(WinnowError):
            parsed = parse_text(parsed, "the references")
    if isinstance(parsed, str):
        parsed = re.split(r"[,;]", parsed)
    listed = parsed if isinstance(parsed, list | tuple) else [] if parsed is None else [parsed]
    return tuple(_clean(said) for one in listed if (said := str(one).strip()))


def parsed_value(value: Any) -> Any:
    """What a value of the metadata is: a rule or a list stands there as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
