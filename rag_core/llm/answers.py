"""Answers of an endpoint, hostile until checked: from bytes to embeddings and chat texts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from rag_core.errors import InputError
from rag_core.files import parse_json
from rag_core.llm.retry import AnswerFault


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """What a model said: its text, why it stopped (stop, length, content_filter …) and the tokens it counted."""

    text: str
    finish_reason: str
    model: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


def parse_body(body: bytes, content_type: str) -> dict[str, Any]:
    """The JSON object of an answer, or an AnswerFault; a body that ends too early is worth a second try."""
    if "html" in content_type.lower():
        raise AnswerFault("sent a web page instead of an answer; check its address")
    try:
        value = parse_json(body.decode("utf-8"), "the answer")
    except (InputError, UnicodeDecodeError):
        raise AnswerFault("sent an answer that is not JSON", retry=True) from None
    if not isinstance(value, dict):
        raise AnswerFault(f"sent a JSON {type(value).__name__}, expected an object")
    if "error" in value and value["error"] is not None:
        raise AnswerFault("reported an error inside a successful answer")
    return value


def embeddings(answer: dict[str, Any], count: int, dimension: int | None) -> list[list[float]]:
    """The vectors in the order of the texts: one for each index 0…count−1, all of one width, all finite."""
    data = answer.get("data")
    if not isinstance(data, list) or len(data) != count:
        got = len(data) if isinstance(data, list) else "no list of"
        raise AnswerFault(f"sent {got} embeddings for {count} texts")
    found: dict[int, list[float]] = {}
    for item in data:
        index = item.get("index") if isinstance(item, dict) else None
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count or index in found:
            raise AnswerFault(f"numbered its embeddings wrongly, expected each of 0 to {count - 1} once")
        found[index] = _vector(item.get("embedding"))
    widths = {len(vector) for vector in found.values()}
    expected = dimension if dimension is not None else min(widths, default=0)
    if widths - {expected}:
        wrong = sorted(widths - {expected})[0]
        raise AnswerFault(f"sent an embedding of {wrong} dimensions, expected {expected}")
    return [found[index] for index in range(count)]


def _vector(value: Any) -> list[float]:
    if not isinstance(value, list) or not value:
        raise AnswerFault("sent an embedding that is no list of numbers")
    if any(isinstance(x, bool) or not isinstance(x, int | float) or not math.isfinite(x) for x in value):
        raise AnswerFault("sent an embedding that holds something else than finite numbers")
    if not any(value):
        raise AnswerFault("sent an embedding of zeros")
    return [float(x) for x in value]


def chat_answer(answer: dict[str, Any], model: str) -> ChatAnswer:
    """The first choice's text, with its finish reason first: a refusal or an empty message is a fault."""
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise AnswerFault("sent an answer without a choice")
    reason = choices[0].get("finish_reason")
    message = choices[0].get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if reason == "content_filter" or (isinstance(message, dict) and message.get("refusal")):
        raise AnswerFault("refused to answer")
    if not isinstance(content, str) or not content.strip():
        raise AnswerFault("sent an empty message")
    usage = answer.get("usage") if isinstance(answer.get("usage"), dict) else {}
    named = answer.get("model")
    return ChatAnswer(
        text=content,
        finish_reason=reason if isinstance(reason, str) else "unknown",
        model=named if isinstance(named, str) else model,
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
    )


def _count(usage: Any, key: str) -> int | None:
    value = usage.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
