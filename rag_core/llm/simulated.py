"""SimulatedJudge: a judge that answers from the labels, wrong as often as it is told to be. Never a model's opinion.

It says how good a judge would have to be and what it might cost, before one is paid. An error is drawn per query and
chunk from the seed, so it does not depend on batches or order; its answers go through the same parser as a model's.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rag_core.errors import InputError
from rag_core.llm.answer import Answer, Price
from rag_core.llm.prompt import Prompt
from rag_core.types import Chunk

Labels = Mapping[str, Mapping[str, int]]
"""Query id → chunk id → grade."""

DEPTHS = (0, 1, 3, 5)
NEEDS = "label some of its chunks, or choose an endpoint"


class Simulated(ABC):
    """A judge that answers each prompt for itself, at once, and keeps nothing."""

    price: Price | None

    @property
    @abstractmethod
    def name(self) -> str:
        """What stands on screen and in runs: always says that it is simulated."""

    def most(self, prompt: Prompt) -> float:
        """What a call is said to cost; nothing without a price."""
        return self.price.of(prompt.tokens, prompt.answer_tokens) if self.price else 0.0

    def stored(self, prompt: Prompt, model: str) -> bool:
        """Nothing is stored; asking costs nothing."""
        return False

    def ask(
        self, prompts: Sequence[Prompt], *, seconds: float, concurrency: int, model: str, cache: bool
    ) -> list[Answer]:
        """One answer per prompt."""
        return [self._answer(prompt) for prompt in prompts]

    @abstractmethod
    def _answer(self, prompt: Prompt) -> Answer: ...


ERRORS = ("both", "keeping", "dropping")


@dataclass(frozen=True)
class SimulatedJudge(Simulated):
    """Answers from labels: relevant chunks are kept (and expanded where they refer to others), others discarded."""

    labels: Labels = field(repr=False)
    error_rate: float = 0.0  # share of chunks decided the wrong way
    seed: int = 0
    min_grade: int = 1  # a chunk of this grade or more is relevant; without a label it is not
    depth: int = 0  # of EXPAND for relevant chunks with references; 0: KEEP
    price: Price | None = None
    errs: str = "both"  # or only by `keeping` what is irrelevant, or by `dropping` what is relevant

    def __post_init__(self) -> None:
        if not 0 <= self.error_rate <= 1:
            raise InputError(f"the simulated judge's error rate is {self.error_rate!r}, expected 0 to 1")
        if self.errs not in ERRORS:
            raise InputError(f"the simulated judge errs {self.errs!r}, expected one of {', '.join(ERRORS)}")
        if self.depth not in DEPTHS:
            raise InputError(f"the simulated judge's depth is {self.depth!r}, expected 0, 1, 3 or 5")

    @property
    def name(self) -> str:
        """Always says that it is simulated."""
        how = "" if self.errs == "both" else f" by {self.errs}"
        return f"simulated judge, error rate {self.error_rate:g}{how}, seed {self.seed}"

    @property
    def origin(self) -> str:
        """What is said wherever it has a part in what is seen."""
        return f"simulated: drawn from the labels, {self.error_rate:.0%} wrong"

    def _answer(self, prompt: Prompt) -> Answer:
        if not self.labels.get(prompt.query.id):
            return Answer(error=f"the simulated judge answers from labels and this question has none: {NEEDS}")
        decisions = [
            {"id": number, "action": self.action(prompt.query.id, chunk)}
            for number, chunk in enumerate(prompt.chunks, 1)
        ]
        tokens = (prompt.tokens, prompt.answer_tokens)
        return Answer(
            text=json.dumps({"decisions": decisions}),
            finish_reason="stop",
            prompt_tokens=tokens[0],
            completion_tokens=tokens[1],
            cost=self.price.of(*tokens) if self.price else None,
        )

    def action(self, query_id: str, chunk: Chunk) -> str:
        """What it decides on a chunk, error included."""
        relevant = self.labels.get(query_id, {}).get(chunk.id, 0) >= self.min_grade
        may_err = self.errs == "both" or (self.errs == "dropping") == relevant
        if may_err and drawn(self.seed, query_id, chunk.id) < self.error_rate:
            relevant = not relevant
        if not relevant:
            return "DISCARD"
        return f"EXPAND_{self.depth}" if self.depth and chunk.ref_ids else "KEEP"


def drawn(seed: int, query_id: str, chunk_id: str) -> float:
    """A number from 0 to below 1 that only the seed, the query and the chunk decide."""
    digest = hashlib.sha256(f"{seed}\x00{query_id}\x00{chunk_id}".encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64
