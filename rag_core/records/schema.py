"""The JSON Schema of a recorded result list, version 1, and the keys that are not metadata."""

from __future__ import annotations

from typing import Any

from rag_core.types import RANKS, SCORES, Metric, Order

VERSION = 1
QUERY_KEYS = {"version", "id", "query", "candidates", "metric", "order", "relevant_total", "labels", "tags"}
CANDIDATE_KEYS = {"id", "title", "text", "type", "query_must", "ref_ids", "relevant", RANKS, *SCORES}

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Recorded result list, one line of a JSONL file, version 1",
    "type": "object",
    "required": ["query", "candidates"],
    "properties": {
        "version": {"const": VERSION},
        "id": {"type": "string", "minLength": 1, "description": "absent: q{line}"},
        "query": {"type": "string", "pattern": r"\S"},
        "metric": {"enum": [None, *(str(metric) for metric in Metric)], "description": "absent or null: unknown"},
        "order": {"enum": [str(order) for order in Order], "description": "distance (default) is checked"},
        "relevant_total": {"type": ["integer", "null"], "minimum": 0},
        "tags": {"type": "array", "items": {"type": "string"}},
        "labels": {
            "type": "object",
            "additionalProperties": {"type": "integer", "minimum": 0},
            "description": "grades of judged chunks that are not among the candidates: id → grade",
        },
        "candidates": {
            "type": "array",
            "items": {
                "type": "object",
                "anyOf": [{"required": [score]} for score in SCORES],
                "properties": {
                    "id": {"type": "string", "minLength": 1, "description": "absent: {query id}#{rank}"},
                    "title": {"type": ["string", "null"]},
                    "text": {"type": ["string", "null"]},
                    "type": {"type": ["string", "null"]},
                    "relevant": {"type": ["integer", "null"], "minimum": 0, "description": "grade; null: unjudged"},
                    "ref_ids": {"type": "array", "items": {"type": "string"}},
                    "query_must": {"description": "a rule; one that cannot be read keeps its chunk with a warning"},
                    **{score: {"type": "number"} for score in SCORES},
                    RANKS: {
                        "type": ["object", "null"],
                        "additionalProperties": {"type": "integer", "minimum": 1},
                        "description": "of a fused hit, its rank in each ranking that held it: dense, lexical",
                    },
                },
            },
        },
    },
}
