"""Answers of an endpoint, hostile until checked: from bytes to vectors and texts, or the fault that is in them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rag_core.errors import InputError
from rag_core.files import parse_json

MAX_TEXT = 200_000
"""Characters of an answer that are handed on; no reader of decisions reads more."""

MOST_TOKENS = 10_000_000
"""No call of today takes more tokens: a larger count of a server is no count."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one prompt: a text, or why there is none in one sentence without key or chunk text."""

    text: str | None = None
    error: str = ""
    finish_reason: str = ""  # stop, length, …
    prompt_tokens: int | None = None  # as counted by the endpoint
    completion_tokens: int | None = None
    cost: float | None = None  # None where the price is unknown; a stored answer has what it cost then
    cached: bool = False  # whether it was stored, so that nothing was asked now
    retries: int = 0
    milliseconds: float = 0.0
    model: str = ""  # as the server names it
    odds: tuple[tuple[int, float], ...] = ()  # where each token ends in the text, and its log-probability
    unclear: int = 0  # tries without an answer that may have been paid for: too late, broken off, unusable


@dataclass(frozen=True, slots=True)
class Price:
    """What tokens cost, per million, in whatever currency the budget is in."""

    per_million_in: float
    per_million_out: float

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The cost of one call."""
        return (prompt_tokens * self.per_million_in + completion_tokens * self.per_million_out) / 1_000_000


class Fault(Exception):
    """Why a try brought nothing, as the end of a sentence about the endpoint.

    `retry`: whether another try may bring something, after `wait` seconds at least where the server says so. `unclear`:
    whether it may have been paid for. `refusal`: the server's words where it refused the request as it was; for finding
    out what to leave out, never to be shown.
    """

    def __init__(
        self,
        text: str,
        retry: bool = False,
        wait: float | None = None,
        unclear: bool = True,
        refusal: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(text)
        self.text, self.retry, self.wait, self.unclear, self.refusal = text, retry, wait, unclear, refusal


def probability(odds: Sequence[tuple[int, float]], start: int, end: int) -> float | None:
    """How probable the model found what it wrote from `start` to `end`; None where that is not known."""
    begins = [0, *(place for place, _ in odds[:-1])]
    logs = [log for begin, (place, log) in zip(begins, odds, strict=False) if begin < end and place > start]
    return min(1.0, math.exp(sum(logs))) if logs else None


def parse_body(body: bytes, content_type: str) -> dict[str, Any]:
    """The JSON object of an answer, or a Fault; a body that ends too early is worth a second try."""
    if "html" in content_type.lower():
        raise Fault("sent a web page instead of an answer; check its address")
    try:
        value = parse_json(body.decode("utf-8"), "the answer")
    except (InputError, UnicodeDecodeError):
        raise Fault("sent an answer that is not JSON", retry=True) from None
    if not isinstance(value, dict):
        raise Fault(f"sent a JSON {type(value).__name__}, expected an object")
    if "error" in value and value["error"] is not None:
        raise Fault("reported an error inside a successful answer")
    return value


def vectors_of(body: dict[str, Any], count: int, dimension: int | None) -> list[list[float]]:
    """The vectors in the order of the texts: one for each index 0…count−1, all of one width, all finite."""
    data = body.get("data")
    if not isinstance(data, list) or len(data) != count:
        got = len(data) if isinstance(data, list) else "no list of"
        raise Fault(f"sent {got} embeddings for {count} texts")
    vectors: dict[int, list[float]] = {}
    for item in data:
        index = item.get("index") if isinstance(item, dict) else None
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count or index in vectors:
            raise Fault(f"numbered its embeddings wrongly, expected each of 0 to {count - 1} once")
        vector = item.get("embedding")
        if not isinstance(vector, list) or not vector:
            raise Fault("sent an embedding that is no list of numbers")
        if any(isinstance(x, bool) or not isinstance(x, int | float) or not math.isfinite(x) for x in vector):
            raise Fault("sent an embedding that holds something else than finite numbers")
        if not any(vector):
            raise Fault("sent an embedding of zeros")
        vectors[index] = [float(x) for x in vector]
    widths = {len(vector) for vector in vectors.values()}
    expected = dimension if dimension is not None else min(widths, default=0)
    if widths - {expected}:
        raise Fault(f"sent an embedding of {min(widths - {expected})} dimensions, expected {expected}")
    return [vectors[index] for index in range(count)]


def scores_of(body: dict[str, Any], count: int) -> list[float]:
    """A reranker's scores in the order of the texts: one for each index 0…count−1, all finite."""
    rows = next((body[key] for key in ("results", "data") if isinstance(body.get(key), list)), None)
    if rows is None or len(rows) != count:
        raise Fault(f"sent {'no list of' if rows is None else len(rows)} scores for {count} texts")
    scores: dict[int, float] = {}
    for row in rows:
        index = row.get("index") if isinstance(row, dict) else None
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count or index in scores:
            raise Fault(f"numbered its scores wrongly, expected each of 0 to {count - 1} once")
        score = row.get("relevance_score", row.get("score"))
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            raise Fault("sent a score that is no finite number")
        scores[index] = float(score)
    return [scores[index] for index in range(count)]


def chat_answer(body: dict[str, Any], model: str) -> Answer:
    """The first choice's text, with its finish reason first: a refusal or an empty message is a fault."""
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise Fault("sent an answer without a choice")
    reason = choices[0].get("finish_reason")
    message = choices[0].get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if reason == "content_filter" or (isinstance(message, dict) and message.get("refusal")):
        raise Fault("refused to answer")
    if not isinstance(content, str) or not content.strip():
        cut = "; it was cut off at the limit of its length, a larger max_tokens may help" if reason == "length" else ""
        raise Fault(f"sent an empty message{cut}")
    usage = body.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    return Answer(
        text=content[:MAX_TEXT],
        finish_reason=reason if isinstance(reason, str) else "unknown",
        prompt_tokens=token_count(counts.get("prompt_tokens")),
        completion_tokens=token_count(counts.get("completion_tokens")),
        odds=_odds(choices[0].get("logprobs"), content),
        model=served[:200] if isinstance(served := body.get("model"), str) else model,
    )


def _odds(value: Any, text: str) -> tuple[tuple[int, float], ...]:
    """Where each token ends, and its log-probability; nothing where the tokens are not those of the text."""
    content = value.get("content") if isinstance(value, dict) else None
    odds, end = [], 0
    for one in content if isinstance(content, list) else ():
        token, log = (one.get("token"), one.get("logprob")) if isinstance(one, dict) else (None, None)
        if not isinstance(token, str) or not text.startswith(token, end) or isinstance(log, bool):
            return ()
        if not isinstance(log, int | float) or not -1e4 <= log <= 1e-6:
            return ()
        end += len(token)
        odds.append((end, float(log)))
    return tuple(odds) if end == len(text) <= MAX_TEXT else ()


def token_count(value: Any) -> int | None:
    """A server's count of tokens, None where it is none."""
    usable = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS
    return value if usable else None
