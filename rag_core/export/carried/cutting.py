"""Where a ranked list ends: at its largest gap in distance, else at an offset from the nearest chunk.

Distances are compared in whole units of 1e-9: floor(x * 1e9 + 0.5).
"""

from __future__ import annotations

import math
from typing import Any

from rag_core.export.carried.words import fold, tokenize

SPECIFIC = (
    "what is", "what s", "who is", "where is", "when", "how many", "how much", "how far", "how long", "define",
)  # fmt: skip
BROAD = (
    "tell me about", "describe", "explain", "list", "what are", "which", "compare", "give me an overview",
    "everything about", "overview of",
)  # fmt: skip


def _units(value: float) -> int:
    return math.floor(value * 1e9 + 0.5)


def how_many(distances: list[float], settings: dict[str, Any], query: str) -> int:
    """How many of an ascending list of distances to keep."""
    looked = min(len(distances), int(settings["max_results"]))
    if looked == 0:
        return 0
    whole = [_units(distance) for distance in distances[:looked]]
    span = whole[-1] - whole[0]
    relative = settings["gap_policy"] == "relative"
    wanted = settings["gap_threshold"] * (_factor(query) if settings["query_specific"] else 1.0)
    threshold = math.floor(wanted * span + 0.5) if relative else _units(wanted)
    share = settings["relative_offset"]
    offset = _units(settings["distance_offset"]) if share is None else math.floor(share * span + 0.5)
    gaps = [whole[at + 1] - whole[at] for at in range(len(whole) - 1)]
    eligible = [at for at in range(1, len(gaps)) if gaps[at] >= threshold]  # the first gap never ends the list
    if not eligible or (relative and span == 0):
        ruled = sum(distance <= whole[0] + offset for distance in whole)
    elif settings["gap_policy"] == "first":
        ruled = eligible[0] + 1
    else:
        ruled = max(eligible, key=lambda at: (gaps[at], -at)) + 1
    return min(max(ruled, int(settings["min_results"])), looked)


def _factor(query: str) -> float:
    """Half the threshold for a question that asks for one thing, half as much again for one that asks for a field."""
    if any(token.value is not None for token in tokenize(query)) or any(
        mark in query for mark in '"\u201c\u00ab\u201e'
    ):
        return 0.5
    opening = " ".join("".join(one if one.isalnum() else " " for one in fold(query)).split()) + " "
    if any(opening.startswith(words + " ") for words in BROAD):
        return 1.5
    return 0.5 if any(opening.startswith(words + " ") for words in SPECIFIC) else 1.0
