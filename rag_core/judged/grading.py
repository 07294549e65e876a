"""A model as one more annotator: it grades (query, chunk) pairs, once or several times, and proposes.

One chunk per call, so that no chunk can change another one's grade. An answer is not trusted: only a whole grade of 0
to 3 counts, anything else is no grade. Storing grades as labels of a model is the caller's; how far to believe them is
in labelling/agreement.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_core.files import read_text
from rag_core.filters.llm.prompts import MAX_FILE, Body, Variant, parse_variant
from rag_core.judged.entrants import Bench
from rag_core.llm.judge import RecordedJudge
from rag_core.llm.prompt import (
    CHARACTERS_PER_TOKEN,
    LEAST_TEXT,
    Prompt,
    clean,
    json_values,
    mark_of,
    object_schema,
    one_line,
)
from rag_core.types import Chunk, Query

SHIPPED = Path(__file__).parent / "prompts" / "grade.j2"
MAX_TOKENS = 2000
MAX_GUIDELINES = 4000  # characters
MAX_REASON = 300
MAX_ANSWER = 20_000
SCHEMA = object_schema(reason={"type": "string"}, grade={"type": "integer", "enum": [0, 1, 2, 3]})
SPOKEN = re.compile(r"\bgrade\W{0,10}([0-3])(?!\.?[0-9])", re.IGNORECASE)
NO_ANSWER = "was not asked"

Pair = tuple[Query, Chunk]


@dataclass(frozen=True, slots=True)
class Graded:
    """What a model says of one chunk."""

    grade: int
    reason: str = ""


@dataclass(frozen=True)
class GradeProposal:
    """What a model says of a pair in each run; None where it gave no grade, and then why in the first run."""

    query: Query
    chunk: Chunk
    runs: tuple[Graded | None, ...]
    failure: str = ""

    @property
    def first(self) -> Graded | None:
        """What counts: the first run."""
        return self.runs[0] if self.runs else None


def wording(file: Path | None = None) -> Variant:
    """The words around the chunk: the shipped ones, or a Jinja2 file of one's own with blocks system and user."""
    path = file or SHIPPED
    return parse_variant(path.stem, read_text(path, limit=MAX_FILE))


def grading_prompt(
    query: Query, chunk: Chunk, words: Variant, guidelines: str = "", max_tokens: int = MAX_TOKENS
) -> Prompt:
    """The prompt that asks for the grade of one chunk."""
    rules = clean(guidelines)[:MAX_GUIDELINES]

    def messages(fenced: str, mark: str) -> tuple[dict[str, str], ...]:
        values = {"query": one_line(query.text, 4000), "candidates": fenced, "guidelines": rules, "mark": mark}
        return tuple({"role": role, "content": words.render(role, **values)} for role in ("system", "user"))

    taken = len(messages("", "0" * 16)[1]["content"])
    body = Body(chunk, 0, None, max(LEAST_TEXT, max_tokens * CHARACTERS_PER_TOKEN - taken))
    mark = mark_of([query.text, body.text])
    return Prompt(
        messages=messages(f"[{mark} passage]\n{body.text}\n[{mark} end]", mark),
        query=query,
        chunks=(chunk,),
        schema=SCHEMA,
        answer_tokens=40,
        shortened=int(body.shortened),
        positions=(0,),
    )


def read_grade(text: str | None) -> Graded | None:
    """The grade of an answer: its first JSON object with one, else words like `Grade: 2`; None where there is none."""
    said = (text or "")[:MAX_ANSWER]
    for value in json_values(said, pairs=_without_doubt):
        grade = value.get("grade") if isinstance(value, dict) else None
        if isinstance(grade, str) and grade.strip() in ("0", "1", "2", "3"):
            grade = int(grade)
        if isinstance(grade, int) and not isinstance(grade, bool) and 0 <= grade <= 3:
            reason = value.get("reason")
            return Graded(grade, one_line(reason, MAX_REASON) if isinstance(reason, str) else "")
    spoken = {match.group(1) for match in SPOKEN.finditer(said)} if "{" not in said else set()
    return Graded(int(spoken.pop())) if len(spoken) == 1 else None


def _without_doubt(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The object; a key that stands twice with two values says nothing."""
    made: dict[str, Any] = {}
    for key, value in pairs:
        made[key] = value if made.setdefault(key, value) == value else None
    return made


def pairs_of(
    bench: Bench, depth: int, wanted: Callable[[Query, Chunk], bool] = lambda query, chunk: True
) -> list[Pair]:
    """The first `depth` candidates of every query, those that are wanted."""
    return [
        (case.query, hit.chunk)
        for case in bench.cases
        for hit in (case.candidates.hits[:depth] if case.candidates else ())
        if wanted(case.query, hit.chunk)
    ]


def proposals(
    pairs: Sequence[Pair], prompts: Sequence[Prompt], judge: RecordedJudge, times: int = 1
) -> list[GradeProposal]:
    """What is stored of the answers of so many runs, read; nothing is asked."""
    rows = [
        judge.again(number).replay().ask(prompts, seconds=1, concurrency=1, model="", cache=True)
        for number in range(1, times + 1)
    ]
    proposed = []
    for at, (query, chunk) in enumerate(pairs):
        graded = tuple(read_grade(row[at].text) for row in rows)
        failure = "" if graded[0] else NO_ANSWER if rows[0][at].text is None else "the answer holds no grade of 0 to 3"
        proposed.append(GradeProposal(query, chunk, graded, failure))
    return proposed
