"""The HTTP layer under the client: no redirects, no proxies or keys from the environment, bounded answers.

Asynchronous calls run on one background thread of the process, so that a wall-clock deadline can stop a slow drip.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import lru_cache
from ssl import SSLContext
from typing import Any, TypeVar

import httpx2
from openai import DefaultAsyncHttpx2Client

from rag_core.llm.retry import AnswerFault
from rag_core.llm.secret import Key

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
