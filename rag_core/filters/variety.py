"""Diversity and Deduplicate: fewer chunks that say the same. Both compare texts by their words, nothing is embedded.

Titles are never compared: two different chunks may share one. A chunk without text is like no other. Distances play no
part in what is alike; how many of a list are worth keeping at all is for the cutoffs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from rag_core.stage import Filter, Judgement, setting
from rag_core.text import tokenize
from rag_core.types import Candidates, Counterfactual, Drop, Hit, Reason

_SHINGLE = 3  # words in a row that two texts must share


@dataclass(frozen=True)
class _Text:
    """What is compared of a chunk: runs of three words, and the numbers in order."""

    shingles: frozenset[tuple[str, ...]]
    numbers: tuple[float, ...]


@lru_cache(maxsize=1024)  # a slider asks for the same question's chunks at every position
def _read(chunk_text: str) -> _Text:
    tokens = tokenize(chunk_text)
    words = [token.text for token in tokens]
    runs = {tuple(words[at : at + _SHINGLE]) for at in range(max(1, len(words) - _SHINGLE + 1))} if words else set()
    return _Text(frozenset(runs), tuple(token.value for token in tokens if token.value is not None))


def _overlap(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> float:
    """Jaccard similarity; 0 where either is empty."""
    return len(one & other) / len(one | other) if one and other else 0.0


@dataclass(frozen=True)
class Deduplicate(Filter):
    """Drop a chunk whose text nearly repeats an earlier one; texts with different numbers never count as the same."""

    likeness: float = setting(
        0.8, "least share of word triples two texts have in common", low=0, high=1, priority=1, step=0.01
    )

    title: ClassVar[str] = "duplicates"

    def judge(self, candidates: Candidates) -> Judgement:
        """The first of a group stays; a later one that is alike enough goes and names it.

        Broder 1997 (resemblance of documents by shingles).
        """
        kept: list[tuple[Hit, _Text]] = []
        reasons: list[Reason | None] = []
        for hit in candidates.hits:
            text = _read(hit.chunk.text)
            twin, likeness = self._twin(text, kept)
            reasons.append(None if twin is None else self._reason(twin, likeness))
            if twin is None:
                kept.append((hit, text))
        return Judgement(reasons)

    def _twin(self, text: _Text, kept: Sequence[tuple[Hit, _Text]]) -> tuple[Hit | None, float]:
        """The kept chunk most like this text, where it is alike enough."""
        alike = [(_overlap(text.shingles, other.shingles), hit) for hit, other in kept if text.numbers == other.numbers]
        likeness, twin = max(alike, key=lambda pair: pair[0], default=(0.0, None))
        return (twin, likeness) if text.shingles and likeness >= self.likeness else (None, likeness)

    def _reason(self, twin: Hit, likeness: float) -> Reason:
        text = f"nearly repeats rank {twin.rank} ({likeness:.2f} of its word triples, at least {self.likeness:.2f})"
        return Reason(text, likeness, self.likeness)

    def would_keep(self, before: Candidates, drop: Drop) -> tuple[Counterfactual, ...]:
        """A likeness just above that of its twin."""
        value = drop.reason.value or 0.0
        if value >= 1:
            return (Counterfactual("likeness", None, "likeness: no value would have kept it"),)
        needed = value + 1e-9
        return (Counterfactual("likeness", needed, f"likeness above {value:.4f} would have kept it"),)


@dataclass(frozen=True)
class Diversity(Filter):
    """Keep k chunks by maximal marginal relevance: near in the ranking, and unlike what is already kept."""

    k: int = setting(15, "how many are kept", low=1, high=1000, priority=1, unit="chunks", step=1, usual=(1, 30))
    relevance: float = setting(
        0.7, "weight of the rank against being unlike: 1 keeps the first k", low=0, high=1, priority=2, step=0.01
    )

    title: ClassVar[str] = "diversity"
    is_cut: ClassVar[bool] = True

    def arrange(self, hits: tuple[Hit, ...], candidates: Candidates) -> tuple[Hit, ...]:
        """In the order of choice: each next hit has the greatest weight · rank score − (1 − weight) · likeness.

        The rank score falls evenly from 1 to 1/n, so that any kind of list will do; likeness is the greatest Jaccard
        similarity of word triples to a chunk already chosen. Carbonell and Goldstein 1998. Of equals the first.
        """
        texts = [_read(hit.chunk.text).shingles for hit in hits]
        left, order = list(range(len(hits))), []
        likest = [0.0] * len(hits)
        while left:
            best = max(left, key=lambda at: (self._worth(at, len(hits), likest[at]), -at))
            left.remove(best)
            order.append(best)
            for at in left if len(order) < self.k else ():
                likest[at] = max(likest[at], _overlap(texts[at], texts[best]))
        return tuple(hits[at] for at in order)

    def _worth(self, at: int, count: int, likest: float) -> float:
        return self.relevance * (1 - at / count) - (1 - self.relevance) * likest

    def judge(self, candidates: Candidates) -> Judgement:
        """Drop what was chosen after k."""
        return Judgement(
            [
                Reason(f"choice {place} by maximal marginal relevance > k {self.k}", place, self.k)
                if place > self.k
                else None
                for place in range(1, len(candidates.hits) + 1)
            ]
        )

    def would_keep(self, before: Candidates, drop: Drop) -> tuple[Counterfactual, ...]:
        """The least k that chooses it, by trying them upward from the one that was set."""
        for k in range(self.k + 1, len(before.hits) + 1):
            tried = Diversity(k, self.relevance)
            if drop.hit.key in [hit.key for hit in tried.arrange(before.hits, before)[:k]]:
                return (Counterfactual("k", k, f"k {k} would have kept it"),)
        return (Counterfactual("k", None, "k: no value would have kept it"),)
