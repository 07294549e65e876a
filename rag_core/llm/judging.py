"""Judges over an endpoint: prompts in, texts out, each with tokens, cost and retries; faults are answers too.

A judge here knows nothing of what it is asked; the prompts' form is what the LLM filter makes (rag_core.filters.llm).
Storing answers is in recorded.py, inventing them from labels in simulated.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Lock
from time import monotonic, sleep
from typing import Any, Protocol

from rag_core.llm.client import Client
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.retry import RetryBudget
from rag_core.types import Chunk, Query

MAX_TEXT = 200_000
"""Characters of an answer that are handed on; no reader of decisions reads more."""


class PromptLike(Protocol):
    """What a judge is given for one call."""

    @property
    def messages(self) -> Sequence[Mapping[str, str]]:
        """Role and content of each message."""

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The JSON schema of the answer, where one is wanted."""

    @property
    def query(self) -> Query:
        """The query asked about."""

    @property
    def chunks(self) -> Sequence[Chunk]:
        """The candidates, numbered from 1."""

    @property
    def tokens(self) -> int:
        """Estimated size of the prompt."""

    @property
    def answer_tokens(self) -> int:
        """Estimated size of the answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one prompt: a text or an error."""

    text: str | None = None
    error: str = ""
    finish_reason: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    cached: bool = False
    retries: int = 0
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Price:
    """What tokens cost, per million, in whatever currency the budget is in."""

    per_million_in: float
    per_million_out: float

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The cost of one call."""
        return (prompt_tokens * self.per_million_in + completion_tokens * self.per_million_out) / 1_000_000


class Judge(Protocol):
    """Whoever answers prompts."""

    @property
    def name(self) -> str:
        """What stands on screen and in runs."""

    @property
    def price(self) -> Price | None:
        """What its tokens cost, None where that is unknown."""

    def ask(
        self, prompts: Sequence[PromptLike], *, seconds: float, concurrency: int, model: str, cache: bool
    ) -> Sequence[Answer]:
        """One answer per prompt, within `seconds` over all."""

    def stored(self, prompt: PromptLike, model: str) -> bool:
        """Whether the answer is at hand, so that asking costs nothing."""


class Pace:
    """At most so many calls a second over all threads, evenly spaced."""

    def __init__(self, per_second: float | None = None) -> None:
        self._gap = 1 / per_second if per_second else 0.0
        self._next = 0.0
        self._lock = Lock()

    def wait(self, until: float) -> bool:
        """Wait for the next place; False, at once, where it lies after the time `until` (monotonic seconds)."""
        if not self._gap:
            return True
        with self._lock:
            at = max(self._next, monotonic())
            if at >= until:
                return False
            self._next = at + self._gap
        sleep(max(0.0, at - monotonic()))
        return True


class EndpointJudge:
    """Asks an endpoint's model. Each call ends within the time; a failed one is an answer with the reason."""

    def __init__(
        self,
        endpoint: Endpoint,
        price: Price | None = None,
        budget: RetryBudget | None = None,
        pace: Pace | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.price = price
        self.budget = budget or RetryBudget()
        self._pace = pace or Pace()
        self._clients: dict[str, Client] = {}
        self._lock = Lock()

    @property
    def name(self) -> str:
        """The model at its endpoint."""
        return f"{self.endpoint.model} at {self.endpoint.name}"

    @property
    def model(self) -> str:
        """The endpoint's own model, asked where no other is named."""
        return self.endpoint.model

    def stored(self, prompt: PromptLike, model: str) -> bool:
        """Nothing is stored here."""
        return False

    def ask(
        self, prompts: Sequence[PromptLike], *, seconds: float, concurrency: int, model: str, cache: bool
    ) -> list[Answer]:
        """One answer per prompt, at most `concurrency` calls at once; `cache` is for judges that store."""
        client = self._client(model or self.endpoint.model)
        client.prepare()
        end = monotonic() + seconds
        if len(prompts) < 2 or concurrency < 2:
            return [self._one(client, prompt, end, seconds) for prompt in prompts]
        with ThreadPoolExecutor(min(concurrency, len(prompts)), "model-call") as pool:
            return list(pool.map(lambda prompt: self._one(client, prompt, end, seconds), prompts))

    def _one(self, client: Client, prompt: PromptLike, end: float, seconds: float) -> Answer:
        if not self._pace.wait(end) or (left := end - monotonic()) <= 0:
            return Answer(error=f"no time was left for this call within {seconds:.3g} seconds")
        tried = client.try_chat(prompt.messages, prompt.schema, left)
        if tried.answer is None:
            return Answer(error=tried.error, retries=tried.retries, milliseconds=tried.milliseconds)
        said = tried.answer
        answer = Answer(
            text=said.text[:MAX_TEXT],
            finish_reason=said.finish_reason,
            prompt_tokens=said.prompt_tokens,
            completion_tokens=said.completion_tokens,
            retries=tried.retries,
            milliseconds=tried.milliseconds,
        )
        return replace(answer, cost=cost_of(self.price, prompt, answer))

    def _client(self, model: str) -> Client:
        """The client for a model, kept; all share the retry budget."""
        with self._lock:
            if model not in self._clients:
                self._clients[model] = Client(replace(self.endpoint, model=model), self.budget)
            return self._clients[model]


def cost_of(price: Price | None, prompt: PromptLike, answer: Answer) -> float | None:
    """What a call cost; tokens the endpoint does not count are estimated. None where the price is unknown."""
    if price is None:
        return None
    spoken = -(-len(answer.text or "") // 4)
    return price.of(
        prompt.tokens if answer.prompt_tokens is None else answer.prompt_tokens,
        spoken if answer.completion_tokens is None else answer.completion_tokens,
    )
