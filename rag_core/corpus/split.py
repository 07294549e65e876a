"""Chunks over a model's window → parts that fit, by structure: sections, paragraphs, rows, sentences, words, letters.

Their texts joined are the chunk's, but for the head of a table, which each part that begins inside the table repeats.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from rag_core.corpus.markdown import find_headers, lines_of
from rag_core.types import Chunk

Count = Callable[[Sequence[str]], list[int]]
"""Tokens of each text."""

LONGEST_TITLE = 120  # characters of a part's title where the whole leaves too little room for text
_UNITS = (
    r"(?s).+?(?:\n[ \t]*\n+|\Z)",
    r".*(?:\n|\Z)",
    r"(?s).+?(?:[.?!](?=\s)\s+|\Z)",
    r"(?s)\S*\s+|\S+\Z",
    r"(?s).{1,%d}",
)
"""Paragraphs, lines, sentences, words, letters: each expression covers every character. No letter is two tokens."""

LINES = 1


@dataclass(frozen=True, slots=True)
class _Unit:
    """A piece that is not taken apart: its text and tokens, what it stands under, and the head of its table."""

    text: str
    tokens: int
    header: str = ""
    head: str = ""
    head_tokens: int = 0


def split_chunk(chunk: Chunk, window: int, count: Count) -> list[Chunk]:
    """The chunk itself where it fits, else its parts `id@1`, `id@2` … of at most `window` tokens with their title.

    A part that begins under a header inside the chunk (a deeper one, or a bold line) has it behind the title. Parts
    carry the chunk's type, rule, references and metadata, and `part` and `parts`.
    """
    title = chunk.title
    room = window - count([title])[0]
    if count([chunk.text])[0] <= room:
        return [chunk]
    sections = _sections(chunk.text)
    if room < window // 2:
        title = title[:LONGEST_TITLE]
    longest = max((f"{title}: {header}" if header else title for _, header in sections), key=len)
    room = window - count([longest])[0]
    if room < window // 2:  # long headers go, the title stays
        sections = [(text, "") for text, _ in sections]
        room = max(1, window - count([title])[0])
    units = [unit for text, header in sections for unit in _fitting(text, room, count, header)]
    pieces = _packed(units, room)
    if len(pieces) == 1:
        return [chunk]
    return [
        replace(
            chunk,
            id=f"{chunk.id}@{number}",
            title=f"{title}: {header}" if header and header != chunk.title else title,
            text=text,
            metadata={**chunk.metadata, "part": number, "parts": len(pieces)},
        )
        for number, (text, header) in enumerate(pieces, 1)
    ]


def _sections(text: str) -> list[tuple[str, str]]:
    """(text, header it stands under) at every header and bold line; what is before the second belongs to the chunk."""
    lines, headers = lines_of(text), find_headers(text)
    starts = [0, *(header.line for header in headers if header.line)]
    names = ["", *(header.text for header in headers if header.line)]
    return [
        ("".join(lines[start:stop]), name)
        for start, stop, name in zip(starts, [*starts[1:], len(lines)], names, strict=True)
        if stop > start
    ]


def _fitting(text: str, room: int, count: Count, header: str, level: int = -1, head: str = "") -> Iterator[_Unit]:
    """The largest units that fit; what does not is taken apart by the next smaller kind."""
    kind = "" if level < 0 else _UNITS[level].replace("%d", str(max(1, room - 2)))
    units = [unit for unit in re.findall(kind, text) if unit] if kind else [text]
    head_tokens = count([head])[0] if head else 0
    for position, (unit, tokens) in enumerate(zip(units, count(units), strict=True)):
        if tokens <= room - (head_tokens if position > 1 else 0) or level + 1 == len(_UNITS):
            yield _Unit(unit, tokens, header, *((head, head_tokens) if position > 1 else ()))
            continue
        repeated = _table_head(unit) if level + 1 == LINES else ""
        if repeated and count([repeated])[0] > room // 2:
            repeated = ""
        yield from _fitting(unit, room, count, header, level + 1, repeated)


def _table_head(paragraph: str) -> str:
    """The two lines that begin a Markdown table, nothing where the paragraph is none."""
    lines = paragraph.split("\n", 2)
    if len(lines) < 3 or "|" not in lines[0] or "-" not in lines[1] or set(lines[1]) - set("|:- \t\r"):
        return ""
    return f"{lines[0]}\n{lines[1]}\n"


def _packed(units: Sequence[_Unit], room: int) -> list[tuple[str, str]]:
    """(text, header it begins under) of units joined in order as long as their tokens together fit.

    Blank text never stands alone.
    """
    pieces: list[tuple[str, str]] = []
    used = 0
    for unit in units:
        if pieces and (used + unit.tokens <= room or not unit.text.strip() or not pieces[-1][0].strip()):
            text, header = pieces[-1]
            pieces[-1] = (text + unit.text, header if text.strip() else unit.header)
            used += unit.tokens
        else:
            pieces.append((unit.head + unit.text, unit.header))
            used = unit.head_tokens + unit.tokens
    return pieces
