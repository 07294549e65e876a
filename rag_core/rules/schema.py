"""The rule as JSON Schema (draft 2020-12), for editors and for the structured output of a language model.

The schema says what a rule looks like; `parse_rule` in model.py is what decides, and also refuses what a schema cannot
express (a term without a word or number in it, min above max).
"""

from __future__ import annotations

from typing import Any


def rule_schema() -> dict[str, Any]:
    """The JSON Schema of one query_must rule."""
    term = {"type": ["string", "number"], "minLength": 1, "description": "a word, a phrase or a number, read as text"}
    group = {"type": "array", "items": {"$ref": "#/$defs/term"}, "minItems": 1}
    limits = {"min": {"type": "number"}, "max": {"type": "number"}}
    label: dict[str, Any] = {
        "type": "object",
        "properties": {"label": {"$ref": "#/$defs/group"}, **limits},
        "required": ["label"],
    }
    groups = {"type": "array", "items": {"$ref": "#/$defs/group"}, "minItems": 1}
    summed: dict[str, Any] = {"type": "object", "properties": {"sum_of": groups, **limits}, "required": ["sum_of"]}
    named = {
        "type": "object",
        "properties": {"one_of": {"$ref": "#/$defs/group"}, "among": {"$ref": "#/$defs/group"}},
        "required": ["one_of", "among"],
        "additionalProperties": False,
    }
    for element in (label, summed):
        element.update(additionalProperties=False, anyOf=[{"required": ["min"]}, {"required": ["max"]}])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "query_must",
        "description": "what a query must hold for the chunk to be returned; every key present must be satisfied",
        "type": "object",
        "minProperties": 1,
        "additionalProperties": False,
        "properties": {
            "contain_one_of": {**groups, "description": "at least one term of every group"},
            "contain_all_of": {"$ref": "#/$defs/group", "description": "every term"},
            "contain": {"$ref": "#/$defs/term"},
            "number_in": {
                "type": "array",
                "items": {"$ref": "#/$defs/number"},
                "minItems": 1,
                "description": "a number the query gives for a label (or a sum, one number per label) in a range",
            },
            "when_named": {
                "type": "array",
                "items": named,
                "minItems": 1,
                "description": "one of one_of, but only where the query holds any of among",
            },
        },
        "$defs": {"term": term, "group": group, "number": {"oneOf": [label, summed]}},
    }
