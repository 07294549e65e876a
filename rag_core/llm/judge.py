"""Judges: prompts in, answers out, each with tokens, cost and retries; a fault is an answer too.

A judge knows nothing of what it is asked. One asks an endpoint, one stores what another says and replays it; those that
invent answers from labels are in simulated.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from copy import copy
from dataclasses import replace
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from rag_core.errors import StoreError
from rag_core.llm.answer import Answer, Price
from rag_core.llm.endpoint import Endpoint, endpoint_of, price_of
from rag_core.llm.prompt import Prompt, estimate_tokens
from rag_core.llm.store import FILE, AnswerStore, answer_key
from rag_core.settings import ModelSettings, model_settings

if TYPE_CHECKING:
    from rag_core.llm.client import Client, RetryBudget


class Judge(Protocol):
    """Whoever answers prompts."""

    @property
    def name(self) -> str:
        """What stands on screen and in runs."""

    @property
    def price(self) -> Price | None:
        """What its tokens cost, None where that is unknown."""

    def ask(
        self, prompts: Sequence[Prompt], *, seconds: float, concurrency: int, model: str, cache: bool
    ) -> Sequence[Answer]:
        """One answer per prompt, in their order, within `seconds` over all; a failed call is one with an error."""

    def stored(self, prompt: Prompt, model: str) -> bool:
        """Whether the answer is at hand, so that asking costs nothing."""

    def most(self, prompt: Prompt) -> float | None:
        """The largest price of a call with all its tries; None where the price or the length of an answer is open."""


class EndpointJudge:
    """Asks an endpoint's model. Each call ends within the time; a failed one is an answer with the reason."""

    def __init__(self, endpoint: Endpoint, price: Price | None = None, budget: RetryBudget | None = None) -> None:
        from rag_core.llm.client import RetryBudget  # the HTTP library takes 0.2 s: only who calls an endpoint waits

        self.endpoint = endpoint
        self.price = price
        self.budget = budget or RetryBudget()
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

    @property
    def place(self) -> str:
        """Where and how it asks."""
        return self.endpoint.place

    def stored(self, prompt: Prompt, model: str) -> bool:
        """Nothing is stored here."""
        return False

    def most(self, prompt: Prompt) -> float | None:
        """The largest price of a call; None where the price is unknown or the server takes no limit of an answer."""
        accepted = self._client(self.endpoint.model).accepted
        if self.price is None or not accepted.limits:
            return None
        return self.endpoint.attempts * self.price.of(prompt.most_tokens, self.endpoint.max_tokens)

    def ask(
        self, prompts: Sequence[Prompt], *, seconds: float, concurrency: int, model: str, cache: bool
    ) -> list[Answer]:
        """One answer per prompt, at most `concurrency` calls at once; `cache` is for judges that store."""
        client = self._client(model or self.endpoint.model)
        client.prepare()
        end = monotonic() + seconds
        if len(prompts) < 2 or concurrency < 2:
            return [self._one(client, prompt, end, seconds) for prompt in prompts]
        with ThreadPoolExecutor(min(concurrency, len(prompts)), "model-call") as pool:
            contexts = [copy_context() for _ in prompts]  # whose calls they are
            return list(pool.map(lambda of, prompt: of.run(self._one, client, prompt, end, seconds), contexts, prompts))

    def _one(self, client: Client, prompt: Prompt, end: float, seconds: float) -> Answer:
        left = end - monotonic()
        if left <= 0:
            return Answer(error=f"no time was left for this call within {seconds:.3g} seconds")
        answer = client.try_chat(prompt.messages, prompt.schema, left)
        return answer if answer.text is None else replace(answer, cost=cost_of(self.price, prompt, answer))

    def _client(self, model: str) -> Client:
        """The client for a model, kept; all share the retry budget."""
        from rag_core.llm.client import Client  # as above

        with self._lock:
            if model not in self._clients:
                self._clients[model] = Client(replace(self.endpoint, model=model), self.budget)
            return self._clients[model]


