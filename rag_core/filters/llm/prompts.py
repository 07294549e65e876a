"""Candidates → prompts that fit a token budget: numbered, fenced, shortened visibly, with the schema of the answer.

Ids do not appear in a prompt: a candidate is its number. How a passage is fenced is in rag_core.llm.prompt, the words
around are in wording.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_core.filters.llm.decisions import ACTIONS
from rag_core.filters.llm.wording import Variant
from rag_core.llm.prompt import (
    CHARACTERS_PER_TOKEN,
    LEAST_TEXT,
    Prompt,
    clean,
    mark_of,
    object_schema,
    one_line,
    quoted,
    shortened,
)
from rag_core.types import Chunk, Hit, Query

MAX_REFERENCES = 12
FILE_KEYS = ("file", "source", "path")
ANSWER_TOKENS = {"json": 14, "json with reasons": 32, "lines": 7}  # expected of an answer, per candidate
FENCE = 80  # characters of the two lines around a candidate, at most


@dataclass(frozen=True)
class PromptSettings:
    """What prompts depend on besides query and candidates."""

    variant: Variant
    wanted: int
    max_tokens: int
    isolated: bool = False


def make_prompts(
    query: Query, hits: Sequence[Hit], settings: PromptSettings, similarities: Sequence[float | None]
) -> list[Prompt]:
    """The prompts that ask about all hits, each once, in their order; one per hit in isolated mode."""
    room = _room(query, settings)
    groups: list[list[Body]] = []
    used = 0
    for position, (hit, similarity) in enumerate(zip(hits, similarities, strict=True)):
        body = Body(hit.chunk, position, similarity, max(room, LEAST_TEXT))
        if not groups or settings.isolated or used + len(body) > room:
            groups.append([])
            used = 0
        groups[-1].append(body)
        used += len(body)
    return [_prompt(query, group, settings) for group in groups]


def reordered(prompt: Prompt, settings: PromptSettings, hits: Sequence[Hit], similarities: Sequence[Any]) -> Prompt:
    """The same candidates in reverse order, marked as a second look."""
    room = max(_room(prompt.query, settings), LEAST_TEXT)
    group = [Body(hits[at].chunk, at, similarities[at], room) for at in reversed(prompt.positions)]
    return _prompt(prompt.query, group, settings, second=True)


class Body:
    """One candidate's lines in a prompt, its text cut to what the prompt can hold at most."""

    def __init__(self, chunk: Chunk, position: int, similarity: float | None, room: int) -> None:
        self.chunk = chunk
        self.position = position
        header = _header(chunk, similarity)
        text, self.shortened = shortened(clean(chunk.text), max(LEAST_TEXT, room - len(header) - FENCE))
        self.text = quoted(header, text)

    def __len__(self) -> int:
        return len(self.text) + FENCE


def _header(chunk: Chunk, similarity: float | None) -> str:
    """Title, type, file, references and score, each on a line of its own that only we begin."""
    file = next((value for key in FILE_KEYS if isinstance(value := chunk.metadata.get(key), str)), "")
    references = ", ".join(one_line(name, 60) for name in chunk.ref_ids[:MAX_REFERENCES])
    more = len(chunk.ref_ids) - MAX_REFERENCES
    lines = [
        ("title", one_line(chunk.title)),
        ("type", one_line(chunk.type)),
        ("file", one_line(file)),
        ("refers to", references + (f" and {more} more" if more > 0 else "")),
        ("score", "" if similarity is None else f"{similarity:.3f}"),
    ]
    return "\n".join(f"{name}: {value}" for name, value in lines if value)


def _room(query: Query, settings: PromptSettings) -> int:
    """Characters of a prompt that are left for its candidates."""
    around = sum(len(message["content"]) for message in _messages(query, [], settings, "0" * 16))
    return settings.max_tokens * CHARACTERS_PER_TOKEN - around


def _messages(
    query: Query, group: Sequence[Body], settings: PromptSettings, mark: str
) -> tuple[Mapping[str, str], ...]:
    fenced = "\n\n".join(
        f"[{mark} candidate {number}]\n{body.text}\n[{mark} end of {number}]" for number, body in enumerate(group, 1)
    )
    values = {
        "query": one_line(query.text, 4000),
        "wanted": settings.wanted,
        "count": len(group),
        "candidates": fenced,
        "mark": mark,
    }
    return tuple({"role": role, "content": settings.variant.render(role, **values)} for role in ("system", "user"))


def _prompt(query: Query, group: Sequence[Body], settings: PromptSettings, second: bool = False) -> Prompt:
    answer = settings.variant.answer
    mark = mark_of([query.text, *(body.text for body in group)])
    return Prompt(
        messages=_messages(query, group, settings, mark),
        query=query,
        chunks=tuple(body.chunk for body in group),
        schema=None if answer == "lines" else answer_schema(len(group), answer == "json with reasons"),
        answer_tokens=8 + ANSWER_TOKENS[answer] * len(group),
        shortened=sum(body.shortened for body in group),
        second=second,
        positions=tuple(body.position for body in group),
    )


def answer_schema(count: int, with_reasons: bool = False) -> dict[str, Any]:
    """The JSON schema of an answer: only the numbers 1 … count, only the five actions."""
    reason = {"reason": {"type": "string"}} if with_reasons else {}
    decision = object_schema(
        id={"type": "integer", "enum": list(range(1, count + 1))},
        **reason,
        action={"type": "string", "enum": list(ACTIONS)},
    )
    return object_schema(decisions={"type": "array", "items": decision})
