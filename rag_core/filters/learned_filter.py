"""LearnedFilter: keep the chunks that a small model expects to be relevant, wherever in the list they stand.

Not where the list ends but whether this chunk stays. The model is a logistic regression of chances.py's signals, plain
numbers in the spec; without any the shipped prior stands in, which benchmarks/learn_prior.py learned from public sets
(docs/learned-filter.md has what it is worth on a set it has not seen). Training on labels, which move the prior, is in
tune/learned.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, ClassVar

from rag_core.errors import SpecError
from rag_core.files import parse_json, read_text
from rag_core.filters.chances import SIGNALS, chances_of, keep_by, shares, signals
from rag_core.filters.query_must import QueryMust
from rag_core.rules.match import RuleVerdict
from rag_core.stage import Filter, Judgement, setting
from rag_core.text import counted
from rag_core.types import Candidates, Counterfactual, Drop, Hit, Metric, Reason, Step, falling

PRIOR = Path(__file__).parent / "prior.json"
NAMED = 2  # signals that the reason of a drop names


@cache
def prior() -> Mapping[str, Any]:
    """The shipped model: `labels` (0), `intercept`, and per signal its mean, scale and weight."""
    model: Mapping[str, Any] = parse_json(read_text(PRIOR), PRIOR.name)
    return model


@dataclass(frozen=True)
class LearnedFilter(Filter):
    """Keep the chunks that a model of scores, words and neighbours expects to be relevant."""

    parameters: Mapping[str, Any] | None = setting(
        None, "what training gave: labels, intercept, signals; without it the shipped prior", optional=True
    )
    recall: float | None = setting(
        None,
        "keep the fewest chunks that are expected to hold this share of the relevant ones; "
        "without it those with the greatest expected F1",
        low=0,
        high=1,
        optional=True,
        priority=1,
        step=0.05,
        usual=(0.5, 0.95),
    )
    beside: float | None = setting(
        0.5,
        "chunks whose rule the question satisfies were asked for by name and stay; beside them others stay from this "
        "chance on; not set: rules do not count",
        low=0,
        high=1,
        optional=True,
        priority=2,
        step=0.05,
        usual=(0.2, 0.8),
    )
    min_results: int = setting(1, "never keep fewer", low=0, high=1000, priority=3, unit="chunks", step=1, usual=(1, 5))
    max_results: int = setting(
        100,
        "look at no more than this many",
        low=1,
        high=1000,
        priority=4,
        unit="chunks",
        step=1,
        usual=(15, 200),
        cheap=False,  # every signal is of the list that is looked at: a hundred positions are a hundred times the work
    )

    title: ClassVar[str] = "learned filter"
    trained: ClassVar[bool] = True
    is_cut: ClassVar[bool] = True
    lens: ClassVar[str] = "differences"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.parameters is not None:
            _check(self.parameters)

    @property
    def model(self) -> Mapping[str, Any]:
        """What it decides by: its own parameters, else the shipped prior."""
        return self.parameters or prior()

    @property
    def weighs(self) -> Mapping[str, float]:
        """Signal → weight, per spread of the signal."""
        return {name: weight for name, (_, _, weight) in self.model["signals"].items()}

    def carried_settings(self) -> dict[str, Any]:
        """With the numbers of the model, which an exported file cannot look up."""
        return {**self.settings(), "parameters": self.model}

    @classmethod
    def said(cls, step: Step) -> str:
        """How many it keeps, how many relevant chunks it expects, and what it learned from."""
        if "expected_relevant" not in step.facts:
            return super().said(step)
        labels = step.facts["labels"]
        source = f"by {labels:,} labels" if labels else "by the shipped prior, no label"
        expected = f"{step.facts['expected_relevant']:.1f} relevant chunks expected"
        if named := step.facts["asked_for"]:
            expected = f"{counted(named, 'chunk', 'chunks')} asked for by name, {expected}"
        return f"{expected} {source}: {step.left} of {step.entered} left"

    def judge(self, candidates: Candidates) -> Judgement:
        """Drop what is not among the likeliest; what was asked for by name stays, and what expansion or hops added."""
        judged = [hit for hit in ordered_by(candidates).hits if not hit.origin]
        looked = judged[: self.max_results]
        rows = signals_of(candidates.query.text, looked)
        chances = chances_of(rows, self.model["signals"], self.model["intercept"])
        named = [at for at, hit in enumerate(judged) if self.beside is not None and asked_for(hit)]
        kept, lowest = keep_by(chances, self.min_results, self.recall, named, self.beside)
        stays, best = {*kept, *named}, max(range(len(chances)), key=chances.__getitem__, default=0)
        reasons: dict[tuple[str, str], Reason | None] = {}
        for at, hit in enumerate(judged):
            if at in stays:
                reasons[hit.key] = None
            elif at < len(looked):
                reasons[hit.key] = _reason(rows[at], rows[best], self.model["signals"], chances[at], lowest)
            else:
                text = f"position {at + 1}, only the first {self.max_results} are looked at"
                reasons[hit.key] = Reason(text, at + 1, self.max_results)
        facts = {
            "chances": tuple(chances),
            "expected_relevant": math.fsum(chances),
            "labels": self.model["labels"],
            "asked_for": len(named),
        }
        return Judgement([reasons.get(hit.key) for hit in candidates.hits], facts)

    def would_keep(self, before: Candidates, drop: Drop) -> tuple[Counterfactual, ...]:
        """The number of chunks to keep at least that would have reached it; of one behind max_results, that."""
        judged = [hit for hit in ordered_by(before).hits if not hit.origin]
        at = [hit.key for hit in judged].index(drop.hit.key)
        if at >= self.max_results:
            return (Counterfactual("max_results", None, f"it stands behind the {self.max_results} that are looked at"),)
        looked = judged[: self.max_results]
        chances = chances_of(signals_of(before.query.text, looked), self.model["signals"], self.model["intercept"])
        first = [other for other, hit in enumerate(looked) if self.beside is not None and asked_for(hit)]
        order = sorted(range(len(looked)), key=lambda other: (other not in first, -chances[other], other))
        place = order.index(at) + 1
        return (Counterfactual("min_results", place, f"min_results {place} would have kept it"),)


def asked_for(hit: Hit) -> bool:
    """Whether a stage in front found that the question names what the chunk's rule asks for."""
    verdict = hit.notes.get(QueryMust.__name__)
    return (
        isinstance(verdict, RuleVerdict) and verdict.satisfied and any(part.term is not None for part in verdict.parts)
    )


