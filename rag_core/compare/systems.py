"""Several recorded systems over the same questions: one set of questions and labels, each system's own lists.

A question is the same where its id is; one that a system lacks has an empty list there, so it counts 0. A label that
came with one system's list counts in all of them: a chunk is the same where its id is, or its text where ids were
numbered by rank.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rag_core.errors import InputError
from rag_core.measure.experiment import start_of
from rag_core.types import Candidates, Case, Chunk


@dataclass(frozen=True)
class System:
    """One system's lists over all questions, and the ids of those that it lacks."""

    name: str
    cases: tuple[Case, ...]
    missing: tuple[str, ...]


def joined(lists: Mapping[str, Sequence[Case]], unanswered: Sequence[Case] = ()) -> tuple[list[System], list[str]]:
    """The systems over the union of their questions, in the first's order, and what a reader must know.

    `unanswered` are labelled questions that may stand in none of the lists: they count too.
    An InputError where two ask different texts under one id.
    """
    texts = _questions({**lists, "the labels": unanswered})
    own = {name: {case.query.id: case for case in cases} for name, cases in lists.items()}
    rows: dict[str, list[Case]] = {name: [] for name in lists}
    conflicts = 0
    for query_id, first in texts.items():
        asked = [by_id[query_id] for by_id in own.values() if query_id in by_id] or [first]
        pool: dict[str, int] = {}
        for case in asked:
            for key, grade in _judged(case).items():
                conflicts += pool.setdefault(key, grade) != grade
        total = max((case.relevant_total for case in asked if case.relevant_total is not None), default=None)
        lacking = replace(first, candidates=Candidates(first.query, (), recorded=True))
        for name, by_id in own.items():
            case = by_id.get(query_id, lacking)
            ids = {_key(hit.chunk, query_id): hit.chunk.id for hit in start_of(case).hits}
            grades = {ids.get(key, key): grade for key, grade in pool.items()}
            rows[name].append(replace(case, grades=grades, relevant_total=total))
    systems = [
        System(name, tuple(cases), tuple(one for one in texts if one not in own[name])) for name, cases in rows.items()
    ]
    told = [f"{conflicts} labels differ between the files; that of the first file counts"] if conflicts else []
    return systems, [*_told(systems), *told]


def _questions(lists: Mapping[str, Sequence[Case]]) -> dict[str, Case]:
    """Every question by its id; an InputError where two files ask different texts under one."""
    found: dict[str, Case] = {}
    for name, cases in lists.items():
        for case in cases:
            first = found.setdefault(case.query.id, case)
            if first.query.text.split() != case.query.text.split():
                raise InputError(
                    f"question {case.query.id[:80]!r} of {name} asks another text than before, expected the same one"
                )
    return found


def _told(systems: Sequence[System]) -> Iterator[str]:
    """Which questions a system lacks, and which systems search another source than the first."""
    base = _chunks(systems[0])
    for one in systems:
        if one.missing:
            more = f" and {len(one.missing) - 10} more" if len(one.missing) > 10 else ""
            shown = ", ".join(one.missing[:10]) + more
            yield f"{one.name} lacks {len(one.missing)} questions, which count 0 there: {shown}"
        theirs = _chunks(one)
        if theirs != base:
            shared = f"{len(theirs & base)} of its {len(theirs)} chunks are in both"
            yield f"{one.name} is another source than {systems[0].name}: {shared}"


def _key(chunk: Chunk, query_id: str) -> str:
    """What a chunk is known by in other systems: its id, or its text where the id only says its rank."""
    if not chunk.id.startswith(f"{query_id}#") or not chunk.text:
        return chunk.id
    return "text:" + hashlib.sha256(" ".join(chunk.text.split()).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _judged(case: Case) -> dict[str, int]:
    """The labels of a case by what its chunks are known by."""
    keys = {hit.chunk.id: _key(hit.chunk, case.query.id) for hit in start_of(case).hits}
    return {keys.get(chunk, chunk): grade for chunk, grade in case.grades.items()}


def _chunks(system: System) -> set[str]:
    return {_key(hit.chunk, case.query.id) for case in system.cases for hit in start_of(case).hits}
