"""The client every call to a model endpoint goes through: deadline, retries, checks, and errors that name no key.

Embeddings and chat, on request with an answer held to a JSON schema as far as the server can; what to ask and what an
answer means is for the callers. Nothing is read from the environment: address and key are the endpoint's own. Requests
are written here and not by a vendor's library: such a one takes a second to load, reads the environment (keys too) and
follows redirects, and what is left of it behind these rules is one POST.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from email.utils import parsedate_to_datetime
from functools import lru_cache
from math import inf
from ssl import SSLContext
from threading import Lock
from time import monotonic, perf_counter, time
from typing import Any, Generic, TypeVar

import httpx2

from rag_core.errors import EndpointError, InputError, WinnowError
from rag_core.files import parse_json
from rag_core.llm import allowance
from rag_core.llm.accepted import FORMS, Accepted, accepted_by, remember
from rag_core.llm.answer import Answer, Fault, chat_answer, parse_body, scores_of, token_count, vectors_of
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.prompt import object_schema
from rag_core.llm.secret import NO_KEY, redact, redact_logs_of_libraries

MAX_ANSWER_BYTES = 64_000_000
"""256 embeddings of 3,072 dimensions written as text are about 20 MB."""

MAX_CHAT_BYTES = 2_000_000
"""A chat answer is a few kilobytes; several large ones at once must not fill the memory."""

FIRST_WAIT = 0.5
LONGEST_WAIT = 8.0
LOOKED_UP_EVERY = 60.0
"""Seconds after which a name is resolved and checked anew; endpoints move."""

T = TypeVar("T")
CHAT = "/chat/completions"
RERANK = "/rerank"


class RetryBudget:
    """How many retries one run may spend, over all its calls and threads."""

    def __init__(self, limit: int = 20) -> None:
        self.limit = limit
        self.used = 0
        self._lock = Lock()

    def take(self) -> bool:
        """Spend one retry; False where none is left."""
        with self._lock:
            if self.used >= self.limit:
                return False
            self.used += 1
            return True


# A connection belongs to the loop it was opened in, so all calls of the process share one.

_starting = Lock()


def _loop() -> asyncio.AbstractEventLoop:
    """The process's background loop for calls to endpoints; one also where its first calls come at once."""
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


@dataclass
class _Call(Generic[T]):
    """How a call goes: its checked answer, or why there is none, and what it took."""

    answer: T | None = None
    error: str = ""
    retries: int = 0
    milliseconds: float = 0.0
    unclear: int = 0


