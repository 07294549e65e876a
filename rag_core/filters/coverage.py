"""Coverage: each part of a compound question keeps its best chunk, even where a cut by distance dropped it.

A question about two things often has one near and one far cluster of chunks; a cut at the gap between them loses the
second thing. What rules, entities or a model dropped is never taken back: only what fell to distance, rank or count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

from rag_core.stage import Stage, made_by_cut, setting
from rag_core.text import STOP_WORDS, counted, words
from rag_core.types import Candidates, Drop, Step

_JOINTS = re.compile(r"[?;,.!]|\b(?:and|or|versus|vs|as well as|but also)\b", re.IGNORECASE)


def parts_of(question: str) -> tuple[frozenset[str], ...]:
    """The content words of each part of a question, split at punctuation, and, or, versus, as well as.

    Parts without a content word are left out; a question of one part gives one.
    """
    found = (frozenset(words(part)) - STOP_WORDS for part in _JOINTS.split(question))
    return tuple(dict.fromkeys(part for part in found if part))


@dataclass(frozen=True)
class Coverage(Stage):
    """Take back, from what cuts dropped, the best chunk for each part of a compound question that none kept covers."""

    share: float = setting(
        0.5, "least share of a part's content words that a chunk must hold", low=0.01, high=1, priority=1, step=0.01
    )

    kind: ClassVar[str] = "expand"
    title: ClassVar[str] = "coverage"
    cheap: ClassVar[bool] = True

    @classmethod
    def said(cls, step: Step) -> str:
        """How many parts the question has, how many were covered, and how many chunks were taken back."""
        parts, back = step.facts.get("parts", 0), step.facts.get("taken_back", 0)
        if "covered" not in step.facts:
            return "the question has one part: nothing to cover"
        return f"{parts} parts, {step.facts['covered']} covered, {counted(back, 'chunk', 'chunks')} taken back"

    @classmethod
    def change(cls, step: Step) -> str:
        """How many chunks it took back, 0 too."""
        return f"+{step.left - step.entered}"

    def apply(self, candidates: Candidates) -> tuple[Candidates, Mapping[str, Any]]:
        """The hits with those taken back, by rank among them; facts: parts, covered, taken_back, without."""
        parts = parts_of(candidates.query.text)
        if len(parts) < 2:
            return candidates, {"parts": len(parts), "taken_back": 0}
        held = [(hit, _words_of(hit.chunk.title, hit.chunk.text)) for hit in candidates.hits]
        fallen = [
            (drop, _words_of(drop.hit.chunk.title, drop.hit.chunk.text))
            for drop in candidates.drops
            if made_by_cut(drop)
        ]
        open_parts = [part for part in parts if not any(_share(part, found) >= self.share for _, found in held)]
        best = [drop for part in open_parts if (drop := self._best(part, fallen)) is not None]
        back = {drop.hit.key: drop for drop in best}
        covered = len(parts) - len(open_parts)
        facts = {"parts": len(parts), "covered": covered, "taken_back": len(back)}
        return self._taken_back(candidates, list(back.values())), facts

    def _best(self, part: frozenset[str], fallen: Sequence[tuple[Drop, frozenset[str]]]) -> Drop | None:
        """The dropped chunk that holds most of the part, the nearest of equals; None where none holds enough."""
        shares = [(_share(part, found), -drop.hit.rank, drop) for drop, found in fallen]
        best = max(shares, key=lambda one: one[:2], default=(0.0, 0, None))
        return best[2] if best[0] >= self.share else None

    def _taken_back(self, candidates: Candidates, back: Sequence[Drop]) -> Candidates:
        keys = {drop.hit.key for drop in back}
        hits = list(candidates.hits)
        for drop in sorted(back, key=lambda one: one.hit.rank):
            place = sum(hit.rank < drop.hit.rank for hit in hits)
            hits.insert(place, drop.hit.noted(self.name, f"taken back from {drop.stage}"))
        drops = tuple(drop for drop in candidates.drops if drop.hit.key not in keys)
        return replace(candidates, hits=tuple(hits), drops=drops)


@lru_cache(maxsize=1024)  # a slider asks for the same question's chunks at every position
def _words_of(title: str, text: str) -> frozenset[str]:
    return frozenset(words(f"{title} {text}"))


def _share(part: frozenset[str], found: frozenset[str]) -> float:
    return len(part & found) / len(part)