def ordered_by(candidates: Candidates) -> Candidates:
    """The list with the distances that its signals are made of: where a reranker ordered it, those of its score."""
    return falling(candidates) if candidates.metric is Metric.RERANK else candidates


def signals_of(question: str, hits: Sequence[Hit]) -> list[list[float]]:
    """The signals of a list: by distance, else by the score it carries; a chunk without one counts as the last."""
    if any(hit.distance is not None for hit in hits):
        known = [hit.distance for hit in hits]
    else:
        kind = next(
            (kind for kind in ("score", "rrf", "similarity", "bm25") if any(kind in hit.scores for hit in hits)), ""
        )
        known = [-hit.scores[kind] if kind in hit.scores else None for hit in hits]
    last = max((value for value in known if value is not None), default=0.0)
    falls = tuple(last if value is None else value for value in known)
    return _signals(question, tuple((hit.chunk.title, hit.chunk.text) for hit in hits), falls)


@lru_cache(maxsize=256)
def _signals(question: str, chunks: tuple[tuple[str, str], ...], falls: tuple[float, ...]) -> list[list[float]]:
    """The signals of a list, remembered: while a setting is dragged, the same lists are judged again and again."""
    return signals(question, chunks, falls)


def _reason(
    row: Sequence[float], best: Sequence[float], model: Mapping[str, Sequence[float]], chance: float, lowest: float
) -> Reason:
    """Why a chunk goes: its chance, and what sets it back most behind the likeliest chunk of its list."""
    against = sorted(shares(row, best, model).items(), key=lambda pair: pair[1])
    named = [f"{name} {weight:+.1f}" for name, weight in against[:NAMED] if weight <= -0.05]
    because = f": {', '.join(named)} behind the likeliest" if named else ""
    return Reason(f"chance {chance:.3f} < {lowest:.3f}{because}", chance, lowest)


def _check(parameters: Any) -> None:
    """Refuse parameters of another set of signals, or numbers that do not fit."""
    if not isinstance(parameters, Mapping) or set(parameters) != {"labels", "intercept", "signals"}:
        raise SpecError(
            "LearnedFilter.parameters is no mapping of labels, intercept and signals, expected what training wrote"
        )
    model = parameters["signals"]
    if not isinstance(model, Mapping) or tuple(model) != SIGNALS:
        raise SpecError("LearnedFilter.parameters has other signals, expected a model trained by this version")
    rows = [row for row in model.values() if isinstance(row, list | tuple) and len(row) == 3]
    numbers = [parameters["labels"], parameters["intercept"], *(value for row in rows for value in row)]
    plain = all(
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) for value in numbers
    )
    if len(rows) != len(SIGNALS) or not plain or not all(row[1] for row in rows):
        raise SpecError("LearnedFilter.parameters holds something else than mean, scale (not 0) and weight a signal")
