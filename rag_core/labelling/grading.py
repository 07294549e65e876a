"""A model as one more annotator: the prompts that ask for a grade of one chunk, and reading what comes back.

One chunk per call, so that no chunk can change another one's grade; the fence, the cleaning and the shortening are the
LLM filter's. An answer is not trusted: only a whole grade of 0 to 3 counts, anything else is no grade. Who is asked,
and storing what was said, is the caller's; how far to believe it is in judge_agreement.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_core.files import read_text
from rag_core.filters.llm.prompts import (
    CHARACTERS_PER_TOKEN,
    LEAST_TEXT,
    Body,
    Prompt,
    clean,
    mark_of,
    one_line,
)
from rag_core.filters.llm.wording import MAX_FILE, Variant, parse_variant
from rag_core.types import Chunk, Query

SHIPPED = Path(__file__).parent / "prompts" / "grade.j2"
MAX_TOKENS = 2000
MAX_GUIDELINES = 4000  # characters
MAX_REASON = 300
MAX_ANSWER = 20_000
MAX_STARTS = 20  # places of an answer where JSON is looked for
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "grade": {"type": "integer", "enum": [0, 1, 2, 3]}},
    "required": ["reason", "grade"],
    "additionalProperties": False,
}
SPOKEN = re.compile(r"\bgrade\W{0,10}([0-3])(?!\.?[0-9])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Graded:
    """What a model says of one chunk."""

    grade: int
    reason: str = ""


def wording(file: Path | None = None) -> Variant:
    """The words around the chunk: the shipped ones, or a Jinja2 file of one's own with blocks system and user."""
    path = file or SHIPPED
    return parse_variant(path.stem, read_text(path, limit=MAX_FILE))


def grading_prompt(
    query: Query, chunk: Chunk, words: Variant, guidelines: str = "", max_tokens: int = MAX_TOKENS
) -> Prompt:
    """The prompt that asks for the grade of one chunk."""
    said = clean(guidelines)[:MAX_GUIDELINES]
    taken = len(_messages(query, "", words, said, "0" * 16)[1]["content"])
    body = Body(chunk, 0, None, max(LEAST_TEXT, max_tokens * CHARACTERS_PER_TOKEN - taken))
    mark = mark_of([query.text, body.text])
    fenced = f"[{mark} passage]\n{body.text}\n[{mark} end]"
    return Prompt(
        messages=_messages(query, fenced, words, said, mark),
        schema=SCHEMA,
        query=query,
        chunks=(chunk,),
        answer="json with reasons",
        shortened=int(body.shortened),
        positions=(0,),
    )


def _messages(query: Query, fenced: str, words: Variant, guidelines: str, mark: str) -> tuple[dict[str, str], ...]:
    values = {"query": one_line(query.text, 4000), "candidates": fenced, "guidelines": guidelines, "mark": mark}
    return tuple({"role": role, "content": words.render(role, **values)} for role in ("system", "user"))


def read_grade(text: str | None) -> Graded | None:
    """The grade of an answer: its first JSON object with one, else words like `Grade: 2`; None where there is none."""
    said = (text or "")[:MAX_ANSWER]
    for value in _objects(said):
        grade = value.get("grade")
        if isinstance(grade, str) and grade.strip() in ("0", "1", "2", "3"):
            grade = int(grade)
        if isinstance(grade, int) and not isinstance(grade, bool) and 0 <= grade <= 3:
            reason = value.get("reason")
            return Graded(grade, one_line(reason, MAX_REASON) if isinstance(reason, str) else "")
    spoken = {found.group(1) for found in SPOKEN.finditer(said)} if "{" not in said else set()
    return Graded(int(spoken.pop())) if len(spoken) == 1 else None


def _objects(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    decoder = json.JSONDecoder(object_pairs_hook=_without_doubt)
    at = text.find("{")
    for _ in range(MAX_STARTS):
        if at < 0:
            break
        try:
            value, end = decoder.raw_decode(text, at)
        except RecursionError:
            break
        except ValueError:
            value, end = None, at + 1
        if isinstance(value, dict):
            found.append(value)
        at = text.find("{", end)
    return found


def _without_doubt(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The object; a key that stands twice with two values says nothing."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        found[key] = value if found.setdefault(key, value) == value else None
    return found
