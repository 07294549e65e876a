"""The client every call to a model endpoint goes through: deadline, retries, checks, and errors that name no key.

Embeddings and one-shot chat; what to ask and what an answer means is for the callers. Nothing is read from the
environment: the address and key are the endpoint's own.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from rag_core.errors import EndpointError
from rag_core.llm import answers
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.retry import Fault, RetryBudget, fault_of
from rag_core.llm.secret import redact

T = TypeVar("T")

FIRST_WAIT = 0.5
LONGEST_WAIT = 8.0


class Client:
    """Calls one endpoint. Every method ends within the deadline, with a checked answer or an EndpointError."""

    def __init__(self, endpoint: Endpoint, budget: RetryBudget | None = None) -> None:
        self.endpoint = endpoint
        self.budget = budget or RetryBudget()
        self.retries = 0
        self._checked = False
        self._library: Any = None

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

        async def call(library: Any) -> answers.ChatAnswer:
            asked = {"temperature": 0, **options}
            raw = await library.chat.completions.with_raw_response.create(
                model=self.endpoint.model, messages=[dict(message) for message in messages], **asked
            )
            return answers.chat_answer(_body(raw), self.endpoint.model)

        return self._run(call)

    def models(self) -> list[str]:
        """The model names the endpoint lists."""

        async def call(library: Any) -> list[str]:
            raw = await library.models.with_raw_response.list()
            listed = _body(raw).get("data")
            items = listed if isinstance(listed, list) else []
            return [str(item.get("id"))[:200] for item in items if isinstance(item, dict) and item.get("id")]

        return self._run(call)

    def _run(self, call: Callable[[Any], Awaitable[T]]) -> T:
        """The call's checked answer within the deadline; the one place where errors leave, without a key in them."""
        from rag_core.llm.transport import run

        library = self._opened()  # before the clock starts: the import alone may take a second
        answer, fault = run(self._within_deadline(call, library))
        if fault is not None:
            raise EndpointError(redact(f"endpoint {self.endpoint.name} ({self.endpoint.host}) {fault.text}"))
        assert answer is not None
        return answer

    async def _within_deadline(
        self, call: Callable[[Any], Awaitable[T]], library: Any
    ) -> tuple[T | None, Fault | None]:
        """The answer or the fault; the fault is a value so that no exception chain carries a server's words."""
        deadline = self.endpoint.deadline
        try:
            async with asyncio.timeout(deadline):
                return await self._tries(call, library, asyncio.get_running_loop().time() + deadline)
        except TimeoutError:
            return None, Fault(f"did not answer within {deadline:g} seconds", retry=False)

    async def _tries(
        self, call: Callable[[Any], Awaitable[T]], library: Any, end: float
    ) -> tuple[T | None, Fault | None]:
        """Try until an answer holds, the attempts or the budget are spent, or the next wait would pass the end."""
        await self._check_address()
        for attempt in range(1, self.endpoint.attempts + 1):
            try:
                return await call(library), None
            except Exception as error:
                fault = fault_of(error, self.endpoint.model)
            wait = fault.wait if fault.wait is not None else _backoff(attempt)
            if not fault.retry or attempt == self.endpoint.attempts:
                return None, _with_advice(fault, attempt)
            if asyncio.get_running_loop().time() + wait >= end:
                return None, _with_advice(fault, attempt, wait)
            if not self.budget.take():
                return None, Fault(f"{fault.text}; the run's {self.budget.limit} retries are spent", retry=False)
            self.retries += 1
            await asyncio.sleep(wait)
        raise AssertionError("unreachable: the last attempt returns")

    async def _check_address(self) -> None:
        """Check once, before the first socket, what the endpoint's name resolves to."""
        if not self._checked:
            await asyncio.to_thread(self.endpoint.check_address, True)
            self._checked = True

    def _opened(self) -> Any:
        """The library's client, made at the first call: importing it takes a second."""
        if self._library is None:
            import openai

            from rag_core.llm.transport import http_client

            self._library = openai.AsyncOpenAI(
                api_key="set by the HTTP layer",
                base_url=self.endpoint.base_url,
                max_retries=0,
                timeout=self.endpoint.deadline,
                http_client=http_client(self.endpoint.key),
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
