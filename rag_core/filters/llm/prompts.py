"""Candidates → prompts that fit a token budget: numbered, fenced, shortened visibly, with the schema of the answer.

Chunk text is untrusted: each candidate stands between lines that carry a mark made from the content of the prompt,
every line of its text is marked, ids do not appear, and characters that do not show are taken out. The mark is a hash,
so equal content gives an equal prompt and a stored answer is found again. The words around are in wording.py.
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_core.filters.llm.decisions import ACTIONS
from rag_core.filters.llm.wording import Variant
from rag_core.types import Chunk, Hit, Query

CHARACTERS_PER_TOKEN = 4
"""A rough count for English with common tokenizers; the endpoint's own count is reported where it gives one."""

LEAST_TEXT = 200  # characters of a candidate that are always shown
MAX_HEADER = 200  # characters of a title, type or file
MAX_REFERENCES = 12
FILE_KEYS = ("file", "source", "path")
ANSWER_TOKENS = {"json": 14, "json with reasons": 32, "lines": 7}  # expected of an answer, per candidate


@dataclass(frozen=True, slots=True)
class Prompt:
    """One call: what is sent, and who the numbers 1 … n in it are."""

    messages: tuple[Mapping[str, str], ...]
    schema: Mapping[str, Any] | None  # of the answer; None where lines are asked for
    query: Query
    chunks: tuple[Chunk, ...]  # in the order of their numbers
    answer: str = "json"
    shortened: int = 0  # candidates whose text was shortened
    second: bool = False  # the same candidates in another order, to check the first answer
    positions: tuple[int, ...] = field(default=(), compare=False)  # of the candidates in the judged list

    @property
    def tokens(self) -> int:
        """The estimated size of the prompt."""
        return estimate_tokens("".join(message["content"] for message in self.messages))

    @property
    def answer_tokens(self) -> int:
        """The estimated size of the answer."""
        return 8 + ANSWER_TOKENS[self.answer] * len(self.chunks)


def estimate_tokens(text: str) -> int:
    """Tokens of a text, estimated: a quarter of its characters, rounded up."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def clean(text: str) -> str:
    """The text as it is shown to the model: NFC, no controls but the newline, no characters that do not show."""
    kept = (
        character if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co") else " "
        for character in unicodedata.normalize("NFC", text.replace("\r\n", "\n"))
    )
    return "".join(kept)


def one_line(text: str, limit: int = MAX_HEADER) -> str:
    """Clean text on one line, shortened with an ellipsis."""
    line = " ".join(clean(text[: 4 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


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
    room = settings.max_tokens * CHARACTERS_PER_TOKEN - _overhead(query, settings)
    bodies = [
        Body(hit.chunk, position, similarity, max(room, LEAST_TEXT))
        for position, (hit, similarity) in enumerate(zip(hits, similarities, strict=True))
    ]
    return [_prompt(query, group, settings) for group in _groups(bodies, room, settings.isolated)]


def reordered(prompt: Prompt, settings: PromptSettings, hits: Sequence[Hit], similarities: Sequence[Any]) -> Prompt:
    """The same candidates in reverse order, marked as a second look."""
    positions = list(reversed(prompt.positions))
    room = settings.max_tokens * CHARACTERS_PER_TOKEN - _overhead(prompt.query, settings)
    group = [Body(hits[at].chunk, at, similarities[at], max(room, LEAST_TEXT)) for at in positions]
    return _prompt(prompt.query, group, settings, second=True)


class Body:
    """One candidate's lines in a prompt, its text cut to what the prompt can hold at most."""

    def __init__(self, chunk: Chunk, position: int, similarity: float | None, room: int) -> None:
        self.chunk = chunk
        self.position = position
        header = _header(chunk, similarity)
        text, self.shortened = _shortened(clean(chunk.text), max(LEAST_TEXT, room - len(header) - _FENCE))
        self.text = header + "\n" + "\n".join("| " + line for line in text.split("\n"))

    def __len__(self) -> int:
        return len(self.text) + _FENCE


_FENCE = 80  # characters of the two lines around a candidate, at most


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


def _shortened(text: str, room: int) -> tuple[str, bool]:
    """The text, or its beginning with a line that says how much is left out. Each line costs two characters more."""
    if len(text) + 2 * text.count("\n") <= room:
        return text, False
    kept, used = 0, 0
    for line in text.split("\n"):
        if used + len(line) + 3 > room - 60:
            kept += max(0, room - 60 - used - 3)
            break
        used += len(line) + 3
        kept += len(line) + 1
    kept = min(kept, len(text))
    return f"{text[:kept].rstrip()}\n[… {len(text) - kept:,} characters left out …]", True


def _groups(bodies: Sequence[Body], room: int, isolated: bool) -> list[list[Body]]:
    """The candidates in order, each group as large as the room allows, at least one each."""
    groups: list[list[Body]] = []
    used = 0
    for body in bodies:
        if not groups or isolated or used + len(body) > room:
            groups.append([])
            used = 0
        groups[-1].append(body)
        used += len(body)
    return groups


def _overhead(query: Query, settings: PromptSettings) -> int:
    """Characters of a prompt without any candidate."""
    return sum(len(message["content"]) for message in _messages(query, [], settings, "0" * 16))


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
    mark = mark_of([query.text, *(body.text for body in group)])
    with_reasons = settings.variant.answer == "json with reasons"
    return Prompt(
        messages=_messages(query, group, settings, mark),
        schema=None if settings.variant.answer == "lines" else answer_schema(len(group), with_reasons),
        query=query,
        chunks=tuple(body.chunk for body in group),
        answer=settings.variant.answer,
        shortened=sum(body.shortened for body in group),
        second=second,
        positions=tuple(body.position for body in group),
    )


def mark_of(parts: Sequence[str]) -> str:
    """Sixteen hexadecimal digits that stand in none of the texts and change with any of them.

    A text that holds its own prompt's mark would be a fixed point of the hash; should one occur, the next is taken.
    """
    content = "\x00".join(parts)
    for attempt in range(1000):
        mark = hashlib.sha256(f"{attempt}\x00{content}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
        if mark not in content:
            return mark
    raise AssertionError("a thousand hashes of a text cannot all stand in it")


def answer_schema(count: int, with_reasons: bool = False) -> dict[str, Any]:
    """The JSON schema of an answer: only the numbers 1 … count, only the five actions."""
    reason = {"reason": {"type": "string"}} if with_reasons else {}
    properties = {
        "id": {"type": "integer", "enum": list(range(1, count + 1))},
        **reason,
        "action": {"type": "string", "enum": list(ACTIONS)},
    }
    decision = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"decisions": {"type": "array", "items": decision}},
        "required": ["decisions"],
        "additionalProperties": False,
    }
