"""Rules against a query: which conditions it lacks. A number belongs to the label it follows or directly precedes."""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from rag_core.export.carried.words import FILLERS, Token, squeezed, tokenize

JOINING_WORDS = ("and", "or")
MAX_SUMS = 4_000  # sums tried before the chunk is simply kept
_SIBILANTS = ("s", "x", "z", "ch", "sh", "o")  # what takes -es in the plural
_VOWELS = "aeiou"


class Reading:
    """A query read once: its tokens, where each word stands, the next place that is no filler."""

    def __init__(self, text: str, plurals: bool) -> None:
        self.text = squeezed(text)
        self.tokens = tokenize(text)
        self.forms = [forms(token.text) if plurals else (token.text,) for token in self.tokens]
        self.places: dict[str, list[int]] = {}
        self.solid = [len(self.tokens)] * (len(self.tokens) + 1)
        for at in range(len(self.tokens)):
            for word in self.forms[at]:
                self.places.setdefault(word, []).append(at)
        for at in range(len(self.tokens) - 1, -1, -1):
            self.solid[at] = self.solid[at + 1] if self.tokens[at].text in FILLERS else at
        self.commas = [0, *accumulate(int(token.joint == ",") for token in self.tokens)]


class Term:
    """A term in tokens."""

    def __init__(self, term: str) -> None:
        tokens = tokenize(term)
        self.texts = tuple(token.text for token in tokens)
        self.breaks = tuple(at > 0 and tokens[at].sentence != tokens[at - 1].sentence for at in range(len(tokens)))
        self.ends_in_number = tokens[-1].is_number()


@functools.lru_cache(maxsize=65536)
def _compiled(term: str) -> Term:
    return Term(term)


@functools.lru_cache(maxsize=65536)
def forms(word: str) -> tuple[str, ...]:
    """A word of letters, what it may be the regular plural of, and its regular plural."""
    if not word.isalpha():
        return (word,)
    found = [word]
    if len(word) > 2 and word.endswith("s") and not word.endswith("ss"):
        found.append(word[:-1])
    if len(word) > 3 and word.endswith("es") and word[:-2].endswith(_SIBILANTS):
        found.append(word[:-2])
    if len(word) > 4 and word.endswith("ies") and word[-4] not in _VOWELS:
        found.append(word[:-3] + "y")
    if len(word) > 1 and not word.endswith("s"):
        found.append(word + "s")
    if len(word) > 1 and word.endswith(_SIBILANTS):
        found.append(word + "es")
    if len(word) > 2 and word.endswith("y") and word[-2] not in _VOWELS:
        found.append(word[:-1] + "ies")
    return tuple(found)


def lacking(rule: Any, query: str, mode: str, plurals: bool = True) -> list[str]:
    """The conditions of a rule that the query does not satisfy, in words; none: the chunk stays."""
    read = _reading(query, plurals)
    groups, together, literal, numbers, named = rule
    wanted = [*groups, *((term,) for term in together), *(((literal,),) if literal is not None else ())]
    found = ["no word of: " + " / ".join(group) for group in wanted if not _one_of(group, read, mode)]
    found += ["no number in range for: " + _label_text(one) for one in numbers if not _in_range(one, read)]
    for own, among in named:
        other = [] if _one_of(own, read, mode) else [term for term in among if _one_of((term,), read, mode)]
        found += [f"no word of: {' / '.join(own)} (the query names {other[0]})"] if other else []
    return found


@functools.lru_cache(maxsize=256)
def _reading(query: str, plurals: bool) -> Reading:
    return Reading(query, plurals)


def _label_text(element: Any) -> str:
    groups, low, high, summed = element
    name = " + ".join(group[0] for group in groups) if summed else " / ".join(groups[0])
    if high is None:
        return f"{name} of at least {low:g}"
    if low is None:
        return f"{name} of at most {high:g}"
    return f"{name} of {low:g}" if low == high else f"{name} from {low:g} to {high:g}"


def _one_of(terms: tuple[str, ...], read: Reading, mode: str) -> bool:
    if mode == "substring":
        return any(squeezed(term) in read.text for term in terms)
    return any(next(_occurrences(_compiled(term), read), None) is not None for term in terms)


