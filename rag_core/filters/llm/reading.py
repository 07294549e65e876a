"""The words of an answer: the five actions, who is meant by a name, and the notes taken while an answer is read.

How an answer is laid out, as JSON or as lines, is in decisions.py and answer_lines.py.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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


def counted(readings: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """The sums of several counts by name."""
    total: dict[str, int] = {}
    for reading in readings:
        for name, count in reading.items():
            total[name] = total.get(name, 0) + count
    return total
