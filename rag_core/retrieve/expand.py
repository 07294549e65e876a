"""ExpandReferences: whatever the list refers to, breadth first, with no model to ask. The walk is filters.llm.reach.

It only adds: each chunk once, behind the hits, knowing from which of them and how many steps it came. Which chunks
deserve expansion is a filter's decision and stands before this stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rag_core.filters.llm.reach import ChunkLookup, Layered, Reached, reach
from rag_core.stage import Stage, resource, setting
from rag_core.text import counted
from rag_core.types import Candidates, Hit, Notice, Step


@dataclass(frozen=True)
class ExpandReferences(Stage):
    """Add the chunks that the hits refer to, and those that these refer to, up to a number of steps."""

    depth: int = setting(1, "how many references away", low=0, high=100, priority=1, unit="steps", step=1, usual=(0, 5))
    max_added: int = setting(
        50, "most chunks added to a list", low=0, high=10_000, priority=2, unit="chunks", step=1, usual=(0, 100)
    )
    chunks: ChunkLookup | None = resource()

    kind: ClassVar[str] = "expand"
    title: ClassVar[str] = "references"
    cheap: ClassVar[bool] = True

    @classmethod
    def said(cls, step: Step) -> str:
        """How many chunks it added, and how many that are referred to were not found."""
        missing = step.facts.get("references_missing", 0)
        lost = f", {counted(missing, 'reference', 'references')} not found" if missing else ""
        return f"{counted(step.left - step.entered, 'chunk', 'chunks')} added{lost}"

    @classmethod
    def change(cls, step: Step) -> str:
        """How many chunks it added, 0 too."""
        return f"+{step.left - step.entered}"

    def apply(self, candidates: Candidates) -> tuple[Candidates, Mapping[str, Any]]:
        """The hits and what they refer to; chunks of the list itself are found without a look-up."""
        listed = {hit.chunk.id: hit for hit in reversed((*(d.hit for d in candidates.drops), *candidates.hits))}
        lookup = Layered({name: hit.chunk for name, hit in listed.items()}, self.chunks)
        found, missing = reach([hit.chunk for hit in candidates.hits], self.depth, self.max_added, lookup)
        added = tuple(self._hit(one, listed, len(candidates.hits) + at) for at, one in enumerate(found, 1))
        told = (Notice(self.name, f"{missing} referenced chunks were not found"),) if missing else ()
        after = replace(candidates, hits=candidates.hits + added, notices=candidates.notices + told)
        return after, {"added": len(added), "references_missing": missing}

    def _hit(self, one: Reached, listed: Mapping[str, Hit], rank: int) -> Hit:
        """A brought chunk; one that was in the list keeps its rank and scores."""
        origin = f"expanded from {one.start}, {one.steps} step{'s' if one.steps > 1 else ''}"
        known = listed.get(one.chunk.id)
        return replace(known, origin=origin) if known is not None else Hit(one.chunk, rank, origin=origin)
