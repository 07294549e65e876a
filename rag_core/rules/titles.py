"""A title in units: words, numbers, ranges and codes, with the mark that stands before each.

What stands in brackets and a leading section number are set aside: a question rarely says them. Which units of many
titles vary together is in slots.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from rag_core.text import FILLERS, STOP_WORDS, Token, tokenize

NUMBER, CODE = "#", "@"
"""How a unit that is a number (or a range), and one that is a code, reads in a title's shape."""

JOINERS = ("and", "or")
_OUTLINE = re.compile(r"^\s*(?:[IVXLC]+|[A-Z]|\d+)(?:\.(?:[IVXLC]+|[A-Z]|\d+))*[.)]\s+(?=\S)")
_BRACKETS = re.compile(r"\(([^()]*)\)|\[([^\[\]]*)\]")
_SEGMENT = re.compile(r":|\||[>›»]|\s[-–—/]\s|\t|;")
_ROMAN = re.compile(r"(?=[IVXLC]{2,})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")


class Unit(NamedTuple):
    """A word (with what a hyphen joins to it), a number, a range or a code of a title.

    `gap` is the mark before it: "" a space, "," a comma, "-" what parts segments (a colon, a dash between spaces).
    """

    text: str
    kind: str  # word | number | code
    gap: str
    low: float | None = None
    high: float | None = None  # of a range: the same as `low` for one number, None for "19+"

    @property
    def mask(self) -> str:
        """The unit in a shape: numbers and codes are alike."""
        return {"number": NUMBER, "code": CODE}.get(self.kind, self.text)

    @property
    def content(self) -> bool:
        """Whether it is a word that tells something."""
        return self.kind == "word" and len(self.text) > 1 and self.text not in STOP_WORDS and self.text not in FILLERS


@dataclass(frozen=True, slots=True)
class Title:
    """A title's units, and apart from them what stands in its brackets, each bracket with units of its own."""

    text: str
    units: tuple[Unit, ...]
    brackets: tuple[tuple[Unit, ...], ...]
    numbered: bool = False  # whether a "#" stands before one of its numbers


def read_title(text: str) -> Title:
    """The title in units."""
    brackets = [found for pair in _BRACKETS.findall(text) if (found := " ".join(pair).strip())]
    core = _BRACKETS.sub(" ", text).strip() or text
    core = _OUTLINE.sub("", core, count=1)
    within = tuple(units for bracket in brackets if (units := units_of(bracket)))
    return Title(text, units_of(core), within, bool(re.search(r"#\s*\d", core)))


def units_of(text: str) -> tuple[Unit, ...]:
    """A text in units."""
    tokens = tokenize(text)
    shouting = text.upper() == text
    found: list[Unit] = []
    at = 0
    while at < len(tokens):
        gap = _gap(text[tokens[at - 1].end : tokens[at].start]) if at else ""
        unit, at = _unit(text, tokens, at, gap, shouting)
        found.append(unit)
    return tuple(found)


def _unit(text: str, tokens: tuple[Token, ...], at: int, gap: str, shouting: bool) -> tuple[Unit, int]:
    """The unit that begins at a token, and the place after it."""
    token = tokens[at]
    if token.value is not None and not token.ordinal:
        return _number(text, tokens, at, gap)
    if token.ordinal:
        return Unit(token.text, "number", gap, token.value, token.value), at + 1
    raw = text[token.start : token.end]
    roman = not shouting and bool(_ROMAN.fullmatch(raw))
    if any(character.isdigit() for character in token.text) or roman or (len(raw) == 1 and raw.isupper()):
        return Unit(token.text, "code", gap), at + 1
    words = [token.text]
    while at + 1 < len(tokens) and text[tokens[at].end : tokens[at + 1].start] in ("-", "‐", "‑"):
        at += 1
        words.append(tokens[at].text)
    return Unit(" ".join(words), "word", gap), at + 1


def _number(text: str, tokens: tuple[Token, ...], at: int, gap: str) -> tuple[Unit, int]:
    """A number, or the range it begins: "6-10", "6 to 10", "19+"."""
    token, low = tokens[at], tokens[at].value
    for width in (1, 2):
        end = at + width
        if end >= len(tokens) or tokens[end].value is None or tokens[end].ordinal:
            continue
        between = text[token.end : tokens[end].start].strip().casefold()
        if between in ("-", "–", "‐", "‑", "to") and (width == 2) == (between == "to"):
            return Unit(f"{token.text}-{tokens[end].text}", "number", gap, low, tokens[end].value), end + 1
    if text[token.end :].startswith("+"):
        return Unit(f"{token.text}+", "number", gap, low, None), at + 1
    return Unit(token.text, "number", gap, low, low), at + 1


def _gap(between: str) -> str:
    if _SEGMENT.search(between):
        return "-"
    return "," if "," in between else ""
