"""A query read once for all rules, and where a term stands in it: in token mode and in substring mode.

Both modes answer with spans in the original query, ready to be highlighted. Which terms a rule needs is in match.py,
numbers that belong to a label are in numbers.py.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

from rag_core.text import FILLERS, Token, tokenize

Span = tuple[int, int]
Spans = tuple[Span, ...]

JOINING_WORDS = ("and", "or")
_WHITE_SPACE = re.compile(r"\s+")
_SIBILANTS = ("s", "x", "z", "ch", "sh", "o")  # what takes -es in the plural
_VOWELS = "aeiou"


def is_number(token: Token) -> bool:
    """Whether the token is a plain number (an ordinal is not)."""
    return token.value is not None and not token.ordinal


@dataclass(frozen=True)
class Term:
    """A term of a rule, tokenised."""

    texts: tuple[str, ...]
    breaks: tuple[bool, ...]  # whether a sentence ends before each token inside the term itself
    ends_in_number: bool

    @cached_property
    def needs(self) -> frozenset[str]:
        """The words every occurrence holds."""
        return frozenset(self.texts)


@lru_cache(maxsize=65536)
def compiled(term: str) -> Term:
    """The term in tokens."""
    tokens = tokenize(term)
    breaks = tuple(at > 0 and token.sentence != tokens[at - 1].sentence for at, token in enumerate(tokens))
    return Term(tuple(token.text for token in tokens), breaks, bool(tokens) and is_number(tokens[-1]))


@lru_cache(maxsize=65536)
def forms(word: str) -> tuple[str, ...]:
    """The word, then what it may be the regular English plural of, then its own regular plural.

    Only for words of letters, where the plural has three or more ("ACs" is "AC"). Two words are forms of each other or
    neither is: "class" and "classes", "body" and "bodies", never "princess" and "princes".
    """
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


@dataclass(frozen=True)
class Reading:
    """A query with its tokens, where each word stands, and its text for substring mode.

    With `plurals` a token stands for all its `forms`: terms are then compared word by word as they are.
    """

    text: str
    tokens: tuple[Token, ...]
    plurals: bool = True

    @cached_property
    def forms(self) -> tuple[tuple[str, ...], ...]:
        """What each token may be as a word of a term."""
        return tuple(forms(token.text) if self.plurals else (token.text,) for token in self.tokens)

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """Word of a term → positions of the tokens that are it."""
        found: dict[str, list[int]] = {}
        for at, words in enumerate(self.forms):
            for word in words:
                found.setdefault(word, []).append(at)
        return found

    @cached_property
    def words(self) -> frozenset[str]:
        """The different words of terms that it holds."""
        return frozenset(self.places)

    @cached_property
    def solid(self) -> list[int]:
        """For each position, and the end, the first position from there on that is no filler."""
        found = [len(self.tokens)] * (len(self.tokens) + 1)
        for at in range(len(self.tokens) - 1, -1, -1):
            found[at] = found[at + 1] if self.tokens[at].text in FILLERS else at
        return found

    @cached_property
    def remembered(self) -> dict[object, object]:
        """What was found out about this query and may be asked again, such as the numbers it gives for a label."""
        return {}

    @cached_property
    def commas(self) -> list[int]:
        """How many of the tokens before each position, and the end, have a comma before them."""
        return [0, *accumulate(token.joint == "," for token in self.tokens)]

    @cached_property
    def squeezed(self) -> tuple[str, list[Span]]:
        """The lower-cased text with each run of white space as one space, and each character's original span."""
        spans = [(at, at + 1) for at, character in enumerate(self.text) for _ in character.lower()]
        lowered = self.text.lower()
        pieces: list[str] = []
        kept: list[Span] = []
        end = 0
        for run in _WHITE_SPACE.finditer(lowered):
            pieces += [lowered[end : run.start()], " "]
            kept += [*spans[end : run.start()], (spans[run.start()][0], spans[run.end() - 1][1])]
            end = run.end()
        return "".join(pieces) + lowered[end:], kept + spans[end:]


