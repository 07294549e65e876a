"""The client every call to a model endpoint goes through: deadline, retries, checks, and errors that name no key.

Embeddings and one-shot chat, on request with an answer held to a JSON schema as far as the server can; what to ask and
what an answer means is for the callers. Nothing is read from the environment: address and key are the endpoint's own.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf
from ssl import SSLContext
from threading import Lock
from time import monotonic, perf_counter
from typing import Any, Generic, TypeVar

import httpx2

from rag_core.errors import EndpointError, WinnowError
from rag_core.llm import answers, ladder
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.retry import AnswerFault, Fault, RetryBudget, fault_of
from rag_core.llm.secret import NO_KEY, Key, redact, redact_logs_of_libraries

MAX_ANSWER_BYTES = 64_000_000
"""256 embeddings of 3,072 dimensions written as text are about 20 MB."""

MAX_CHAT_BYTES = 2_000_000
"""A chat answer is a few kilobytes; several large ones at once must not fill the memory."""

T = TypeVar("T")
Addresses = Callable[[], Sequence[str]]


class _BoundedStream(httpx2.AsyncByteStream):
    """A body that raises once it has grown over the limit."""

    def __init__(self, inner: httpx2.AsyncByteStream, limit: int) -> None:
        self._inner = inner
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = 0
        async for part in self._inner:
            seen += len(part)
            if seen > self._limit:
                raise AnswerFault(f"sent more than {self._limit:,} bytes")
            yield part

    async def aclose(self) -> None:
        """Close the connection's stream."""
        await self._inner.aclose()


SENT = ("host", "accept", "content-type", "content-length", "transfer-encoding", "connection")
"""The headers of a request that leave, besides our own: the library adds some from the environment, even keys."""


class BoundedTransport(httpx2.AsyncHTTPTransport):
    """Plain HTTP with our key, few headers, and answers of at most `limit` bytes.

    Answers come uncompressed: a small compressed body may hide a very large one. A connection goes to one of
    `addresses`, those that the host's name was found to have when it was checked: looking it up again could lead
    elsewhere. Certificates are still those of the name.
    """

    def __init__(
        self, key: Key, addresses: Addresses = tuple, limit: int = MAX_ANSWER_BYTES, verify: SSLContext | bool = True
    ) -> None:
        super().__init__(trust_env=False, verify=verify)
        self._key = key
        self._addresses = addresses
        self._limit = limit

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send what we mean to send, and bound the answer."""
        kept = {name: value for name, value in request.headers.items() if name.lower() in SENT}
        own = {
            "authorization": f"Bearer {self._key.reveal()}",
            "accept-encoding": "identity",
            "user-agent": "winnow",
        }
        response = await self._sent(request, {**kept, **own})
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise AnswerFault("sent a compressed answer, which was not asked for")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            chat = request.url.path.endswith("/chat/completions")
            limit = min(self._limit, MAX_CHAT_BYTES) if chat else self._limit
            response.stream = _BoundedStream(response.stream, limit)
        return response

    async def _sent(self, request: httpx2.Request, headers: dict[str, str]) -> httpx2.Response:
        """The answer of the first address that takes a connection; of the host itself where no name was resolved."""
        host = request.url.host
        extensions = {**request.extensions, "sni_hostname": host}
        *others, last = self._addresses() or (host,)
        for address in others:
            with suppress(httpx2.ConnectError, httpx2.ConnectTimeout):
                return await super().handle_async_request(_to(address, request, headers, extensions))
        return await super().handle_async_request(_to(last, request, headers, extensions))


def _to(address: str, request: httpx2.Request, headers: dict[str, str], extensions: dict[str, Any]) -> httpx2.Request:
    url = request.url.copy_with(host=address)
    return httpx2.Request(request.method, url, headers=headers, stream=request.stream, extensions=extensions)


def http_client(key: Key, addresses: Addresses) -> Any:
    """The client's HTTP layer with our rules; redirects are answers, not orders."""
    from openai import DefaultAsyncHttpx2Client  # half a second: only who calls an endpoint waits for it

    transport = BoundedTransport(key, addresses, MAX_ANSWER_BYTES)

    return DefaultAsyncHttpx2Client(follow_redirects=False, trust_env=False, transport=transport)


_starting = threading.Lock()


def _loop() -> asyncio.AbstractEventLoop:
    """The process's background loop for calls to endpoints; one also where its first calls come at once.

    A connection belongs to the loop it was opened in: calls in a second one could not use it.
    """
    with _starting:
        return _started()


@lru_cache(maxsize=1)
def _started() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="model-calls", daemon=True).start()
    return loop


def run(work: Coroutine[Any, Any, T]) -> T:
    """The result of asynchronous work, from any thread; an interrupt cancels it."""
    future = asyncio.run_coroutine_threadsafe(work, _loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


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
        from rag_core.llm.client import run

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
