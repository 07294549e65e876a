"""Conditions on metadata as a person types them: `type=spell level=3 "title=Magic Missile"`, and back.

Pairs stand apart by spaces or commas; quotes hold a value with spaces together; a field given twice admits both values.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from rag_core.errors import InputError

EXPECTED = 'expected field=value, such as type=spell or "title=Magic Missile"'


def read_where(text: str) -> dict[str, Any]:
    """Field → value, or list of values where the field stands more than once. An InputError quotes what is no pair."""
    found: dict[str, list[str]] = {}
    for pair in _words(text):
        field, sign, value = pair.partition("=")
        if not (field and sign and value):
            raise InputError(f"the condition holds {pair[:80]!r}, {EXPECTED}")
        found.setdefault(field, []).append(value)
    return {field: values[0] if len(values) == 1 else values for field, values in found.items()}


def _words(text: str) -> list[str]:
    reader = shlex.shlex(text, posix=True, punctuation_chars=False)
    reader.whitespace, reader.whitespace_split, reader.commenters = ", \t\r\n", True, ""
    try:
        return list(reader)
    except ValueError:
        raise InputError(f"the condition {text[:80]!r} has a quote that is not closed, {EXPECTED}") from None


def write_where(where: Mapping[str, Any]) -> str:
    """The text that reads as these conditions. An InputError for a value that is no text, number or list of them."""
    pairs = []
    for field, wanted in where.items():
        for value in wanted if isinstance(wanted, list | tuple) else [wanted]:
            if isinstance(value, Mapping | list | tuple) or value == "" or not field or "=" in field:
                raise InputError(f"where.{field[:80]} is {str(wanted)[:80]!r}, {EXPECTED}")
            pairs.append(f"{field}={value if isinstance(value, str) else json.dumps(value)}")
    return " ".join(map(_quoted, pairs))


def _quoted(pair: str) -> str:
    plain = all(letter.isalnum() or letter in "=._-/:" for letter in pair)
    return pair if plain else "'" + pair.replace("'", "'\"'\"'") + "'"
