"""SimulatedGrader: grades chunks from the labels, wrong and unsteady as often as it is told to be. No model's opinion.

It stands in for a model that proposes labels, so that the way from asking to agreement can be tried at no cost.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from rag_core.errors import InputError
from rag_core.llm.judging import Answer, Price, Prompt
from rag_core.llm.simulated import Labels, Simulated, drawn

GRADES = (0, 1, 2, 3)


@dataclass(frozen=True)
class SimulatedGrader(Simulated):
    """Says the labelled grade, 0 where there is none; an error is another grade, drawn per query and chunk."""

    labels: Labels = field(repr=False)
    error_rate: float = 0.0  # share of chunks it always grades wrongly
    flip_rate: float = 0.0  # share of chunks on which one run says something else than the others
    seed: int = 0
    run: int = 1
    price: Price | None = None

    def __post_init__(self) -> None:
        if not (0 <= self.error_rate <= 1 and 0 <= self.flip_rate <= 1):
            raise InputError("the simulated grader's error and flip rates are expected to be 0 to 1")

    @property
    def name(self) -> str:
        """Always says that it is simulated."""
        return f"simulated judge, error rate {self.error_rate:g}, seed {self.seed}"

    def _answer(self, prompt: Prompt) -> Answer:
        (chunk,) = prompt.chunks  # a call of a grader asks about one chunk
        grade = self.labels.get(prompt.query.id, {}).get(chunk.id, 0)
        for what, rate in (("error", self.error_rate), (f"run {self.run}", self.flip_rate)):
            if drawn(self.seed, f"{what} {prompt.query.id}", chunk.id) < rate:
                others = [one for one in GRADES if one != grade]
                grade = others[int(drawn(self.seed, f"{what} which {prompt.query.id}", chunk.id) * len(others))]
        return Answer(
            text=json.dumps({"reason": "simulated from the labels", "grade": grade}),
            finish_reason="stop",
            prompt_tokens=prompt.tokens,
            completion_tokens=prompt.answer_tokens,
            cost=self.price.of(prompt.tokens, prompt.answer_tokens) if self.price else None,
        )
