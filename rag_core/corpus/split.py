"""Chunks over a model's window → parts that fit, at paragraphs, lines or words; their texts joined are the chunk's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rag_core.types import Chunk

Count = Callable[[Sequence[str]], list[int]]
"""Tokens of each text."""

_UNITS = (r"(?s).+?(?:\n[ \t]*\n+|\Z)", r".*(?:\n|\Z)", r"(?s)\S*\s+|\S+\Z")
"""Paragraphs, lines, words: each expression covers every character."""


def split_chunk(chunk: Chunk, window: int, count: Count) -> list[Chunk]:
    """The chunk itself where it fits, else its parts `id@1`, `id@2` … of at most `window` tokens with their title.

    Parts carry the chunk's type, rule, references and metadata, and `part` and `parts`. A single word over the window
    stays whole: it is reported as too long like any other chunk.
    """
    room = window - count([chunk.title])[0]
    if count([chunk.text])[0] <= room or room < window // 4:
        return [chunk]
    pieces = _packed(list(_fitting(chunk.text, room, count)), room)
    return [_part(chunk, piece, number, len(pieces)) for number, piece in enumerate(pieces, 1)]


def _fitting(text: str, room: int, count: Count, level: int = 0) -> Iterator[tuple[str, int]]:
    """(unit, tokens) of the largest units that fit; what does not is taken apart by the next smaller kind."""
    units = [unit for unit in re.findall(_UNITS[level], text) if unit]
    for unit, tokens in zip(units, count(units), strict=True):
        if tokens > room and level + 1 < len(_UNITS):
            yield from _fitting(unit, room, count, level + 1)
        else:
            yield unit, tokens


def _packed(units: Sequence[tuple[str, int]], room: int) -> list[str]:
    """Units joined in order as long as their tokens together fit; blank text never stands alone."""
    pieces: list[str] = []
    used = 0
    for unit, tokens in units:
        if pieces and (used + tokens <= room or not unit.strip() or not pieces[-1].strip()):
            pieces[-1] += unit
            used += tokens
        else:
            pieces.append(unit)
            used = tokens
    return pieces


def _part(chunk: Chunk, text: str, number: int, parts: int) -> Chunk:
    metadata: Mapping[str, Any] = {**chunk.metadata, "part": number, "parts": parts}
    return replace(chunk, id=f"{chunk.id}@{number}", text=text, metadata=metadata)
