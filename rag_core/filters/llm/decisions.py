"""A model's answer → decisions by candidate number. Tolerant in form, strict in effect, and never raises.

Reads JSON in several shapes and the line format `number -> ACTION`, whichever the answer holds. Only the candidates of
the prompt can be decided, and only with the five actions; everything else in an answer is counted and has no effect.
Asking is left to asking.py, and what a decision does to the list to deciding.py.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rag_core.llm.answer import probability
from rag_core.llm.prompt import json_values

KEEP, DISCARD = "KEEP", "DISCARD"
DEPTHS = (1, 3, 5)
ACTIONS = (KEEP, *(f"EXPAND_{depth}" for depth in DEPTHS), DISCARD)

MAX_REASON = 300
MAX_LINE = 4_000


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to become of one candidate: one of the five actions, and the model's reason where it gave one."""

    action: str
    reason: str = ""
    certainty: float | None = None  # how probable the model found the action, where its server says so

    @property
    def depth(self) -> int:
        """How many steps of references are to be followed; 0 for KEEP and DISCARD."""
        return int(self.action.removeprefix("EXPAND_")) if self.action.startswith("EXPAND_") else 0


@dataclass(slots=True)
class AnswerReading:
    """What an answer says: decisions by 1-based candidate number, and counts of what had no effect."""

    decisions: dict[int, Decision] = field(default_factory=dict)
    unknown_ids: int = 0
    repeated_ids: int = 0
    unknown_actions: int = 0  # the candidate is kept unexpanded
    clamped_depths: int = 0  # EXPAND_2, EXPAND_0 and the like

    def take(self, number: int | None, action: str, reason: str = "") -> None:
        """Note one decision; the first for a candidate stands, an unknown candidate has no effect."""
        if number is None:
            self.unknown_ids += 1
        elif number in self.decisions:
            self.repeated_ids += 1
        else:
            known, exact = parse_action(action)
            self.unknown_actions += known is None
            self.clamped_depths += not exact
            self.decisions[number] = Decision(known or KEEP, _one_line(reason)[:MAX_REASON])

    @property
    def ignored(self) -> dict[str, int]:
        """The counts of what had no effect or another one than was said, by name."""
        return {
            "unknown_ids": self.unknown_ids,
            "repeated_ids": self.repeated_ids,
            "unknown_actions": self.unknown_actions,
            "clamped_depths": self.clamped_depths,
        }


_ACTION = re.compile(
    r"(KEEP|DISCARD|EXPAND(?:\s*_\s*(?P<signed>-?[0-9]+)|[\s\-]*(?P<plain>[0-9]+)|(?![A-Z0-9])))(?![A-Z0-9])"
)
_DECORATION = " \t*_`'\"“”‘’()[]<>{}.:,#-=>→"


def parse_action(text: str) -> tuple[str | None, bool]:
    """The action a text begins with, or None; and whether it is one of the five as it stands.

    A depth is lowered to the nearest allowed one, 0 and negative ones to KEEP, a missing one counts as 1.
    """
    plain = unicodedata.normalize("NFKC", text[:80]).lstrip(_DECORATION).upper()
    found = _ACTION.match(plain)
    if found is None:
        return None, True
    if not found[1].startswith("EXPAND"):
        return found[1], True
    digits = found["signed"] or found["plain"]
    depth = 1 if digits is None else int(digits[:4])  # four characters say whether it is over 5
    allowed = max((step for step in DEPTHS if step <= depth), default=0)
    return (f"EXPAND_{allowed}" if allowed else KEEP), digits is not None and depth in DEPTHS


class Numbers:
    """Who is meant: `find` gives the candidate number of a name in an answer, None for nobody."""

    def __init__(self, ids: Sequence[str]) -> None:
        self._count = len(ids)
        self._by_id: dict[str, int] = {}
        self.only = 1 if len(ids) == 1 else None
        for number, name in enumerate(ids, 1):
            self._by_id.setdefault(visible(name).strip(), number)

    def find(self, name: Any) -> int | None:
        """By number where the name is one of 1 … n, else by exact id, else without a bullet or numbering in front."""
        if isinstance(name, bool) or not isinstance(name, int | float | str):
            return None
        if isinstance(name, int | float):
            return int(name) if 1 <= name <= self._count and name == int(name) else None
        stripped = name.strip()[:MAX_LINE]
        tried = [stripped, stripped.strip("*_`'\"“”‘’<>()[] \t")]
        tried += [_BULLET.sub("", form, count=1).strip("*_`'\"“”‘’<>()[] \t") for form in tried[:2]]
        return next((number for form in tried if (number := self._exact(form)) is not None), None)

    def _exact(self, form: str) -> int | None:
        spelled = _NUMBER.fullmatch(form)
        if spelled and 1 <= int(spelled[1]) <= self._count:
            return int(spelled[1])
        return self._by_id.get(form)


_BULLET = re.compile(r"^(?:[-*•·+>]+\s+|\(?[0-9]{1,4}[.)]\s+)")
_NUMBER = re.compile(r"(?:(?:candidate|chunk|number|no|id|item)?[\s.:_#]*)\[?([0-9]{1,6})\]?[.):]?", re.IGNORECASE)
_HIDDEN = dict.fromkeys(
    (
        *(code for code in range(0x20) if code not in (0x09, 0x0A)),
        *(0x7F, 0xAD, 0xFEFF),
        *range(0x200B, 0x2010),
        *range(0x202A, 0x202F),
        *range(0x2060, 0x2070),
    )
)


def visible(text: str) -> str:
    """The text without control characters, marks of direction and characters of no width."""
    return text.translate(_HIDDEN)


def _one_line(text: str) -> str:
    return " ".join(text[: 4 * MAX_REASON].split())


def after_action(right: str) -> str:
    """What follows the action in a text: the model's reason."""
    words = right.strip().split(None, 1)
    return words[1].strip(" -–—:;()*_`|") if len(words) > 1 else ""


# Lines

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


# JSON

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


def read_json(text: str, numbers: Numbers) -> AnswerReading:
    """Decisions of the first JSON value that holds some; of a cut one, those of its complete objects."""
    empty = AnswerReading()
    for value in json_values(text, "[{", _Pairs):
        reading = AnswerReading()
        _take_value(value, numbers, reading)
        if reading.decisions:
            return reading
        empty = max(empty, reading, key=lambda one: one.unknown_ids)
    return empty


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


_WRITTEN = re.compile(r"\b(?:KEEP|DISCARD|EXPAND_[0-9]+)\b")


def with_certainty(reading: AnswerReading, text: str, odds: Sequence[tuple[int, float]]) -> AnswerReading:
    """The decisions with how probable the model found each; as they are where its answer has other words than these."""
    places = [match.span() for match in _WRITTEN.finditer(text)] if odds else []
    if len(places) == len(reading.decisions):
        for (number, decision), place in zip(list(reading.decisions.items()), places, strict=True):
            reading.decisions[number] = replace(decision, certainty=probability(odds, *place))
    return reading
