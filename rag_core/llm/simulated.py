"""SimulatedJudge: a judge that answers from the labels, wrong as often as it is told to be. Never a model's opinion.

It says how good a judge would have to be and what it might cost, before one is paid. An error is drawn per query and
chunk from the seed, so it does not depend on batches or order; its answers go through the same parser as a model's.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from time import monotonic, sleep

from rag_core.errors import InputError
from rag_core.llm.answer import Answer, Price
from rag_core.llm.prompt import Prompt
from rag_core.types import Case, Chunk

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

    def again(self, number: int) -> Simulated:
        """The judge in a further run; most say the same again."""
        return self

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
    latency: float = 0.0  # seconds a call is said to take
    waits: bool = False  # whether it really takes them
    errs: str = "both"  # or only by `keeping` what is irrelevant, or by `dropping` what is relevant

    def __post_init__(self) -> None:
        if not 0 <= self.error_rate <= 1:
            raise InputError(f"the simulated judge's error rate is {self.error_rate!r}, expected 0 to 1")
        if self.errs not in ERRORS:
            raise InputError(f"the simulated judge errs {self.errs!r}, expected one of {', '.join(ERRORS)}")
        if self.depth not in DEPTHS or self.latency < 0:
            raise InputError("the simulated judge needs a depth of 0, 1, 3 or 5 and a latency of 0 or more seconds")

    @property
    def name(self) -> str:
        """Always says that it is simulated."""
        how = "" if self.errs == "both" else f" by {self.errs}"
        return f"simulated judge, error rate {self.error_rate:g}{how}, seed {self.seed}"

    @property
    def origin(self) -> str:
        """What is said wherever it has a part in what is seen."""
        return f"simulated: drawn from the labels, {self.error_rate:.0%} wrong"

    def ask(
        self, prompts: Sequence[Prompt], *, seconds: float, concurrency: int, model: str, cache: bool
    ) -> list[Answer]:
        """One answer per prompt; where it waits, calls that would end after `seconds` fail as an endpoint's would."""
        if not self.waits or not prompts:
            return super().ask(prompts, seconds=seconds, concurrency=concurrency, model=model, cache=cache)
        end = monotonic() + seconds

        def in_time(prompt: Prompt) -> Answer:
            left = end - monotonic()
            sleep(max(0.0, min(self.latency, left)))
            if left < self.latency:
                return Answer(error=f"simulated judge did not answer within {seconds:.3g} seconds")
            return self._answer(prompt)

        with ThreadPoolExecutor(min(concurrency, len(prompts)), "simulated-call") as pool:
            return list(pool.map(in_time, prompts))

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
            milliseconds=self.latency * 1000,
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

    def again(self, number: int) -> SimulatedGrader:
        """The grader in a further run, in which it may say something else."""
        return replace(self, run=number)

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


@dataclass(frozen=True)
class SimulatedHopJudge(Simulated):
    """Names the labelled titles that the chunks shown do not have; it can answer once there are none."""

    titles: Mapping[str, Sequence[str]] = field(repr=False)  # query id, or its text → titles an answer needs
    price: Price | None = None

    @property
    def name(self) -> str:
        """Always says that it is simulated."""
        return "simulated hop judge that knows the labelled titles"

    def _answer(self, prompt: Prompt) -> Answer:
        needed = self.titles.get(prompt.query.id) or self.titles.get(prompt.query.text) or ()
        shown = {chunk.title for chunk in prompt.chunks}
        missing = [title for title in needed if title not in shown]
        reasoning = (
            f"{len(needed) - len(missing)} of {len(needed)} labelled titles are there" if needed else "no labels"
        )
        quoted = ", ".join(f'"{title}"' if '"' not in title else title for title in missing)
        said = {"can_answer": not missing, "reasoning": reasoning, "missing_query": quoted}
        return Answer(text=json.dumps(said, ensure_ascii=False), finish_reason="stop")


def labelled_titles(cases: Iterable[Case], chunks: Iterable[Chunk], min_grade: int = 1) -> dict[str, list[str]]:
    """Query id and query text → the titles of its chunks with at least that grade, the best grades first.

    Where a query has chunks of the highest grade in its labels, only those are needed.
    """
    by_id = {chunk.id: chunk.title for chunk in chunks}
    found: dict[str, list[str]] = {}
    for case in cases:
        best = max(case.grades.values(), default=0)
        needed = [one for one, grade in case.grades.items() if grade >= max(best, min_grade) and one in by_id]
        found[case.query.id] = found[case.query.text] = list(dict.fromkeys(by_id[one] for one in needed))
    return found
