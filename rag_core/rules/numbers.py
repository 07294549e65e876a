"""Numbers that a query gives for a label: "intelligence of 12", "7th level", and sums of one number per label.

A number belongs to the label it follows (fillers allowed) or directly precedes; what stays ambiguous counts, so that a
chunk is rather kept than dropped. Whether the number decides a rule is in match.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rag_core.rules.model import Group, NumberIn
from rag_core.rules.reading import (
    JOINING_WORDS,
    Reading,
    Spans,
    compiled,
    is_number,
    number_list,
    occurrences,
    spans_of,
)
from rag_core.text import Token

MAX_SUMS = 4_000  # sums tried before the chunk is simply kept


class Given(NamedTuple):
    """A number the query gives: its value, the label's term it was read from (or several), and the spans of both."""

    value: float
    term: str
    spans: Spans


def numbers_given(labels: Group, query: Reading) -> Sequence[Given]:
    """Every number the query gives for one of the labels, in the order of labels and text; found once per query."""
    known = query.remembered.get(labels)
    if not isinstance(known, list):
        known = query.remembered[labels] = _numbers_given(labels, query)
    return known


def _numbers_given(labels: Group, query: Reading) -> list[Given]:
    found: list[Given] = []
    for term in dict.fromkeys(labels):
        for positions in occurrences(compiled(term), query):
            for at in _numbers_of(positions[0], positions[-1], query):
                token = query.tokens[at]
                value = token.value if token.value is not None else 0.0
                spans = (*spans_of(positions, query.tokens), (token.start, token.end))
                found.append(Given(value, term, tuple(sorted(spans))))
    return found


def _numbers_of(first: int, last: int, query: Reading) -> list[int]:
    """The positions of the numbers of a label that stands at first … last."""
    after = _following(last, query)
    before = _preceding(first, query.tokens)
    # A following number wins, but an ordinal always binds forward, and after a comma it may belong to what comes next
    # ("12 intelligence, 14 wisdom"): then both count.
    if after and before and not query.tokens[before[0]].ordinal:
        across_comma = query.commas[after[0] + 1] > query.commas[last + 1]
        return before + after if across_comma else after
    return before + after


def _following(last: int, query: Reading) -> list[int]:
    """The number list after a label, fillers skipped."""
    at = query.solid[last + 1]
    tokens = query.tokens
    if at == len(tokens) or not is_number(tokens[at]) or tokens[at].sentence != tokens[last].sentence:
        return []
    return number_list(tokens, at)


def _preceding(first: int, tokens: Sequence[Token]) -> list[int]:
    """The number or ordinal directly before a label, with those joined to it by and, or, slash or as a range."""
    at = first - 1
    if at < 0 or tokens[at].value is None or tokens[at].sentence != tokens[first].sentence:
        return []
    if tokens[first].joint == ",":
        return []
    found = [at]
    while (earlier := _joined_before(found[-1], tokens)) is not None:
        found.append(earlier)
    return found


def _joined_before(at: int, tokens: Sequence[Token]) -> int | None:
    """The number of the same kind that is joined to the one at `at` from before; a bare comma joins ordinals only."""
    place = at - 1
    while place >= 0 and tokens[place].text in JOINING_WORDS:
        place -= 1
    if place < 0 or tokens[place].sentence != tokens[at].sentence:
        return None
    if tokens[place].value is None or tokens[place].ordinal != tokens[at].ordinal:
        return None
    mark = tokens[at].joint
    joined = place < at - 1 or (mark and (mark != "," or tokens[at].ordinal))
    return place if joined else None


def in_range(element: NumberIn, query: Reading) -> tuple[Given | None, tuple[float, ...]]:
    """The number (or sum) that lies in the range, or None; and the numbers the query gave, in order."""
    given = [numbers_given(labels, query) for labels in element.labels]
    if not element.summed:
        values = tuple(number.value for number in given[0])
        return next((number for number in given[0] if element.holds(number.value)), None), values
    return _sum_in_range(element, given)


def _sum_in_range(element: NumberIn, given: Sequence[Sequence[Given]]) -> tuple[Given | None, tuple[float, ...]]:
    """One number per label whose sum lies in the range; any combination may."""
    sums: dict[float, Given] = {0.0: Given(0.0, "", ())}
    for numbers in given:
        different = {number.value: number for number in reversed(numbers)}
        if len(sums) * len(different) > MAX_SUMS:
            return _added(next(iter(sums.values())), numbers[0]), tuple(sorted(sums))
        pairs = [(total, number) for total in sums.values() for number in different.values()]
        sums = {total.value + number.value: _added(total, number) for total, number in reversed(pairs)}
    return next((total for total in sums.values() if element.holds(total.value)), None), tuple(sorted(sums))


def _added(total: Given, number: Given) -> Given:
    term = f"{total.term} + {number.term}" if total.term else number.term
    return Given(total.value + number.value, term, total.spans + number.spans)
