"""Candidates → prompts that fit a token budget: numbered, fenced, shortened visibly, with the schema of the answer.

Ids do not appear in a prompt: a candidate is its number. How a passage is fenced is in rag_core.llm.prompt. The words
around come from variants: Jinja2 files, run in a sandbox, with a system text and a user text, that say in comments at
their top how they want to be answered (`answer: json`, `json with reasons` or `lines`) and what they are for. Shipped
ones lie in rag_core/filters/prompts, a user's own in the workspace's folder prompts; none decides about the fence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from rag_core.errors import SpecError
from rag_core.files import read_text
from rag_core.filters.llm.decisions import ACTIONS
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
from rag_core.workspace import resolve_workspace

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


# ---------------------------------------------------------------- variants

SHIPPED = Path(__file__).resolve().parents[1] / "prompts"
MAX_FILE = 50_000
ANSWERS = ("json", "json with reasons", "lines")
DEFAULT = "terse"


@dataclass(frozen=True)
class Variant:
    """A prompt's wording: `system` and `user` take query, wanted, count, candidates and mark."""

    name: str
    answer: str  # one of ANSWERS
    about: str
    source: str

    def render(self, block: str, **values: Any) -> str:
        """The text of block `system` or `user`, without the blank lines around it."""
        template = _compiled(self.source)
        try:
            return "".join(template.blocks[block](template.new_context(values))).strip()
        except Exception as error:  # a template of the user's may fail in any way
            raise SpecError(f"prompt variant {self.name!r} cannot be rendered ({type(error).__name__})") from None


@lru_cache(maxsize=64)
def _compiled(source: str) -> Any:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False).from_string(source)


def folders() -> Iterator[Path]:
    """Where variants lie: shipped ones first, their names cannot be taken."""
    yield SHIPPED
    yield resolve_workspace() / "prompts"


def variant_names() -> list[str]:
    """The names of all variants, shipped and own."""
    return sorted({path.stem for folder in folders() if folder.is_dir() for path in folder.glob("*.j2")})


def read_variant(name: str) -> Variant:
    """The variant of that name, or a SpecError: unknown, unreadable, or without its two blocks."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_\-]{0,63}", name):
        for folder in folders():
            if (path := folder / f"{name}.j2").is_file():
                return parse_variant(name, read_text(path, limit=MAX_FILE))
    raise SpecError(f"LLMFilter.variant is {name[:80]!r}, expected one of {', '.join(variant_names())}")


@lru_cache(maxsize=64)
def parse_variant(name: str, source: str) -> Variant:
    """A variant from its file's text, checked by compiling it."""
    from jinja2 import TemplateSyntaxError

    comments = re.findall(r"\{#\s*(.*?)\s*#\}", source, re.DOTALL)
    answer = next((text[7:].strip() for text in comments if text.startswith("answer:")), "json")
    if answer not in ANSWERS:
        raise SpecError(f"prompt variant {name!r} wants answer {answer[:80]!r}, expected one of {', '.join(ANSWERS)}")
    try:
        blocks = _compiled(source).blocks
    except TemplateSyntaxError as error:
        raise SpecError(f"prompt variant {name!r} is no valid template (line {error.lineno})") from None
    if not {"system", "user"} <= set(blocks):
        raise SpecError(f"prompt variant {name!r} lacks a block, expected blocks system and user")
    about = next((text for text in comments if not text.startswith("answer:")), "")
    return Variant(name, answer, " ".join(about.split()), source)
