"""Captures: ask a source once per query, deep, and keep the lists; every threshold is tuned on them from then on.

A captured case is a recorded list with the labels of its query. Writing resumes: what an interrupted capture did is
read back and not asked again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rag_core.records import dump_case
from rag_core.stage import Stage
from rag_core.types import Candidates, Case

Progress = Callable[[int, int], None]
Asker = Callable[[Sequence[Case]], Iterator[list[str]]]
"""Gives the captured cases as lines, some at a time and in any order."""


def captured(case: Case, source: Stage) -> Case:
    """The case with the list its query gets from a source (a stage, or query rewriting and a source)."""
    found = source(Candidates(case.query))
    return replace(
        case, candidates=Candidates(found.query, found.hits, metric=found.metric, order=found.order, recorded=True)
    )


def captures(cases: Iterable[Case], source: Stage) -> Iterator[Case]:
    """Every case captured, one after the other."""
    return (captured(case, source) for case in cases)


def capture_to_file(
    cases: Sequence[Case],
    source: Stage,
    out: Path,
    fingerprint: str,
    progress: Progress | None = None,
    ask: Asker | None = None,
) -> int:
    """Write the captures to a JSONL file, whole; returns how many queries were asked now.

    Lists are collected in `<out>.part`, a line per query, headed by `fingerprint` (index, source settings, queries): a
    part with another fingerprint is started anew. `ask` stands in for the source where the queries are asked somewhere
    else.
    """
    part = out.with_name(out.name + ".part")
    done = _finished(part, fingerprint)
    out.parent.mkdir(parents=True, exist_ok=True)
    asked = 0
    with part.open("a" if done is not None else "w", encoding="utf-8") as file:
        if done is None:
            file.write(json.dumps({"capture": fingerprint}) + "\n")
        missing = [case for case in cases if case.query.id not in (done or ())]
        before = len(cases) - len(missing)
        here = ([json.dumps(dump_case(captured(case, source)), ensure_ascii=False)] for case in missing)
        answers = here if ask is None else ask(missing)
        while before + asked < len(cases):
            lines = next(answers)
            file.write("".join(f"{line}\n" for line in lines))
            file.flush()
            asked += len(lines)
            if progress is not None:
                progress(before + asked, len(cases))
        os.fsync(file.fileno())
    _put_in_order(part, out, cases)
    return asked


def _finished(part: Path, fingerprint: str) -> set[str] | None:
    """The ids of the queries a part holds, cut back to whole lines; None where there is no part of this capture."""
    if not part.is_file():
        return None
    data = part.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    rows = whole.split(b"\n")[:-1]
    if not rows or rows[0] != json.dumps({"capture": fingerprint}).encode():
        return None
    if len(whole) < len(data):
        with part.open("r+b") as file:
            file.truncate(len(whole))
    return {json.loads(row)["id"] for row in rows[1:]}


def _put_in_order(part: Path, out: Path, cases: Sequence[Case]) -> None:
    """Move the part's lines to the file in the order of the cases, line by line, and drop the part."""
    places: dict[str, tuple[int, int]] = {}
    with part.open("rb") as held:
        start = len(held.readline())
        for row in held:
            places[json.loads(row)["id"]] = (start, len(row))
            start += len(row)
        temporary = out.with_name(f".{out.name}.writing")
        with temporary.open("wb") as file:
            for case in cases:
                position, length = places[case.query.id]
                held.seek(position)
                file.write(held.read(length))
            file.flush()
            os.fsync(file.fileno())
    temporary.replace(out)
    part.unlink()