def cost_of(price: Price | None, prompt: Prompt, answer: Answer) -> float | None:
    """What a call cost; tokens the endpoint does not count are estimated. None where the price is unknown."""
    if price is None:
        return None
    return price.of(
        prompt.tokens if answer.prompt_tokens is None else answer.prompt_tokens,
        estimate_tokens(answer.text or "") if answer.completion_tokens is None else answer.completion_tokens,
    )


class RecordedJudge:
    """A judge with a memory on disk; without a judge behind it, a replay of what is there.

    Answers are known by where and how they were asked (`place`), the model's name and the whole prompt. One is on disk
    before it is handed on, so a run that is killed never asks for it again.
    """

    def __init__(self, store: AnswerStore, behind: Judge | None, model: str, place: str = "") -> None:
        self.store = store
        self.behind = behind
        self.model = model
        self.place: str = place or getattr(behind, "place", "")

    @property
    def name(self) -> str:
        """The judge's name, or that answers are replayed."""
        return self.behind.name if self.behind else f"recorded answers of {self.model}"

    @property
    def price(self) -> Price | None:
        """The price of the judge behind."""
        return self.behind.price if self.behind else None

    def replay(self, model: str = "") -> RecordedJudge:
        """The stored answers alone: what was not recorded is an error."""
        return RecordedJudge(self.store, None, model or self.model, self.place)

    def again(self, number: int) -> RecordedJudge:
        """The judge asked again: the answers of each further run are stored under a name of their own."""
        other = copy(self)
        if number > 1:
            other.model = f"{self.model}, run {number}"
        return other

    def most(self, prompt: Prompt) -> float | None:
        """That of the judge behind; a replay costs nothing."""
        return self.behind.most(prompt) if self.behind else 0.0

    def stored(self, prompt: Prompt, model: str) -> bool:
        """Whether the answer is on disk."""
        return self._get(prompt, model) is not None

    def ask(
        self, prompts: Sequence[Prompt], *, seconds: float, concurrency: int, model: str, cache: bool
    ) -> list[Answer]:
        """Stored answers, and fresh ones for the rest, stored as they come in; with `cache` off all are asked anew."""
        if not cache:
            return self._fresh(prompts, seconds, concurrency, model, cache)
        known = [self._get(prompt, model) for prompt in prompts]
        missing = [prompt for prompt, answer in zip(prompts, known, strict=True) if answer is None]
        fresh = iter(self._fresh(missing, seconds, concurrency, model, cache))
        return [next(fresh) if answer is None else answer for answer in known]

    def _fresh(
        self, prompts: Sequence[Prompt], seconds: float, concurrency: int, model: str, cache: bool
    ) -> list[Answer]:
        if self.behind is None:
            return [Answer(error="the answer to this prompt was not recorded") for _ in prompts]
        answers = self.behind.ask(prompts, seconds=seconds, concurrency=concurrency, model=model, cache=cache)
        if cache:
            named = model or self.model
            for prompt, answer in zip(prompts, answers, strict=True):
                if answer.text is None:
                    continue
                with suppress(StoreError):  # where it cannot be stored the answer is still good
                    key = answer_key(self.place, named, prompt)
                    self.store.put(key, named, self.behind.name, replace(answer, error=""))
        return list(answers)

    def _get(self, prompt: Prompt, model: str) -> Answer | None:
        """The stored answer; a broken file is as good as an empty one."""
        with suppress(StoreError):
            return self.store.get(answer_key(self.place, model or self.model, prompt))
        return None


def judge_of(settings: ModelSettings, store: AnswerStore | Path, *, replay: bool = False) -> RecordedJudge:
    """The judge of an endpoint with the answers stored in a file, or in a workspace; a replay never asks."""
    answers = store if isinstance(store, AnswerStore) else AnswerStore(store / FILE)
    endpoint = endpoint_of(settings)
    if replay:
        return RecordedJudge(answers, None, settings.model, endpoint.place)
    return RecordedJudge(answers, EndpointJudge(endpoint, price_of(settings)), settings.model)


def environment_judge(workspace: Path) -> RecordedJudge | None:
    """The judge of the endpoint that the environment names, None where it names none."""
    settings = model_settings()
    return None if settings is None else judge_of(settings, workspace)
