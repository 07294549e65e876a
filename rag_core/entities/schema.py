"""The JSON Schema (2020-12) of a structure file, for editors and other programs.

It says what shapes are allowed; what names must refer to (aliases to entities, synonyms to names) only structure.py
checks.
"""

from __future__ import annotations

from typing import Any

_NAME = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": r"\S"}
_NAMES = {"type": "array", "items": _NAME}
_ITEM = {
    "anyOf": [
        _NAME,
        {"type": "object", "required": ["name"], "properties": {"name": _NAME, "text": {"type": "string"}}},
    ],
    "description": "a name, or a mapping with name and whatever else the prompt should say about it",
}
_ITEMS = {"type": "array", "items": _ITEM}

STRUCTURE_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Entity structure",
    "type": "object",
    "additionalProperties": False,
    "required": ["entities"],
    "properties": {
        "name": {"type": "string"},
        "version": {"const": 1},
        "description": {"type": "string"},
        "role_words": {**_NAMES, "description": "words that say what a member does, not whose it is"},
        "stop_words": {**_NAMES, "description": "words that tell no item from another"},
        "aliases": {
            "type": "object",
            "description": "another name for one or more entities",
            "additionalProperties": {"anyOf": [_NAME, {**_NAMES, "minItems": 1}]},
        },
        "synonyms": {
            "type": "object",
            "description": "a word that stands for an alias, an entity or an item",
            "additionalProperties": _NAME,
        },
        "entities": {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "required": ["members"],
                "properties": {
                    "members": {**_ITEMS, "minItems": 1},
                    "abilities": {"anyOf": [_ITEMS, {"type": "object", "additionalProperties": _ITEMS}]},
                    "aliases": _NAMES,
                    "initials": _NAMES,
                    "text": {"type": "string"},
                },
            },
        },
    },
}


def structure_schema() -> dict[str, Any]:
    """The JSON Schema of a structure file."""
    return STRUCTURE_SCHEMA
