"""The client every call to a model endpoint goes through: deadline, retries, checks, and errors that name no key.

Embeddings and one-shot chat, on request with an answer held to a JSON schema as far as the server can; what to ask and
what an answer means is for the callers. Nothing is read from the environment: address and key are the endpoint's own.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from threading import Lock
from time import monotonic, perf_counter
from typing import Any, Generic, TypeVar

from rag_core.errors import EndpointError, WinnowError
from rag_core.llm import answers, ladder
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.retry import Fault, RetryBudget, fault_of
from rag_core.llm.secret import NO_KEY, redact, redact_logs_of_libraries

T = TypeVar("T")

FIRST_WAIT = 0.5
LONGEST_WAIT = 8.0
LOOKED_UP_EVERY = 60.0
"""Seconds after which a name is resolved and checked anew; endpoints move."""


@dataclass
class Tried(Generic[T]):
    """How a call ended: with a checked answer, or with why there is none, in one sentence without key or chunk text."""

    answer: T | None = None
    error: str = ""
    retries: int = 0
    milliseconds: float = 0.0


class Client:
    """Calls one endpoint. Every method ends within the deadline, with a checked answer or an EndpointError."""

    def __init__(self, endpoint: Endpoint, budget: RetryBudget | None = None) -> None:
        self.endpoint = endpoint
        self.budget = budget or RetryBudget()
        self.retries = 0
        self._addresses: list[str] = []
        self._checked_at = -inf
        self._library: Any = None
        self._opening = Lock()

    def prepare(self) -> None:
        """Load what the first call needs, so that a time given for several calls is not spent on it."""
        self._opened()

    def embed(self, texts: Sequence[str], dimension: int | None = None) -> list[list[float]]:
        """One vector per text, in the order of the texts; all of width `dimension` where it is given."""

        async def call(library: Any) -> list[list[float]]:
            raw = await library.embeddings.with_raw_response.create(
                model=self.endpoint.model, input=list(texts), encoding_format="float"
            )
            return answers.embeddings(_body(raw), len(texts), dimension)

        return self._run(call) if texts else []

    def chat(self, messages: Sequence[Mapping[str, str]], **options: Any) -> answers.ChatAnswer:
        """One answer to the messages (role, content); options as the chat endpoint has them, temperature 0."""
        return self._run(self._chat_call(messages, None, options))

    def try_chat(
        self,
        messages: Sequence[Mapping[str, str]],
        schema: Mapping[str, Any] | None = None,
        deadline: float | None = None,
    ) -> Tried[answers.ChatAnswer]:
        """`chat` as a value: the answer or the error, within `deadline` seconds (the endpoint's unless given).

        With a schema the answer is asked for in that form, or in the nearest to it that the server takes.
        """
        try:
            return self._tried(self._chat_call(messages, schema, {}), deadline)
        except WinnowError as error:  # an address that may not be asked, found out when its name was resolved
            return Tried(error=redact(str(error)))

    def _chat_call(
        self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> Callable[[Any], Awaitable[answers.ChatAnswer]]:
        model = self.endpoint.model
        asked = {"model": model, "messages": [dict(message) for message in messages], "temperature": 0, **options}

        async def call(library: Any) -> answers.ChatAnswer:
            create = library.chat.completions.with_raw_response.create
            raw = await ladder.climb_down((self.endpoint.base_url, model), schema, lambda form: create(**asked, **form))
            answer = answers.chat_answer(_body(raw), model)
            return replace(answer, text=redact(answer.text), model=redact(answer.model))

        return call

    def models(self) -> list[str]:
        """The model names the endpoint lists."""

        async def call(library: Any) -> list[str]:
            raw = await library.models.with_raw_response.list()
            listed = _body(raw).get("data")
            items = listed if isinstance(listed, list) else []
            return [str(item.get("id"))[:200] for item in items if isinstance(item, dict) and item.get("id")]

        return self._run(call)

    def _run(self, call: Callable[[Any], Awaitable[T]]) -> T:
        """The call's checked answer, or an EndpointError."""
        tried = self._tried(call, None)
        if tried.answer is None:
            raise EndpointError(tried.error)
        return tried.answer

    def _tried(self, call: Callable[[Any], Awaitable[T]], deadline: float | None) -> Tried[T]:
        """The call within the deadline; the one place where errors leave, without a key in them."""
        from rag_core.llm.transport import run

        library = self._opened()  # before the clock starts: the import alone may take a second
        started = perf_counter()
        tried: Tried[T] = Tried()
        fault = run(self._within_deadline(call, library, tried, deadline or self.endpoint.deadline))
        if fault is not None:
            tried.error = redact(f"endpoint {self.endpoint.name} ({self.endpoint.host}) {fault.text}")
        tried.milliseconds = (perf_counter() - started) * 1000
        return tried

    async def _within_deadline(
        self, call: Callable[[Any], Awaitable[T]], library: Any, tried: Tried[T], deadline: float
    ) -> Fault | None:
        """Why there is no answer; a value so that no exception chain carries a server's words."""
        try:
            async with asyncio.timeout(deadline):
                return await self._tries(call, library, tried, asyncio.get_running_loop().time() + deadline)
        except TimeoutError:
            return Fault(f"did not answer within {deadline:.3g} seconds", retry=False)

    async def _tries(
        self, call: Callable[[Any], Awaitable[T]], library: Any, tried: Tried[T], end: float
    ) -> Fault | None:
        """Try until an answer holds, the attempts or the budget are spent, or the next wait would pass the end."""
        await self._check_address()
        for attempt in range(1, self.endpoint.attempts + 1):
            try:
                tried.answer = await call(library)
                return None
            except Exception as error:
                fault = fault_of(error, self.endpoint.model, keyless=self.endpoint.key.reveal() == NO_KEY)
            wait = fault.wait if fault.wait is not None else _backoff(attempt)
            if not fault.retry or attempt == self.endpoint.attempts:
                return _with_advice(fault, attempt)
            if asyncio.get_running_loop().time() + wait >= end:
                return _with_advice(fault, attempt, wait)
            if not self.budget.take():
                return Fault(f"{fault.text}; the run's {self.budget.limit} retries are spent", retry=False)
            self.retries += 1
            tried.retries += 1
            await asyncio.sleep(wait)
        raise AssertionError("unreachable: the last attempt returns")

    async def _check_address(self) -> None:
        """Check, before the first socket and every minute, what the endpoint's name resolves to."""
        now = monotonic()
        if now - self._checked_at >= LOOKED_UP_EVERY:
            self._addresses = await asyncio.to_thread(self.endpoint.check_address, True)
            self._checked_at = now

    def _opened(self) -> Any:
        """The library's client, made at the first call: importing it takes a second."""
        with self._opening:
            if self._library is None:
                import openai

                from rag_core.llm.transport import http_client

                redact_logs_of_libraries()
                self._library = openai.AsyncOpenAI(
                    api_key="set by the HTTP layer",
                    base_url=self.endpoint.base_url,
                    max_retries=0,
                    timeout=None,  # of a single read; the deadline over all is ours, and may be longer than the usual
                    http_client=http_client(self.endpoint.key, lambda: self._addresses),
                )
            return self._library


def _body(raw: Any) -> dict[str, Any]:
    """The checked JSON object of a raw answer."""
    response = raw.http_response
    return answers.parse_body(response.content, response.headers.get("content-type", ""))


def _backoff(attempt: int) -> float:
    """Seconds before the next try: doubling, with up to a quarter less so that callers do not fall in step."""
    return min(FIRST_WAIT * 2.0 ** (attempt - 1), LONGEST_WAIT) * (1 - random.random() / 4)


def _with_advice(fault: Fault, attempt: int, wait: float | None = None) -> Fault:
    """The fault's text with the number of tries and, where the server named it, when to come back."""
    text = fault.text + (f", after {attempt} tries" if attempt > 1 else "")
    named = fault.wait if fault.wait is not None and fault.wait > 1 else None
    if wait is not None and named is not None:
        text += f"; come back in {named:.0f} seconds"
    return Fault(text, retry=False)
