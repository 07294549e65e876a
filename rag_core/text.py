"""Words and numbers of a text: folding, tokens with their place in the original, fillers and stop words.

One pattern decides what is a word, a number with its sign, a range or a sentence end; rules, BM25 and entities all read
its tokens. What a term of a rule is and when it matches is in rules/match.py. An analyzer makes terms of words for word
search; scoring them is left to the index.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from typing import NamedTuple

FILLERS = frozenset(("of", "is", "was", "are", "the", "a", "an", "to", "at"))
"""Words that may stand between the tokens of a term. The marks `=`, `:` and the comma are no tokens at all."""

_STOP_WORDS = """
a about after all also am an and any are as at be because been before being between both but by can could did do does
doing down during each few for from further had has have having he her here hers him his how i if in into is it its
itself just may me might more most much must my no nor not of off on once only or other our ours out over own per same
shall she should so some such than that the their theirs them then there these they this those through to too under
until up upon us very was we were what when where which while who whom whose why will with within without would you
your yours
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""English words too common to tell one text from another; for word search only, rules never drop a word."""

_LETTER = r"[^\W\d_]"
_ALNUM = r"[^\W_]"
_MARK = r"[\u0300-\u036f]"
_HYPHENS = r"\-\u2010\u2011\u2012\u2013"
_MINUS = r"\u2212"

_TOKEN = re.compile(
    rf"""
      (?P<dotted> (?<!{_ALNUM}) {_LETTER} (?:\.{_LETTER})+ (?!{_LETTER}) \.? )      # a.c.  J.R.R.
    | (?P<word>   (?:{_LETTER}{_MARK}*)+ )                                          # letters; "ac6" ends before the 6
    | (?P<mixed>  \d+ {_LETTER} (?:{_ALNUM}|{_MARK})* )                             # 2d10, 7th
    | (?P<number> (?: (?<!{_ALNUM})[{_HYPHENS}] | (?<!\d){_MINUS} )? \d+ (?:\.\d+)* (?!{_ALNUM}) )
    | (?P<owned>  (?<={_ALNUM}) ['\u2019] s (?!{_ALNUM}) )                          # the 's of "fighter's"
    | (?P<end>    [.?!;\u3002] )
    | (?P<joint>  [,/&{_HYPHENS}{_MINUS}] )
    """,
    re.VERBOSE,
)
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)", re.ASCII)
_SEGMENT = re.compile(r"[\x00-\x7f]+(?![^\x00-\x7f])|[\s\S][^\x00-\x7f]*")


class Token(NamedTuple):
    """A word or number of a text: its folded text, and where it stands in the original (`start` … `end` − 1)."""

    text: str
    start: int
    end: int
    sentence: int = 0  # 0-based number of the sentence it stands in
    value: float | None = None  # what a number or an ordinal is worth
    ordinal: bool = False
    joint: str = ""  # the mark between this token and the one before: "," wins over "/", "&" and "-" (a hyphen)


class Folded(NamedTuple):
    """A text made comparable: NFKC and case folded. `starts` and `ends` lead each character back; None: unchanged."""

    text: str
    starts: Sequence[int] | None = None
    ends: Sequence[int] | None = None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The part of the original text that became characters start … end − 1 (end > start)."""
        if self.starts is None or self.ends is None:
            return start, end
        return self.starts[start], self.ends[end - 1]


def fold(text: str) -> str:
    """The text in Unicode NFKC and case folded, so that what reads alike compares equal."""
    return folded(text).text


def folded(text: str) -> Folded:
    """`fold`, with the way back from each character to the original text."""
    if text.isascii():
        return Folded(text.lower())
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for start, end in _clusters(text):
        piece = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text[start:end]).casefold())
        pieces.append(piece)
        starts += range(start, end) if len(piece) == end - start else [start] * len(piece)
        ends += range(start + 1, end + 1) if len(piece) == end - start else [end] * len(piece)
    return Folded("".join(pieces), starts, ends)


