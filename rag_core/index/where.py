"""Which chunks a search may return: metadata equality and lists (`where`), and a file-name pattern (`file_filter`).

Masks over a collection's chunks. User patterns run on re2 only, which cannot be made to hang.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import re2
from numpy.typing import NDArray

from rag_core.errors import InputError
from rag_core.types import Chunk

Mask = NDArray[np.bool_]
OWN_FIELDS = ("id", "title", "type")
LONGEST_PATTERN = 1000
LONGEST_NAME = 4096
"""Characters of a name that a pattern sees: no system has longer paths, a foreign store may claim anything."""


def reader_key(fingerprint: str, text: str, where: Mapping[str, Any] | None, file_filter: str | None) -> str:
    """The fingerprint of one ranking: index, query and conditions."""
    asked = json.dumps([fingerprint, text, where or {}, file_filter or ""], sort_keys=True, default=str)
    return hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def allowed_rows(chunks: Sequence[Chunk], where: Mapping[str, Any] | None, file_filter: str | None) -> Mask | None:
    """True for each chunk that both conditions admit; None where there is no condition."""
    if not where and not file_filter:
        return None
    mask = np.ones(len(chunks), dtype=bool)
    for key, wanted in (where or {}).items():
        values = wanted if isinstance(wanted, list | tuple) else [wanted]  # one, or a list of them
        if any(isinstance(value, dict | list | tuple) for value in values):
            raise InputError(f"where.{key[:80]} is {str(wanted)[:80]!r}, expected a value or a list of values")
        accepted = set(map(_plain, values))
        mask &= np.fromiter((_has(chunk, key, accepted) for chunk in chunks), bool, len(chunks))
    if file_filter:
        matches = file_pattern(file_filter)
        named = [str(chunk.metadata.get("source", ""))[:LONGEST_NAME] for chunk in chunks]
        admitted = {name: matches.search(name) is not None for name in set(named)}
        mask &= np.fromiter((admitted[name] for name in named), bool, len(chunks))
    return mask


def _has(chunk: Chunk, key: str, accepted: set[str]) -> bool:
    """Whether the chunk's field is, or as a list holds, an accepted value; an absent field never is."""
    if key in OWN_FIELDS:
        return _plain(getattr(chunk, key)) in accepted
    if key not in chunk.metadata:
        return False
    value = chunk.metadata[key]
    return any(_plain(item) in accepted for item in (value if isinstance(value, list | tuple) else [value]))


def _plain(value: Any) -> str:
    """A value as text, so that `page=74` from a command line finds the number 74."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def file_pattern(pattern: str) -> Any:
    """The compiled file-name pattern, case ignored.

    Plain text stands anywhere in the name; with * ? it is a glob over the whole name; `re:` begins an RE2 expression.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise InputError(f"the file filter has {len(pattern):,} characters, expected at most {LONGEST_PATTERN:,}")
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    if pattern.startswith("re:"):
        expression = pattern[3:]
    elif "*" in pattern or "?" in pattern:
        marks = {"*": ".*", "?": "."}
        expression = "^(?s:" + "".join(marks.get(letter) or re2.escape(letter) for letter in pattern) + ")$"
    else:
        expression = re2.escape(pattern)
    try:
        return re2.compile(expression, options)
    except re2.error as error:
        first = error.args[0] if error.args else ""
        reason = (first.decode("utf-8", "replace") if isinstance(first, bytes) else str(first))[:120]
        raise InputError(f"the file filter {pattern[:80]!r} is no valid pattern ({reason})") from None
