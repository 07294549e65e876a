"""A model's answer → decisions by candidate number. Tolerant in form, strict in effect, and never raises.

Reads JSON in several shapes and the line format `number -> ACTION`, whichever the answer holds. Only the candidates of
the prompt can be decided, and only with the five actions; everything else in an answer is counted and has no effect.
Asking is left to asking.py, and what a decision does to the list to deciding.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from rag_core.filters.llm.answer_json import read_json
from rag_core.filters.llm.answer_lines import read_lines
from rag_core.filters.llm.reading import (
    ACTIONS,
    DEPTHS,
    DISCARD,
    KEEP,
    Decision,
    Numbers,
    Reading,
    after_action,
    counted,
    parse_action,
    visible,
)

MAX_CHARACTERS = 200_000
"""More of an answer is not read: 200 decisions with reasons are a tenth of it."""


def read_decisions(text: str, ids: Sequence[str]) -> Reading:
    """The decisions of an answer about candidates 1 … len(ids), named in it by number or by their exact id.

    An answer without any decision about a known candidate gives a Reading without decisions: it cannot be used.
    """
    text = visible(text[:MAX_CHARACTERS])
    numbers = Numbers(ids)
    best = Reading()
    for read in (read_json, read_lines):
        reading = read(text, numbers)
        if reading.decisions:
            return reading
        best = max(best, reading, key=lambda one: one.unknown_ids)
    if len(ids) == 1 and parse_action(text.strip())[0]:  # asked about one, a model may answer with the bare action
        best.take(1, text.strip(), after_action(text))
    return best


__all__ = ["ACTIONS", "DEPTHS", "DISCARD", "KEEP", "Decision", "Reading", "counted", "parse_action", "read_decisions"]
