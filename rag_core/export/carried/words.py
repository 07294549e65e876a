"""Words and numbers of a text: folding, tokens, fillers."""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import Any

FILLERS = frozenset(("of", "is", "was", "are", "the", "a", "an", "to", "at"))

_LETTER = r"[^\W\d_]"
_ALNUM = r"[^\W_]"
_MARK = r"[\u0300-\u036f]"
_HYPHENS = r"\-\u2010\u2011\u2012\u2013"
_MINUS = r"\u2212"
_TOKEN = re.compile(
    rf"""
      (?P<dotted> (?<!{_ALNUM}) {_LETTER} (?:\.{_LETTER})+ (?!{_LETTER}) \.? )
    | (?P<word>   (?:{_LETTER}{_MARK}*)+ )
    | (?P<mixed>  \d+ {_LETTER} (?:{_ALNUM}|{_MARK})* )
    | (?P<number> (?: (?<!{_ALNUM})[{_HYPHENS}] | (?<!\d){_MINUS} )? \d+ (?:\.\d+)* (?!{_ALNUM}) )
    | (?P<owned>  (?<={_ALNUM}) ['\u2019] s (?!{_ALNUM}) )
    | (?P<end>    [.?!;\u3002] )
    | (?P<joint>  [,/&{_HYPHENS}{_MINUS}] )
    """,
    re.VERBOSE,
)
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)", re.ASCII)
_SEGMENT = re.compile(r"[\x00-\x7f]+(?![^\x00-\x7f])|[\s\S][^\x00-\x7f]*")


class Token:
    """A word or number: its folded text, its sentence, what it is worth, and the mark before it."""

    __slots__ = ("joint", "ordinal", "sentence", "text", "value")

    def __init__(self, text: str, sentence: int, value: float | None, ordinal: bool, joint: str) -> None:
        self.text, self.sentence, self.value, self.ordinal, self.joint = text, sentence, value, ordinal, joint

    def is_number(self) -> bool:
        """Whether it is a plain number; "7th" is not."""
        return self.value is not None and not self.ordinal


def fold(text: str) -> str:
    """The text in Unicode NFKC and case folded, so that what reads alike compares equal."""
    if text.isascii():
        return text.lower()
    pieces = []
    for match in _SEGMENT.finditer(text):
        segment = match.group()
        if segment.isascii():
            pieces.append(_folded(segment))
            continue
        start = 0
        for at in range(1, len(segment)):
            if not _belongs(segment[at - 1], segment[at]):
                pieces.append(_folded(segment[start:at]))
                start = at
        pieces.append(_folded(segment[start:]))
    return "".join(pieces)


def _folded(piece: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", piece).casefold())


@functools.lru_cache(maxsize=4096)
def _belongs(before: str, character: str) -> bool:
    """Whether a character merges with the one before it under NFKC."""
    if unicodedata.combining(character):
        return True
    apart = unicodedata.normalize("NFKC", before) + unicodedata.normalize("NFKC", character)
    return unicodedata.normalize("NFKC", before + character) != apart


@functools.lru_cache(maxsize=65536)
def tokenize(text: str) -> tuple[Token, ...]:
    """The words and numbers of a text in order; remembered, since rules repeat."""
    tokens: list[Token] = []
    sentence, joint = 0, ""
    for match in _TOKEN.finditer(fold(text)):
        kind, found = str(match.lastgroup), match.group()
        if kind == "end":
            sentence, joint = sentence + 1, ""
        elif kind == "joint":
            joint = found if found in ",/&" and joint != "," else joint or "-"
        elif kind != "owned":
            tokens.append(_token(kind, found, sentence, joint))
            joint = ""
    return tuple(tokens)


def _token(kind: str, found: str, sentence: int, joint: str) -> Token:
    """Dots of abbreviations go, every sign is a plain hyphen-minus, an ordinal has a value too."""
    text = found
    if kind == "dotted":
        text = found.replace(".", "")
    elif kind == "number" and not found[0].isdecimal():
        text = found[1:] if not found[1:].strip("0.") else "-" + found[1:]
    if kind == "number" and text.count(".") < 2:
        return Token(text, sentence, float(text), False, joint)
    ordinal: Any = _ORDINAL.fullmatch(text) if kind == "mixed" else None
    return Token(text, sentence, float(ordinal[1]) if ordinal else None, bool(ordinal), joint)


def squeezed(text: str) -> str:
    """The lower-cased text with each run of white space as one space."""
    return re.sub(r"\s+", " ", text.lower())
