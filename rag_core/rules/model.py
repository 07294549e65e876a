"""The query_must rule as a frozen value. It is read in parsing.py and matched against a query in match.py."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

Group = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NumberIn:
    """A number the query gives for a label, or the sum of one number per label, in a closed range.

    `labels` holds one group of terms per number: one group for `label`, all of them for `sum_of`.
    """

    labels: tuple[Group, ...]
    minimum: float | None = None
    maximum: float | None = None
    summed: bool = False

    def holds(self, number: float) -> bool:
        """Whether the number lies in the closed range."""
        low_enough = self.maximum is None or number <= self.maximum
        return low_enough and (self.minimum is None or number >= self.minimum)

    def as_mapping(self) -> dict[str, Any]:
        """The element as it stands in a file."""
        groups = [list(group) for group in self.labels]
        limits = {"min": _plain(self.minimum), "max": _plain(self.maximum)}
        start = {"sum_of": groups} if self.summed else {"label": groups[0]}
        return {**start, **{key: limit for key, limit in limits.items() if limit is not None}}


@dataclass(frozen=True, slots=True)
class WhenNamed:
    """A value asked for only where the query names some value of its kind: one of `one_of`, if it holds any of `among`.

    For words that questions often leave out ("Which dragons breathe cold?"): such a question drops none of the family.
    """

    one_of: Group
    among: Group

    def as_mapping(self) -> dict[str, Any]:
        """The element as it stands in a file."""
        return {"one_of": list(self.one_of), "among": list(self.among)}


@dataclass(frozen=True, slots=True)
class Rule:
    """What a query must hold for the chunk to be returned; every part present must be satisfied."""

    contain_one_of: tuple[Group, ...] = ()
    contain_all_of: Group = ()
    contain: str | None = None
    number_in: tuple[NumberIn, ...] = ()
    when_named: tuple[WhenNamed, ...] = ()

    def as_mapping(self) -> dict[str, Any]:
        """The rule as it stands in a file; `parse_rule` gives the same rule back."""
        found: dict[str, Any] = {
            "contain_one_of": [list(group) for group in self.contain_one_of],
            "contain_all_of": list(self.contain_all_of),
            "contain": self.contain,
            "number_in": [element.as_mapping() for element in self.number_in],
            "when_named": [element.as_mapping() for element in self.when_named],
        }
        return {key: value for key, value in found.items() if value}

    def as_json(self) -> str:
        """The rule as one line of canonical JSON: how a store without nested metadata keeps it."""
        return json.dumps(self.as_mapping(), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _plain(number: float | None) -> float | int | None:
    return int(number) if number is not None and number == int(number) else number
