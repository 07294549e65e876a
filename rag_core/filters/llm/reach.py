"""What a chunk's references reach: breadth first over `ref_ids`, cycles harmless, with a cap.

Where referenced chunks come from is a look-up that is handed in; nothing is fetched here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from rag_core.types import Chunk


class ChunkLookup(Protocol):
    """Chunks by their id; a dict of them will do."""

    def get(self, key: str, /) -> Chunk | None:
        """The chunk of that id, or None."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A chunk that references lead to: how many steps from which start, and through which chunk the last step went."""

    chunk: Chunk
    steps: int
    via: str
    start: str


def reach(start: Chunk, depth: int, cap: int, chunks: ChunkLookup) -> tuple[list[Reached], int]:
    """Up to `cap` chunks at most `depth` references away, nearest first, and how many referenced ids are not there.

    Within a distance the order is that of `ref_ids`. The start itself is never among them.
    """
    return reach_all((start,), depth, cap, chunks)


def reach_all(starts: Sequence[Chunk], depth: int, cap: int, chunks: ChunkLookup) -> tuple[list[Reached], int]:
    """`reach` from several starts at once: a chunk that two reach comes from the nearer one, of equals the first."""
    found: list[Reached] = []
    missing: set[str] = set()
    seen = {start.id for start in starts}
    open_ = deque((start, 0, name) for name, start in {start.id: start for start in starts}.items())
    while open_ and len(found) < cap:
        chunk, steps, origin = open_.popleft()
        if steps == depth:
            break
        for name in _unseen(chunk, seen):
            referred = chunks.get(name)
            if referred is None:
                missing.add(name)
            elif len(found) < cap:
                found.append(Reached(referred, steps + 1, chunk.id, origin))
                open_.append((referred, steps + 1, origin))
    return found, len(missing)


def _unseen(chunk: Chunk, seen: set[str]) -> Iterator[str]:
    for name in chunk.ref_ids:
        if name not in seen:
            seen.add(name)
            yield name


class Layered:
    """A look-up over several: the first that has a chunk gives it."""

    def __init__(self, *lookups: ChunkLookup) -> None:
        self._lookups = lookups

    def get(self, key: str, /) -> Chunk | None:
        """The chunk of that id from the first look-up that has it."""
        return next((chunk for lookup in self._lookups if (chunk := lookup.get(key)) is not None), None)
