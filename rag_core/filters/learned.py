"""LearnedCut: where to end a list, from a small model of how likely each of its chunks is relevant.

A logistic regression on a chunk's place in its list gives each a chance of being relevant; the list ends where the
expected F is greatest. The parameters are plain numbers in the spec, read here without scikit-learn; training and
cross-validation are in tune/learned.py. Sources: Arampatzis, Kamps and Robertson 2009 (where to stop reading).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, ClassVar

from rag_core.errors import SpecError
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.stage import Filter, Judgement, setting
from rag_core.text import words
from rag_core.types import Candidates, Hit, Metric, Reason, Step, falling

FEATURES = (
    "distance", "behind nearest", "behind nearest, of the span", "gap before", "gap after", "largest gap before",
    "log rank", "nearest distance", "span", "query words",
)  # fmt: skip
"""What the model sees of each chunk, in this order. Distances and gaps are those of the list, in its own metric."""


def features(distances: Sequence[float], query_words: int) -> list[tuple[float, ...]]:
    """One row of FEATURES per place of an ascending list of distances."""
    if not distances:
        return []
    nearest, span = distances[0], distances[-1] - distances[0]
    gaps = [after - before for before, after in pairwise(distances)]
    before = [0.0, *gaps]
    largest = list(accumulate(before, max))
    after = [*gaps, 0.0]
    log_words = math.log1p(query_words)
    return [
        (one, one - nearest, (one - nearest) / span if span > 0 else 0.0, before[at], after[at], largest[at],
         math.log1p(at), nearest, span, log_words)
        for at, one in enumerate(distances)
    ]  # fmt: skip


def best_length(chances: Sequence[float], least: int) -> int:
    """The length n ≥ least with the greatest expected F, 2 · Σ(first n) / (n + Σ all); the shortest of equals."""
    total = sum(chances)
    sums = list(accumulate(chances))
    lengths = range(max(1, min(least, len(chances))), len(chances) + 1)
    return max(lengths, key=lambda n: (2 * sums[n - 1] / (n + total), -n), default=0)


def query_length(text: str) -> int:
    """How many words a question has, as the features count them."""
    return len(words(text))


@dataclass(frozen=True)
class LearnedCut(Filter):
    """End the list where a trained model expects the best balance of precision and recall."""

    parameters: Mapping[str, Any] | None = setting(
        None, "what training gave: features, metric, mean, scale, weights, intercept", optional=True
    )
    min_results: int = setting(1, "never keep fewer", low=0, high=1000, priority=1, unit="chunks", step=1, usual=(1, 5))
    max_results: int = setting(
        50, "look at no more than this many", low=1, high=1000, priority=2, unit="chunks", step=1, usual=(5, 50)
    )

    title: ClassVar[str] = "learned cut"
    trained: ClassVar[bool] = True
    is_cut: ClassVar[bool] = True
    score: ClassVar[str] = "distance"
    lens: ClassVar[str] = "threshold"

    @classmethod
    def said(cls, step: Step) -> str:
        """How many it keeps, and how many relevant chunks it expects in the list."""
        if "keep" not in step.facts:
            return super().said(step)
        expected = f"{step.facts['expected_relevant']:.1f} relevant chunks expected"
        return f"{expected}: {step.left} of {step.entered} left"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.parameters is not None:
            _check(self.parameters)

    @property
    def weighs(self) -> Mapping[str, float]:
        """Feature of a place → weight, per spread of the feature."""
        known = self.parameters or {}
        return dict(zip(known.get("features", ()), known.get("weights", ()), strict=True))

    def arrange(self, hits: tuple[Hit, ...], candidates: Candidates) -> tuple[Hit, ...]:
        """As AdaptiveGap does: by distance where the list is fused, hits without one after it."""
        return AdaptiveGap().arrange(hits, candidates)

    def judge(self, candidates: Candidates) -> Judgement:
        """Drop what lies behind the expected best length; hits without a distance and expansions pass."""
        if self.parameters is None:
            raise SpecError(f"{self.name} has no parameters, expected those that training wrote")
        candidates = falling(candidates)
        self._check_metric(self.parameters, candidates.metric)
        judged = [hit for hit in candidates.hits if not hit.origin and hit.distance is not None]
        looked = [hit.scores["distance"] for hit in judged[: self.max_results]]
        chances = self.chances(looked, query_length(candidates.query.text))
        keep = best_length(chances, self.min_results)
        reasons = {hit.key: self._reason(at, keep, chances) for at, hit in enumerate(judged)}
        facts = {"keep": keep, "chances": tuple(chances), "expected_relevant": sum(chances)}
        return Judgement([reasons.get(hit.key) for hit in candidates.hits], facts)

    def _check_metric(self, parameters: Mapping[str, Any], metric: Metric) -> None:
        """Refuse a list in another metric than that of the training; an unknown one is taken for it."""
        trained = parameters.get("metric", Metric.COSINE)
        if Metric.UNKNOWN not in (trained, metric) and metric != trained:
            raise SpecError(f"{self.name} was trained on {trained} distances, expected a list of them, got {metric}")

    def chances(self, distances: Sequence[float], query_words: int) -> list[float]:
        """The chance of each place to hold a relevant chunk."""
        parameters = self.parameters or {}
        chances = []
        for row in features(distances, query_words):
            scaled = zip(row, parameters["mean"], parameters["scale"], parameters["weights"], strict=True)
            logit = parameters["intercept"] + sum((x - mean) / scale * weight for x, mean, scale, weight in scaled)
            chances.append(1 / (1 + math.exp(-max(-700.0, min(700.0, logit)))))
        return chances

    def _reason(self, at: int, keep: int, chances: Sequence[float]) -> Reason | None:
        if at < keep:
            return None
        if at >= len(chances):
            return Reason(
                f"position {at + 1}, only the first {self.max_results} are looked at", at + 1, self.max_results
            )
        return Reason(
            f"position {at + 1}, the model ends the list after {keep} (chance {chances[at]:.2f})", at + 1, keep
        )


def _check(parameters: Any) -> None:
    """Refuse parameters of another set of features, or numbers that do not fit."""
    if not isinstance(parameters, Mapping):
        raise SpecError(f"LearnedCut.parameters is {type(parameters).__name__}, expected a mapping")
    if tuple(parameters.get("features", ())) != FEATURES:
        raise SpecError("LearnedCut.parameters is of other features, expected a model trained by this version")
    if parameters.get("metric", Metric.COSINE) not in list(Metric):
        raise SpecError(f"LearnedCut.parameters has a wrong metric, expected one of {', '.join(Metric)}")
    for name in ("mean", "scale", "weights"):
        row = parameters.get(name)
        if not isinstance(row, list | tuple) or len(row) != len(FEATURES) or not all(_is_number(one) for one in row):
            raise SpecError(f"LearnedCut.parameters has a wrong {name}, expected {len(FEATURES)} numbers")
    if not _is_number(parameters.get("intercept")) or not all(parameters["scale"]):
        raise SpecError("LearnedCut.parameters has a wrong intercept or a scale of 0, expected numbers")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
