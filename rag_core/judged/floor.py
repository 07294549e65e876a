"""A floor for the LLM filter from the collection's own distances: what it would keep, and what it would spare.

The floor is a similarity under which no candidate is judged. It saves calls and loses relevant chunks without a word of
the model's, and where it lies is a matter of the embedder and of how questions are asked: 0.3 spares nothing on one
collection and loses three quarters of the relevant chunks on another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import floor as rounded_down
from typing import Any

from rag_core.errors import InputError
from rag_core.filters.cutoff import cosine_similarity
from rag_core.filters.llm.stage import LLMFilter
from rag_core.judged.entrants import Bench

KEEP = 0.98
"""Share of the relevant chunks in the lists that a proposed floor keeps at least."""


@dataclass(frozen=True, slots=True)
class FloorEffect:
    """What a floor does to the lists of labelled questions."""

    floor: float
    relevant_kept: float  # share of the relevant chunks in the lists that reach it
    relevant_lost: int
    spared: float  # share of the candidates that would be judged without a floor and are not

    def to_text(self) -> str:
        """What it does, as the rest of a sentence."""
        kept = f"keeps {self.relevant_kept:.1%} of them, loses {self.relevant_lost}"
        return f"floor {self.floor:.3f}: {kept}, spares {self.spared:.0%} of the candidates"


@dataclass(frozen=True, slots=True)
class FloorProposal:
    """The highest floor that keeps nearly all relevant chunks, beside the one that is set."""

    questions: int
    relevant: int  # relevant chunks that search put into the lists
    proposed: FloorEffect
    present: FloorEffect

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def to_text(self) -> str:
        """Both floors, a line each."""
        listed = f"{self.relevant} relevant chunks in the lists of {self.questions} questions"
        return f"{listed}\nproposed: {self.proposed.to_text()}\nset: {self.present.to_text()}"


def propose_floor(bench: Bench, stage: LLMFilter, keep: float = KEEP) -> FloorProposal:
    """The highest floor, in steps of 0.001, that at least `keep` of the relevant chunks reach that search found.

    An InputError where no relevant chunk of the lists has a similarity. In sample: ask it of dev questions.
    """
    relevant: list[float] = []
    judged: list[float] = []
    questions = 0
    for case in bench.cases:
        hits = case.candidates.hits if case.candidates else ()
        metric = case.candidates.metric if case.candidates else None
        pairs = [(hit, cosine_similarity(hit, metric)) for hit in hits] if metric is not None else []
        known = [(hit, value) for hit, value in pairs if value is not None]
        own = [value for hit, value in known if case.grades.get(hit.chunk.id, 0) >= bench.min_grade]
        questions += bool(own)
        relevant += own
        judged += [value for _, value in known[: stage.oversample]]
    if not relevant:
        raise InputError(f"no relevant chunk in the lists of {bench.name} has a similarity, expected one to go by")
    relevant.sort()
    allowed = rounded_down((1 - keep) * len(relevant) + 1e-9)
    proposed = rounded_down(relevant[allowed] * 1000) / 1000
    effects = [_effect(value, relevant, judged) for value in (proposed, stage.min_relevance_threshold)]
    return FloorProposal(questions, len(relevant), *effects)


def _effect(floor: float, relevant: Sequence[float], judged: Sequence[float]) -> FloorEffect:
    lost = sum(value < floor - 1e-9 for value in relevant)
    spared = sum(value < floor - 1e-9 for value in judged)
    return FloorEffect(floor, 1 - lost / len(relevant), lost, spared / len(judged) if judged else 0.0)
