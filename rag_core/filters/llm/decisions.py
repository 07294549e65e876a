"""A model's answer → decisions by candidate number. Tolerant in form, strict in effect, and never raises.

Reads JSON in several shapes and the line format `number -> ACTION`, whichever the answer holds. Only the candidates of
the prompt can be decided, and only with the five actions; everything else in an answer is counted and has no effect.
Asking is left to asking.py, and what a decision does to the list to deciding.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from rag_core.filters.llm.answer_lines import read_lines, take_line
from rag_core.filters.llm.reading import (
    ACTIONS,
    DEPTHS,
    DISCARD,
    KEEP,
    AnswerReading,
    Decision,
    Numbers,
    after_action,
    counted,
    parse_action,
    visible,
)

_MAX_STARTS = 20  # places where JSON is looked for
_LISTS = ("decisions", "results", "candidates", "chunks", "answers", "verdicts")
_NAMES = ("id", "number", "chunk_id", "chunk", "candidate", "index", "n")
_ACTION_KEYS = ("action", "decision", "verdict", "label")
_REASONS = ("reason", "why", "explanation", "rationale")


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as its pairs in order: a key that stands twice is seen twice."""

    def first(self, names: Sequence[str]) -> Any:
        """The value of the first of `names` the object has, its first occurrence."""
        for name in names:
            for key, value in self:
                if key.strip().lower() == name:
                    return value
        return None


_DECODER = json.JSONDecoder(object_pairs_hook=_Pairs, parse_constant=lambda name: None)


def read_json(text: str, numbers: Numbers) -> AnswerReading:
    """Decisions of the first JSON value that holds some; of a cut one, those of its complete objects."""
    empty = AnswerReading()
    for value in _values(text):
        reading = AnswerReading()
        _take_value(value, numbers, reading)
        if reading.decisions:
            return reading
        empty = max(empty, reading, key=lambda one: one.unknown_ids)
    return empty


def _values(text: str) -> Iterator[Any]:
    """Every JSON object or list in the text, then, taken together, the innermost objects that are complete."""
    at, tries = 0, 0
    while tries < _MAX_STARTS and (found := _OPENING.search(text, at)) is not None:
        tries += 1
        try:
            value, at = _DECODER.raw_decode(text, found.start())
            yield value
        except RecursionError:
            return
        except ValueError:
            at = found.start() + 1
            if tries == 1:
                yield list(_complete_objects(text[at:]))


_OPENING = re.compile(r"[\[{]")
_OBJECT = re.compile(r"\{[^{}]{0,2000}\}")


def _complete_objects(text: str) -> Iterator[Any]:
    for found in _OBJECT.finditer(text):
        try:
            yield _DECODER.decode(found.group())
        except (ValueError, RecursionError):
            continue


def _take_value(value: Any, numbers: Numbers, reading: AnswerReading) -> None:
    """Note the decisions of one JSON value: an object around a list, a list, an object per candidate, or a mapping."""
    if isinstance(value, _Pairs):
        inner = value.first(_LISTS)
        if inner is not None:
            _take_value(inner, numbers, reading)
        elif value.first(_ACTION_KEYS) is not None:
            _take_object(value, numbers, reading)
        else:
            for name, held in value:
                _take_named(name, held, numbers, reading)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, _Pairs):
                _take_value(item, numbers, reading)
            elif isinstance(item, str):
                take_line(item, numbers, reading)


def _take_object(value: _Pairs, numbers: Numbers, reading: AnswerReading) -> None:
    reason = value.first(_REASONS)
    name = value.first(_NAMES)
    number = numbers.only if name is None else numbers.find(name)
    reading.take(number, _text(value.first(_ACTION_KEYS)), reason if isinstance(reason, str) else "")


def _take_named(name: str, held: Any, numbers: Numbers, reading: AnswerReading) -> None:
    """An entry of `{"1": "KEEP"}` or `{"1": {"action": …}}`; an entry about nobody without an action is prose."""
    number = numbers.find(name)
    if isinstance(held, _Pairs):
        reason = held.first(_REASONS)
        reading.take(number, _text(held.first(_ACTION_KEYS)), reason if isinstance(reason, str) else "")
    elif isinstance(held, str) and (number is not None or parse_action(held)[0]):
        reading.take(number, held)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


MAX_CHARACTERS = 200_000
"""More of an answer is not read: 200 decisions with reasons are a tenth of it."""


def read_decisions(text: str, ids: Sequence[str]) -> AnswerReading:
    """The decisions of an answer about candidates 1 … len(ids), named in it by number or by their exact id.

    An answer without any decision about a known candidate gives a Reading without decisions: it cannot be used.
    """
    text = visible(text[:MAX_CHARACTERS])
    numbers = Numbers(ids)
    best = AnswerReading()
    for read in (read_json, read_lines):
        reading = read(text, numbers)
        if reading.decisions:
            return reading
        best = max(best, reading, key=lambda one: one.unknown_ids)
    if len(ids) == 1 and parse_action(text.strip())[0]:  # asked about one, a model may answer with the bare action
        best.take(1, text.strip(), after_action(text))
    return best


__all__ = [
    "ACTIONS",
    "DEPTHS",
    "DISCARD",
    "KEEP",
    "Decision",
    "AnswerReading",
    "counted",
    "parse_action",
    "read_decisions",
]