class Client:
    """Calls one endpoint. Every method ends within the deadline, with a checked answer or an EndpointError."""

    def __init__(self, endpoint: Endpoint, budget: RetryBudget | None = None, verify: SSLContext | bool = True) -> None:
        self.endpoint = endpoint
        self.budget = budget or RetryBudget()
        self.retries = 0
        self._texts = "documents"  # what the server calls the texts to rerank
        self._verify = verify
        self._addresses: list[str] = []
        self._checked_at = -inf
        self._http: httpx2.AsyncClient | None = None
        self._opening = Lock()

    @property
    def accepted(self) -> Accepted:
        """What is known of what the model takes at this address."""
        return accepted_by((self.endpoint.base_url, self.endpoint.model))

    def prepare(self) -> None:
        """Load what the first call needs (certificates), so that a time given for several calls is not spent on it."""
        self._opened()

    def embed(self, texts: Sequence[str], dimension: int | None = None) -> list[list[float]]:
        """One vector per text, in the order of the texts; all of width `dimension` where it is given."""
        request = {"model": self.endpoint.model, "input": list(texts), "encoding_format": "float"}

        async def call() -> list[list[float]]:
            return vectors_of(await self._sent("POST", "/embeddings", request), len(texts), dimension)

        return self._run(call) if texts else []

    def chat(self, messages: Sequence[Mapping[str, str]], **options: Any) -> Answer:
        """One answer to the messages (role, content); further options as the chat endpoint has them."""
        return self._run(self._chat(messages, None, options))

    def try_chat(
        self,
        messages: Sequence[Mapping[str, str]],
        schema: Mapping[str, Any] | None = None,
        deadline: float | None = None,
    ) -> Answer:
        """`chat` as a value: the answer or the error, within `deadline` seconds (the endpoint's unless given).

        With a schema the answer is asked for in that form, or in the nearest to it that the server takes.
        """
        try:
            done = self._called(self._chat(messages, schema, {}), deadline)
        except WinnowError as error:  # an address that may not be asked, found out when its name was resolved
            return Answer(error=redact(str(error)))
        answer = done.answer or Answer(error=done.error)
        text = None if answer.text is None else redact(answer.text)  # a server may send back the key it got
        odds = answer.odds if text == answer.text else ()  # they are places in the text
        answer = replace(answer, text=text, model=redact(answer.model), odds=odds)
        return replace(answer, retries=done.retries, milliseconds=done.milliseconds, unclear=done.unclear)

    def try_rerank(self, query: str, texts: Sequence[str], deadline: float | None = None) -> tuple[list[float], Answer]:
        """A score a text, in their order, and the call as an answer; without scores where it has an error."""

        async def call() -> tuple[list[float], Answer]:
            request = {"model": self.endpoint.model, "query": query, self._texts: list(texts)}
            body = await self._sent("POST", RERANK, request)
            usage = body.get("usage")
            tokens = token_count(usage.get("total_tokens")) if isinstance(usage, dict) else None
            return scores_of(body, len(texts)), Answer(text=f"{len(texts)} scores", prompt_tokens=tokens)

        async def either() -> tuple[list[float], Answer]:
            try:
                return await call()
            except Fault as fault:  # Text Embeddings Inference has a form of its own
                if fault.refusal is None or self._texts != "documents":
                    raise
                self._texts = "texts"
            try:
                return await call()
            except Fault:
                self._texts = "documents"
                raise

        try:
            done = self._called(either, deadline)
        except WinnowError as error:
            return [], Answer(error=redact(str(error)))
        scores, answer = done.answer or ([], Answer(error=done.error))
        return scores, replace(answer, retries=done.retries, milliseconds=done.milliseconds, unclear=done.unclear)

    def models(self) -> list[str]:
        """The model names the endpoint lists."""

        async def call() -> list[str]:
            listed = (await self._sent("GET", "/models")).get("data")
            items = listed if isinstance(listed, list) else []
            return [str(item.get("id"))[:200] for item in items if isinstance(item, dict) and item.get("id")]

        return self._run(call)

    def _chat(
        self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> Callable[[], Awaitable[Answer]]:
        """A chat call that leaves out what the server refuses, and remembers it once the call went through."""
        model, wanted = self.endpoint.model, {**self.endpoint.options, **options}
        request = {"model": model, "messages": [dict(message) for message in messages]}

        async def call() -> Answer:
            accepted: Accepted | None = self.accepted
            while accepted is not None:
                sent = accepted.options(wanted, schema)
                try:
                    body = await self._sent("POST", CHAT, {**request, **sent})
                except Fault as fault:
                    accepted = accepted.without(fault.refusal, sent) if fault.refusal is not None else None
                    if accepted is None:
                        raise
                else:
                    remember((self.endpoint.base_url, model), accepted)
                    return chat_answer(body, model)
            raise AssertionError("unreachable: the last refusal is raised")

        return call

    def _run(self, call: Callable[[], Awaitable[T]]) -> T:
        """The call's checked answer, or an EndpointError."""
        done = self._called(call, None)
        if done.answer is None:
            raise EndpointError(done.error)
        return done.answer

    def _called(self, call: Callable[[], Awaitable[T]], deadline: float | None) -> _Call[T]:
        """The call within the deadline; the one place where errors leave, without a key in them."""
        allowance.take()
        self._opened()  # before the clock starts
        started, done, seconds = perf_counter(), _Call[T](), deadline or self.endpoint.deadline

        async def within() -> str:
            try:
                async with asyncio.timeout(seconds):
                    return await self._tries(call, done, asyncio.get_running_loop().time() + seconds)
            except TimeoutError:
                done.unclear += 1
                return f"did not answer within {seconds:.3g} seconds"

        if problem := run(within()):  # a value, so that no exception chain carries a server's words
            done.error = redact(f"endpoint {self.endpoint.name} ({self.endpoint.host}) {problem}")
        done.milliseconds = (perf_counter() - started) * 1000
        return done

    async def _tries(self, call: Callable[[], Awaitable[T]], done: _Call[T], end: float) -> str:
        """Try until an answer holds, the attempts or the budget are spent, or the next wait would pass the end."""
        if monotonic() - self._checked_at >= LOOKED_UP_EVERY:  # before the first socket
            self._addresses = await asyncio.to_thread(self.endpoint.check_address, True)
            self._checked_at = monotonic()
        for attempt in range(1, self.endpoint.attempts + 1):
            try:
                done.answer = await call()
                return ""
            except Fault as caught:
                fault = caught
            except UnicodeEncodeError:
                fault = Fault("was given text that is not valid Unicode", unclear=False)
            except Exception as error:
                fault = Fault(f"failed ({type(error).__name__})")
            done.unclear += fault.unclear
            tried = f", after {attempt} tries" if attempt > 1 else ""
            # doubling, with up to a quarter less so that callers do not fall in step
            usual = min(FIRST_WAIT * 2.0 ** (attempt - 1), LONGEST_WAIT) * (1 - random.random() / 4)
            wait = usual if fault.wait is None else fault.wait
            if not fault.retry or attempt == self.endpoint.attempts:
                return f"{fault.text}{tried}"
            if asyncio.get_running_loop().time() + wait >= end:
                named = f"; come back in {fault.wait:.0f} seconds" if fault.wait and fault.wait > 1 else ""
                return f"{fault.text}{tried}{named}"
            if not self.budget.take():
                return f"{fault.text}; the run's {self.budget.limit} retries are spent"
            self.retries += 1
            done.retries += 1
            await asyncio.sleep(wait)
        raise AssertionError("unreachable: the last attempt returns")

    def _opened(self) -> httpx2.AsyncClient:
        with self._opening:
            if self._http is None:
                redact_logs_of_libraries()
                # no time limit on a single read: the deadline over all is ours, and may be longer than the usual
                self._http = httpx2.AsyncClient(
                    trust_env=False, verify=self._verify, follow_redirects=False, timeout=None
                )
            return self._http

    async def _sent(self, method: str, path: str, request: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The checked JSON object the endpoint answers with, or a Fault.

        A connection goes to one of the addresses that the host's name had when it was checked, the first that takes
        it: looking the name up again could lead elsewhere. Certificates are still those of the name.
        """
        data = b"" if request is None else json.dumps(request, ensure_ascii=False).encode("utf-8")
        url = httpx2.URL(self.endpoint.base_url.rstrip("/") + path)
        *others, last = self._addresses or [url.host]
        try:
            for address in others:
                with suppress(httpx2.ConnectError, httpx2.ConnectTimeout):
                    return await self._exchanged(method, url, address, data)
            return await self._exchanged(method, url, last, data)
        except httpx2.ConnectError as error:
            fault = Fault(_UNREACHED, retry=True, unclear=False)
            fault.__cause__ = error
        except httpx2.HTTPError:
            fault = Fault(_UNREACHED, retry=True)
        raise fault

    async def _exchanged(self, method: str, url: httpx2.URL, address: str, data: bytes) -> dict[str, Any]:
        """One request and its answer. Answers come uncompressed and bounded: a small body may hide a very large one."""
        headers = {
            "authorization": f"Bearer {self.endpoint.key.reveal()}",
            "host": url.netloc.decode("ascii"),
            "accept": "application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": "winnow",
        }
        limit = min(MAX_ANSWER_BYTES, MAX_CHAT_BYTES) if url.path.endswith(CHAT) else MAX_ANSWER_BYTES
        body, host = bytearray(), {"sni_hostname": url.host}
        async with self._opened().stream(
            method, url.copy_with(host=address), headers=headers, content=data, extensions=host
        ) as response:
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise Fault("sent a compressed answer, which was not asked for")
            async for part in response.aiter_raw():
                body += part
                if len(body) > limit:
                    raise Fault(f"sent more than {limit:,} bytes")
        if response.status_code >= 300:
            raise self._refusal(response.status_code, response.headers, bytes(body))
        if url.path.endswith(RERANK) and body.lstrip().startswith(b"["):
            body = bytearray(b'{"results": ' + body + b"}")
        return parse_body(bytes(body), response.headers.get("content-type", ""))

    def _refusal(self, status: int, headers: Mapping[str, str], body: bytes) -> Fault:
        """What a status says, with the server's short code and the parameter it names; none of its other words."""
        if status < 400:
            return Fault("answered with a redirect, which is not followed; set the address it leads to", unclear=False)
        meaning = _STATUS.get(status, "failed on its side" if status >= 500 else "refused the request")
        if status == 401 and self.endpoint.key.reveal() == NO_KEY:
            meaning = "wants a key and none is set; set OPENAI_API_KEY"
        if status == 404:
            meaning += f" (model {self.endpoint.model})"
        try:
            said = parse_json(body[:100_000].decode("utf-8", "replace"), "the refusal")
        except InputError:
            said = {}
        words: dict[str, Any] = said if isinstance(said, dict) else {}
        inner = words.get("error")
        error = inner if isinstance(inner, dict) else words
        code, param = (error.get("code") or error.get("type")), error.get("param")
        named = f", {code}" if isinstance(code, str) and re.fullmatch(r"[A-Za-z0-9_.]{1,60}", code) else ""
        named += f": {param}" if isinstance(param, str) and re.fullmatch(r"[a-z_]{1,40}", param) else ""
        retry = (status in (408, 409, 429) or status >= 500) and headers.get("x-should-retry") != "false"
        return Fault(
            f"{meaning} (status {status}{named})",
            retry,
            _retry_after(headers.get("retry-after")),
            unclear=False,
            refusal=words if status in _REFUSALS else None,
        )


_UNREACHED = "cannot be reached or broke off; check that it is running"
_REFUSALS = (400, 422, 501)
_STATUS = {
    400: "refused the request as malformed",
    401: "did not accept the key; set the right key for it",
    403: "does not allow this key to use the model",
    404: "does not know the model or the path; check the model's name and the address",
    408: "gave up waiting",
    413: "says that the request is too large",
    422: "refused the request as malformed",
    429: "asks for fewer requests",
}


def _retry_after(value: str | None) -> float | None:
    """Seconds to wait from a Retry-After header (seconds or a date), or None."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time()
        except ValueError:
            return None
    return seconds if 0 <= seconds < 1e9 else None


# Test connection


@dataclass(frozen=True)
class Connection:
    """What a working endpoint showed of itself."""

    endpoint: str
    address: str
    model: str  # as the server names it
    form: str  # see accepted.FORMS
    left_out: tuple[str, ...]  # parameters it refused
    milliseconds: float
    prompt_tokens: int | None
    completion_tokens: int | None
    retries: int

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def to_text(self) -> str:
        """What came of it, in one line."""
        without = f", without {' and '.join(self.left_out)}, which it refuses" if self.left_out else ""
        where = f"{self.address} answers as {self.model} in {self.milliseconds:,.0f} ms"
        return f"{where}, form {self.form}{without}"


def check_connection(endpoint: Endpoint) -> Connection:
    """Ask the endpoint one small question; an EndpointError says what to do where that fails."""
    client = Client(endpoint)
    question = [{"role": "user", "content": 'Answer with JSON only: {"answer": "yes"}'}]
    said = client.try_chat(question, object_schema(answer={"type": "string", "enum": ["yes"]}))
    if said.text is None:
        names: list[str] = []
        if "does not know the model" in said.error:
            with suppress(EndpointError):
                names = client.models()
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        raise EndpointError(said.error + (f"; it has {', '.join(names[:8])}{more}" if names else ""))
    accepted = client.accepted
    return Connection(
        endpoint=endpoint.name,
        address=endpoint.base_url,
        model=said.model,
        form=FORMS[accepted.form],
        left_out=tuple(sorted(accepted.left_out)),
        milliseconds=said.milliseconds,
        prompt_tokens=said.prompt_tokens,
        completion_tokens=said.completion_tokens,
        retries=said.retries,
    )