def _clusters(text: str) -> Iterator[tuple[int, int]]:
    """Cuts the text where normalisation does not reach across, as (start, end): stretches of ASCII, else short."""
    for match in _SEGMENT.finditer(text):
        start = match.start()
        if match.group().isascii():
            yield start, match.end()
            continue
        for at in range(start + 1, match.end()):
            if not _belongs(text[at - 1], text[at]):
                yield start, at
                start = at
        yield start, match.end()


@lru_cache(maxsize=4096)
def _belongs(before: str, character: str) -> bool:
    """Whether a character merges with the one before it under NFKC (a combining mark, a Hangul vowel or final)."""
    if unicodedata.combining(character):
        return True
    apart = unicodedata.normalize("NFKC", before) + unicodedata.normalize("NFKC", character)
    return unicodedata.normalize("NFKC", before + character) != apart


def _text_of(match: re.Match[str]) -> str:
    """A token's text: dots of abbreviations go, every sign is a plain hyphen-minus, "-0" and a bare sign are none."""
    kind, text = match.lastgroup, match.group()
    if kind == "dotted":
        return text.replace(".", "")
    if kind == "number" and not text[0].isdecimal():
        return text[1:] if not text[1:].strip("0.") else "-" + text[1:]
    return text


def tokenize(text: str) -> tuple[Token, ...]:
    """The words and numbers of a text in order, each with sentence, value and place in the original.

    A hyphen or en dash right before a digit is its sign unless a letter or digit stands before it; between two numbers
    it is a range; a true minus (U+2212) is a sign after letters too. `+` is no part of a number.
    """
    plain = folded(text)
    tokens: list[Token] = []
    sentence, joint = 0, ""
    for match in _TOKEN.finditer(plain.text):
        kind = match.lastgroup
        if kind == "end":
            sentence, joint = sentence + 1, ""
        elif kind == "joint":
            joint = match.group() if match.group() in ",/&" and joint != "," else joint or "-"
        elif kind != "owned":
            text = _text_of(match)
            ordinal = _ORDINAL.fullmatch(text) if kind == "mixed" else None
            worth = ordinal[1] if ordinal else text if kind == "number" and text.count(".") < 2 else None
            value = None if worth is None else float(worth)
            tokens.append(Token(text, *plain.span(*match.span()), sentence, value, ordinal is not None, joint))
            joint = ""
    return tuple(tokens)


def is_number(token: Token) -> bool:
    """Whether the token is a plain number (an ordinal is not)."""
    return token.value is not None and not token.ordinal


def counted(number: int, one: str, many: str) -> str:
    """A number with its noun: "1 round", "2,000 rounds"."""
    return f"{number:,} {one if number == 1 else many}"


def some(names: Sequence[str], most: int = 3, joint: str = ", ") -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return joint.join(names[:most]) + more


def words(text: str) -> list[str]:
    """The texts of `tokenize(text)`, faster: for word search and entities, which need no places."""
    unspoken = ("end", "joint", "owned")
    return [_text_of(match) for match in _TOKEN.finditer(fold(text)) if match.lastgroup not in unspoken]


ANALYZERS = (
    "plain", "danish", "dutch", "english", "french", "german", "italian", "norwegian", "portuguese", "russian",
    "spanish", "swedish", "turkish",
)  # fmt: skip
"""How word search makes terms of words: as they stand, or without a language's stop words and endings."""


def analysed(listed: Iterable[str], analyzer: str) -> list[str]:
    """The term of each word, '' for a stop word; what is not letters alone stays as it stands.

    Stems are Snowball's; English stop words are those above, the other languages' those that come with bm25s.
    """
    if analyzer == "plain":
        return list(listed)
    import Stemmer  # here, not above: rules and the command line start without it

    stem, stop = Stemmer.Stemmer(analyzer).stemWord, stop_words(analyzer)  # a stemmer is not for two threads
    return ["" if word in stop else stem(word) if word.isalpha() else word for word in listed]


@lru_cache(maxsize=4)
def stop_words(language: str) -> frozenset[str]:
    """The words of a language that tell no text from another, folded."""
    if language == "english":
        return STOP_WORDS
    listed = getattr(import_module("bm25s.stopwords"), f"STOPWORDS_{language.upper()}")
    return frozenset(map(fold, listed))
