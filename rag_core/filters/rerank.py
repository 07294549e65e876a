"""Rerank: the list in the order of a reranker's score, which cuts behind it then decide by.

Scores come by protocol: of an endpoint's reranker as they are stored (llm/rerank.py), of a service's own function in an
exported file, or with the list. Nothing is asked of a server here: a threshold moves without a call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rag_core.stage import Stage, resource, setting
from rag_core.types import Candidates, Counterfactual, Drop, Fallback, Hit, Metric, Order, Reason, Step

Reranker = Callable[[str, Sequence[str]], Sequence[float]]
"""A question and texts → one score a text, higher is better; an exception says why there are none."""


@dataclass(frozen=True)
class Rerank(Stage):
    """Order the first of the list by a reranker's score; cuts behind it decide by that score."""

    depth: int = setting(
        50, "how many are reranked and go on", low=1, high=1000, priority=1, unit="chunks", step=1, usual=(10, 100)
    )
    endpoint: str = setting(
        "", "the reranker's endpoint by name; empty: the score that the lists carry", priority=2, cheap=False
    )
    recorded: str = setting("rerank", "the name of the score that the lists carry", cheap=False)
    reranker: Reranker | None = resource(needed=False)

    kind: ClassVar[str] = "rank"
    title: ClassVar[str] = "rerank"
    cheap: ClassVar[bool] = True
    lens: ClassVar[str] = "differences"

    def carried_settings(self) -> dict[str, Any]:
        """Without the endpoint, which stays with the workspace: a service hands its own reranker over."""
        return {**self.settings(), "endpoint": ""}

    @classmethod
    def said(cls, step: Step) -> str:
        """How many were ordered and by whom, or why the order stays."""
        facts = step.facts
        if why := facts.get("failed"):
            return f"order kept, {why}"
        return f"{step.left} ordered by {facts['by']}" if "by" in facts else super().said(step)

    def apply(self, candidates: Candidates) -> tuple[Candidates, Mapping[str, Any]]:
        """Order the first `depth` by score, of equals the earlier; drop the rest. Without scores the order stays.

        A cosine distance is kept as the similarity it stands for, since the list's metric is the score from here on.
        """
        near = [_with_similarity(hit, candidates.metric) for hit in candidates.hits[: self.depth]]
        drops = tuple(
            Drop(hit, self.name, Reason(f"position {place} > depth {self.depth}: not reranked", place, self.depth))
            for place, hit in enumerate(candidates.hits[self.depth :], self.depth + 1)
        )
        scores, why = self._scores(candidates.query.text, near)
        after = replace(candidates, drops=candidates.drops + drops, metric=Metric.RERANK)
        if why:  # no score, no cut: a cut behind it passes hits of a fused list that have none
            bare = (
                replace(hit, scores={kind: value for kind, value in hit.scores.items() if kind != "rerank"})
                for hit in near
            )
            fallbacks = (*candidates.fallbacks, Fallback(self.name, why))
            return replace(after, hits=tuple(bare), order=Order.FUSED, fallbacks=fallbacks), {"failed": why}
        rated = sorted(zip(near, scores, strict=True), key=lambda pair: -pair[1])
        hits = tuple(replace(hit, scores={**hit.scores, "rerank": score}) for hit, score in rated)
        by = f"the score {self.recorded!r} of the list" if self.reranker is None else self.endpoint or "your reranker"
        return replace(after, hits=hits, order=Order.DISTANCE), {"by": by}

    def _scores(self, question: str, hits: Sequence[Hit]) -> tuple[Sequence[float], str]:
        """The hits' scores, or why there are none."""
        if self.reranker is None:
            known = [hit.scores[self.recorded] for hit in hits if self.recorded in hit.scores]
            lacking = len(hits) - len(known)
            if not lacking:
                return known, ""
            carry = f"{lacking} of {len(hits)} chunks carry no score {self.recorded!r}"
            return (), f"no reranker is at hand and {carry}, expected it on each"
        try:
            scores = [float(score) for score in self.reranker(question, [text_of(hit) for hit in hits])]
        except Exception as error:  # a person's own function may raise anything
            return (), str(error) or type(error).__name__
        if len(scores) != len(hits) or not all(map(math.isfinite, scores)):
            return (), f"the reranker gave {len(scores)} scores, expected {len(hits)} finite numbers"
        return scores, ""

    def would_keep(self, before: Candidates, drop: Drop) -> tuple[Counterfactual, ...]:
        """The depth that reaches the chunk's position."""
        place = [hit.key for hit in before.hits].index(drop.hit.key) + 1
        return (Counterfactual("depth", place, f"depth {place} would have had it reranked"),)


def text_of(hit: Hit) -> str:
    """What a reranker reads of a chunk."""
    return hit.chunk.text or hit.chunk.title


def _with_similarity(hit: Hit, metric: Metric) -> Hit:
    if metric is not Metric.COSINE or hit.distance is None or "similarity" in hit.scores:
        return hit
    return replace(hit, scores={**hit.scores, "similarity": 1.0 - hit.distance})
