"""Decisions out of lines `number -> ACTION`, with bullets, emphasis, other arrows or prose around them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_core.filters.llm.reading import MAX_LINE, AnswerReading, Numbers, after_action, parse_action

_MAX_ARROWS = 20  # arrows looked at in one line
_ARROW = re.compile(r"-+>|→|=+>|⇒|➔|➜")
_SEPARATOR = re.compile(r"\s[-–—]\s|[:=|\t]")


def read_lines(text: str, numbers: Numbers) -> AnswerReading:
    """Decisions of every line that names a candidate and an action."""
    reading = AnswerReading()
    for line in text.split("\n"):
        take_line(line[:MAX_LINE], numbers, reading)
    return reading


def take_line(line: str, numbers: Numbers, reading: AnswerReading) -> None:
    """Note the decision of one line; a line that names neither a candidate nor an action is prose."""
    arrows = list(_first(_ARROW.finditer(line), _MAX_ARROWS))
    parted = [(line[: arrow.start()], line[arrow.end() :]) for arrow in arrows]
    for left, right in reversed(parted):  # an id may itself hold an arrow: the longest name that is known
        if parse_action(right)[0] and numbers.find(left) is not None:
            reading.take(numbers.find(left), right, after_action(right))
            return
    for left, right in parted:
        number = numbers.find(left)
        if number is not None or parse_action(right)[0]:
            reading.take(number, right, after_action(right))
            return
    if not parted:
        _take_separated(line, numbers, reading)


def _take_separated(line: str, numbers: Numbers, reading: AnswerReading) -> None:
    """`3: KEEP` and `3 - KEEP`, where the candidate and the action are both known."""
    for mark in _first(_SEPARATOR.finditer(line), 3):
        left, right = line[: mark.start()], line[mark.end() :]
        if numbers.find(left) is not None and parse_action(right)[0]:
            reading.take(numbers.find(left), right, after_action(right))
            return


def _first(found: Iterator[re.Match[str]], count: int) -> Iterator[re.Match[str]]:
    for _, match in zip(range(count), found, strict=False):
        yield match
