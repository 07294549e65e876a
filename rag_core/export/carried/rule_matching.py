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


class Reading:
    """A query read once: its tokens, where each word stands, the next place that is no filler."""

    def __init__(self, text: str) -> None:
        self.text = squeezed(text)
        self.tokens = tokenize(text)
        self.places: dict[str, list[int]] = {}
        self.solid = [len(self.tokens)] * (len(self.tokens) + 1)
        for at in range(len(self.tokens)):
            self.places.setdefault(self.tokens[at].text, []).append(at)
        for at in range(len(self.tokens) - 1, -1, -1):
            self.solid[at] = self.solid[at + 1] if self.tokens[at].text in FILLERS else at
        self.commas = [0, *accumulate(int(token.joint == ",") for token in self.tokens)]


class Term:
    """A term in tokens; the word at `plural_at` may be plural in the query."""

    def __init__(self, texts: tuple[str, ...], breaks: tuple[bool, ...], number: bool, plural_at: int) -> None:
        self.texts, self.breaks, self.ends_in_number, self.plural_at = texts, breaks, number, plural_at

    def starts(self) -> tuple[str, ...]:
        """The words an occurrence may begin with."""
        return _plurals(self.texts[0]) if self.plural_at == 0 else self.texts[:1]

    def fits(self, index: int, text: str) -> bool:
        """Whether a word of the query is the term's word at `index`."""
        return text == self.texts[index] or (index == self.plural_at and text in _plurals(self.texts[index]))


@functools.lru_cache(maxsize=65536)
def _compiled(term: str, label: bool) -> Term:
    """A term "armor class 6" also stands in "armor classes 3 and 6"; a label's last word may be plural."""
    tokens = tokenize(term)
    breaks = tuple(at > 0 and tokens[at].sentence != tokens[at - 1].sentence for at in range(len(tokens)))
    texts = tuple(token.text for token in tokens)
    number = not label and tokens[-1].is_number()
    plural_at = len(tokens) - 1 if label else len(tokens) - 2 if number else -1
    return Term(texts, breaks, number, plural_at)


@functools.lru_cache(maxsize=16384)
def _plurals(word: str) -> tuple[str, ...]:
    if len(word) < 2:
        return (word,)
    return (word, word + "s", word + "es") + ((word[:-1] + "ies",) if word.endswith("y") else ())


def lacking(rule: Any, query: str, mode: str) -> list[str]:
    """The conditions of a rule that the query does not satisfy, in words; none: the chunk stays."""
    read = _reading(query)
    groups, together, literal, numbers, named = rule
    wanted = [*groups, *((term,) for term in together), *(((literal,),) if literal is not None else ())]
    found = ["no word of: " + " / ".join(group) for group in wanted if not _one_of(group, read, mode)]
    found += ["no number in range for: " + _label_text(one) for one in numbers if not _in_range(one, read)]
    for own, among in named:
        other = [] if _one_of(own, read, mode) else [term for term in among if _one_of((term,), read, mode)]
        found += [f"no word of: {' / '.join(own)} (the query names {other[0]})"] if other else []
    return found


@functools.lru_cache(maxsize=256)
def _reading(query: str) -> Reading:
    return Reading(query)


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
    return any(next(_occurrences(_compiled(term, False), read), None) is not None for term in terms)


def _occurrences(term: Term, read: Reading) -> Iterator[list[int]]:
    """The token positions of every occurrence of the term, by where it begins."""
    for word in term.starts():
        for start in read.places.get(word, ()):
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
        if not term.fits(index, tokens[at].text):
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
        for positions in _occurrences(_compiled(term, True), read):
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