@lru_cache(maxsize=256)
def read_query(text: str, plurals: bool = True) -> Reading:
    """The query read once, however many rules look at it; with `plurals` a word is its singular and plural too."""
    return Reading(text, tokenize(text), plurals)


@lru_cache(maxsize=65536)
def _squeezed_term(term: str) -> str:
    return _WHITE_SPACE.sub(" ", term.lower())


def find_substring(term: str, query: Reading) -> Spans | None:
    """Where the lower-cased term stands in the lower-cased query, or None: the literal rule of the original design."""
    text, spans = query.squeezed
    wanted = _squeezed_term(term)
    at = text.find(wanted)
    return None if at < 0 else ((spans[at][0], spans[at + len(wanted) - 1][1]),)


def find_term(term: str, query: Reading) -> Spans | None:
    """Where the term's tokens stand in a row in the query (fillers between them skipped), or None."""
    positions = next(occurrences(compiled(term), query), None)
    return None if positions is None else spans_of(positions, query.tokens)


def occurrences(term: Term, query: Reading) -> Iterator[list[int]]:
    """The token positions of every occurrence of the term, by where it begins."""
    for start in query.places.get(term.texts[0], ()):
        positions = _row(term, query, start)
        if positions is not None:
            yield positions


def _row(term: Term, query: Reading, start: int) -> list[int] | None:
    """The positions of the term's tokens from `start` on; fillers are skipped, sentence ends are not crossed."""
    tokens = query.tokens
    found = [start]
    for index in range(1, len(term.texts)):
        at = _next_place(term, index, query, found[-1] + 1)
        if at == len(tokens) or (tokens[at].sentence != tokens[found[-1]].sentence and not term.breaks[index]):
            return None
        if term.texts[index] not in query.forms[at]:
            listed = _listed(term, index, tokens, at)
            if listed is None:
                return None
            at = listed
        found.append(at)
    return found


def _next_place(term: Term, index: int, query: Reading, at: int) -> int:
    """The first position from `at` on that is no filler, or is the filler the term itself has there."""
    solid = query.solid[at]
    if term.texts[index] not in FILLERS:
        return solid
    places = query.places.get(term.texts[index], [])
    later = bisect_left(places, at)
    return min(places[later], solid) if later < len(places) else solid


def _listed(term: Term, index: int, tokens: Sequence[Token], at: int) -> int | None:
    """Where the term's closing number stands in the list of numbers that begins at `at`, or None."""
    if not term.ends_in_number or index != len(term.texts) - 1 or not is_number(tokens[at]):
        return None
    return next((place for place in number_list(tokens, at) if tokens[place].text == term.texts[-1]), None)


def number_list(tokens: Sequence[Token], at: int) -> list[int]:
    """The positions of the numbers joined by and, or, comma, slash or as a range, from the one at `at` on."""
    found = [at]
    while True:
        next_at = found[-1] + 1
        while next_at < len(tokens) and tokens[next_at].text in JOINING_WORDS:
            next_at += 1
        if next_at == len(tokens) or not is_number(tokens[next_at]):
            return found
        joined = next_at > found[-1] + 1 or tokens[next_at].joint
        if not joined or tokens[next_at].sentence != tokens[at].sentence:
            return found
        found.append(next_at)


def spans_of(positions: Sequence[int], tokens: Sequence[Token]) -> Spans:
    """The spans of an occurrence: one, or two where its number stands further on in a list of numbers."""
    if len(positions) > 1 and any(is_number(token) for token in tokens[positions[-2] + 1 : positions[-1]]):
        head, last = tokens[positions[0]], tokens[positions[-1]]
        return (head.start, tokens[positions[-2]].end), (last.start, last.end)
    return ((tokens[positions[0]].start, tokens[positions[-1]].end),)
