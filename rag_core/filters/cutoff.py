"""MinSimilarity and TopK: the two plain cutoffs every adaptive rule is measured against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rag_core.stage import Filter, Judgement, setting
from rag_core.types import Candidates, Counterfactual, Drop, Hit, Metric, Notice, Reason, Step

WEAK = 0.3
"""Below this cosine similarity a match is marked as weak; nothing is dropped for it."""


@dataclass(frozen=True)
class TopK(Filter):
    """Keep the first k of the list as it stands."""

    k: int = setting(
        15, "how many are kept", low=1, high=1000, priority=1, unit="chunks", step=1, usual=(1, 15), grid=(1, 50, 50)
    )

    title: ClassVar[str] = "fixed k"
    is_cut: ClassVar[bool] = True
    lens: ClassVar[str] = "threshold"

    def judge(self, candidates: Candidates) -> Judgement:
        """Drop every hit behind position k."""
        return Judgement(
            [
                Reason(f"position {position} > k {self.k}", position, self.k) if position > self.k else None
                for position in range(1, len(candidates.hits) + 1)
            ]
        )

    def would_keep(self, before: Candidates, drop: Drop) -> tuple[Counterfactual, ...]:
        """The k that reaches the chunk's position."""
        return self.would_keep_each(before, (drop,))[0]

    def would_keep_each(self, before: Candidates, drops: Sequence[Drop]) -> list[tuple[Counterfactual, ...]]:
        """The same for many drops of one list, which is looked at once."""
        places = {hit.key: place for place, hit in enumerate(before.hits, 1)}
        reached = [places[drop.hit.key] for drop in drops]
        return [(Counterfactual("k", place, f"k {place} would have kept it"),) for place in reached]


def cosine_similarity(hit: Hit, metric: Metric) -> float | None:
    """The hit's cosine similarity: its own score, else 1 − distance where the distance is cosine, else None."""
    if "similarity" in hit.scores:
        return hit.scores["similarity"]
    if metric is Metric.COSINE and hit.distance is not None:
        return 1.0 - hit.distance
    return None


def is_weak(hit: Hit, metric: Metric) -> bool:
    """Whether the hit is a weak match: its cosine similarity is known and below WEAK."""
    similarity = cosine_similarity(hit, metric)
    return similarity is not None and similarity < WEAK - 1e-9


@dataclass(frozen=True)
class MinSimilarity(Filter):
    """Drop hits below a cosine similarity; where no similarity is known the floor is skipped and that is said."""

    min_relevance: float = setting(
        0.45,
        "least cosine similarity",
        low=-1,
        high=1,
        priority=1,
        unit="cosine similarity",
        step=0.01,
        usual=(0.2, 0.7),
        grid=(0, 1, 101),
    )

    title: ClassVar[str] = "similarity floor"
    is_cut: ClassVar[bool] = True
    score: ClassVar[str] = "similarity"
    lens: ClassVar[str] = "threshold"

    @classmethod
    def said(cls, step: Step) -> str:
        """How many are left, and how many passed because nothing is known of their similarity."""
        unknown = step.facts.get("skipped", 0)
        return super().said(step) + (f", {unknown} of unknown similarity passed" if unknown else "")

    def judge(self, candidates: Candidates) -> Judgement:
        """Compare each hit's cosine similarity; a hit without one passes."""
        similarities = [cosine_similarity(hit, candidates.metric) for hit in candidates.hits]
        reasons = [self._reason(similarity) for similarity in similarities]
        unknown = sum(similarity is None for similarity in similarities)
        text = (
            f"similarity floor skipped for {unknown} of {len(similarities)} candidates: "
            f"no similarity given and the metric is {candidates.metric}"
        )
        return Judgement(reasons, {"skipped": unknown}, (Notice(self.name, text),) if unknown else ())

    def _reason(self, similarity: float | None) -> Reason | None:
        # One unit of 1e-9 of slack: 1 − 0.55 is 0.44999999999999996 and counts as 0.45.
        if similarity is None or similarity >= self.min_relevance - 1e-9:
            return None
        text = f"cosine similarity {similarity:.4f} < {self.min_relevance:.4f}"
        return Reason(text, similarity, self.min_relevance)

    def would_keep(self, before: Candidates, drop: Drop) -> tuple[Counterfactual, ...]:
        """The floor that lies at the chunk's own similarity."""
        similarity = cosine_similarity(drop.hit, before.metric)
        if similarity is None:
            return ()
        text = f"min_relevance {similarity:.4f} would have kept it"
        return (Counterfactual("min_relevance", similarity, text),)