def _occurrences(term: Term, read: Reading) -> Iterator[list[int]]:
    """The token positions of every occurrence of the term, by where it begins."""
    for start in read.places.get(term.texts[0], ()):
        row = _row(term, read, start)
        if row is not None:
            yield row


def _row(term: Term, read: Reading, start: int) -> list[int] | None:
    """The positions of the term's tokens from `start` on; fillers are skipped, sentence ends are not crossed."""
    tokens, found = read.tokens, [start]
    for index in range(1, len(term.texts)):
        at = _next_place(term, index, read, found[-1] + 1)
        if at == len(tokens) or (tokens[at].sentence != tokens[found[-1]].sentence and not term.breaks[index]):
            return None
        if term.texts[index] not in read.forms[at]:
            closing = term.ends_in_number and index == len(term.texts) - 1 and tokens[at].is_number()
            places = _number_list(tokens, at) if closing else []
            at = next((place for place in places if tokens[place].text == term.texts[-1]), -1)
            if at < 0:
                return None
        found.append(at)
    return found


def _next_place(term: Term, index: int, read: Reading, at: int) -> int:
    """The first position from `at` on that is no filler, or is the filler the term itself has there."""
    if term.texts[index] not in FILLERS:
        return read.solid[at]
    places = read.places.get(term.texts[index], [])
    later = bisect_left(places, at)
    return min(places[later], read.solid[at]) if later < len(places) else read.solid[at]


def _number_list(tokens: tuple[Token, ...], at: int) -> list[int]:
    """The positions of the numbers joined by and, or, comma, slash or as a range, from the one at `at` on."""
    found = [at]
    while True:
        following = found[-1] + 1
        while following < len(tokens) and tokens[following].text in JOINING_WORDS:
            following += 1
        if following == len(tokens) or not tokens[following].is_number():
            return found
        joined = following > found[-1] + 1 or tokens[following].joint
        if not joined or tokens[following].sentence != tokens[at].sentence:
            return found
        found.append(following)


def _in_range(element: Any, read: Reading) -> bool:
    """Whether the query gives a number (or a sum of one number per label) in the closed range."""
    groups, low, high, summed = element
    sums = [0.0]
    for group in groups:
        numbers = list(dict.fromkeys(_numbers_given(group, read)))
        if summed and len(sums) * len(numbers) > MAX_SUMS:
            return True
        sums = list(dict.fromkeys(total + number for total in sums for number in numbers))
    return any((high is None or total <= high) and (low is None or total >= low) for total in sums)


def _numbers_given(labels: tuple[str, ...], read: Reading) -> list[float]:
    found = []
    for term in dict.fromkeys(labels):
        for positions in _occurrences(_compiled(term), read):
            for at in _numbers_of(positions[0], positions[-1], read):
                found.append(read.tokens[at].value or 0.0)
    return found


def _numbers_of(first: int, last: int, read: Reading) -> list[int]:
    """A following number wins, but an ordinal binds forward, and after a comma it may belong to what comes next."""
    after, before = _following(last, read), _preceding(first, read.tokens)
    if after and before and not read.tokens[before[0]].ordinal:
        return before + after if read.commas[after[0] + 1] > read.commas[last + 1] else after
    return before + after


def _following(last: int, read: Reading) -> list[int]:
    at, tokens = read.solid[last + 1], read.tokens
    if at == len(tokens) or not tokens[at].is_number() or tokens[at].sentence != tokens[last].sentence:
        return []
    return _number_list(tokens, at)


def _preceding(first: int, tokens: tuple[Token, ...]) -> list[int]:
    """The number or ordinal directly before a label, with those joined to it."""
    at = first - 1
    if at < 0 or tokens[at].value is None or tokens[at].sentence != tokens[first].sentence:
        return []
    if tokens[first].joint == ",":
        return []
    found = [at]
    while True:
        earlier = _joined_before(found[-1], tokens)
        if earlier is None:
            return found
        found.append(earlier)


def _joined_before(at: int, tokens: tuple[Token, ...]) -> int | None:
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
