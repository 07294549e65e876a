"""What a chunk's references reach: breadth first over `ref_ids`, cycles harmless, with a cap.

Where referenced chunks come from is a look-up that is handed in; nothing is fetched here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rag_core.types import Chunk


class ChunkLookup(Protocol):
    """Chunks by their id; a dict of them will do."""

    def get(self, key: str, /) -> Chunk | None:
        """The chunk of that id, or None."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A chunk that references lead to, and how many steps from which start."""

    chunk: Chunk
    steps: int
    start: str


def reach(starts: Sequence[Chunk], depth: int, cap: int, chunks: ChunkLookup) -> tuple[list[Reached], int]:
    """Up to `cap` chunks at most `depth` references away, nearest first, and how many referenced ids are not there.

    Within a distance the order is that of `ref_ids`. A start is never among them; a chunk that two of them reach comes
    from the nearer one, of equals the first.
    """
    found: list[Reached] = []
    missing: set[str] = set()
    seen = {start.id for start in starts}
    open_ = deque((start, 0, name) for name, start in {start.id: start for start in starts}.items())
    while open_ and len(found) < cap:
        chunk, steps, origin = open_.popleft()
        if steps == depth:
            break
        for name in chunk.ref_ids:
            if name in seen:
                continue
            seen.add(name)
            referred = chunks.get(name)
            if referred is None:
                missing.add(name)
            elif len(found) < cap:
                found.append(Reached(referred, steps + 1, origin))
                open_.append((referred, steps + 1, origin))
    return found, len(missing)


class Layered:
    """A look-up over several, of which some may be missing: the first that has a chunk gives it."""

    def __init__(self, *lookups: ChunkLookup | None) -> None:
        self._lookups = [lookup for lookup in lookups if lookup is not None]

    def get(self, key: str, /) -> Chunk | None:
        """The chunk of that id from the first look-up that has it."""
        return next((chunk for lookup in self._lookups if (chunk := lookup.get(key)) is not None), None)
