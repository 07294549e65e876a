"""Labelled queries with their candidates, ready for judges: from recorded lists, an eval set or a collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rag_core.errors import InputError
from rag_core.eval_sets.reading import load_set
from rag_core.types import Candidates, Case, Chunk


@dataclass(frozen=True)
class Bench:
    """Labelled queries with their candidates, the chunks that references may bring, and what counts as relevant."""

    name: str
    cases: tuple[Case, ...]
    chunks: Mapping[str, Chunk]
    min_grade: int

    @property
    def labels(self) -> dict[str, Mapping[str, int]]:
        """The grades by query."""
        return {case.query.id: case.grades for case in self.cases}


def open_bench(
    eval_set: str | None,
    lists: Path | None,
    collection: str | None,
    workspace: Path,
    split: str | None,
    first: int | None,
    min_grade: int | None,
    depth: int,
) -> Bench:
    """The queries of a set or a file of lists; without candidates of their own, with the `depth` nearest chunks."""
    if (eval_set is None) == (lists is None):
        raise InputError(f"{'both' if eval_set else 'neither'} --eval-set and --lists given, expected one of them")
    if lists is not None:
        from rag_core.records import load_lists

        cases = tuple(list(load_lists(lists))[:first])
        return Bench(lists.name, cases, chunks_of(cases), min_grade or 1)
    found = load_set(str(eval_set), workspace)
    cases = tuple((found.split(split) if split else found).cases[:first])
    grade = min_grade or found.min_grade
    if found.recorded and collection is None:
        return Bench(found.name, cases, chunks_of(cases), grade)
    return _live_bench(str(eval_set), collection, workspace, cases, grade, depth)


def _live_bench(
    eval_set: str, collection: str | None, workspace: Path, cases: Sequence[Case], min_grade: int, depth: int
) -> Bench:
    from rag_core import workbench

    found = load_set(eval_set, workspace)
    if collection is None:
        workbench.bring_up_to_date(found, workspace)
    index = workbench.opened(workspace, collection or found.name)
    source = workbench.source_of(index, depth)
    asked = (replace(source(Candidates(case.query)), recorded=True) for case in cases)  # free filters skip their source
    listed = tuple(replace(case, candidates=one) for case, one in zip(cases, asked, strict=True))
    return Bench(eval_set, listed, {chunk.id: chunk for chunk in index.snapshot.chunks}, min_grade)


def chunks_of(cases: Sequence[Case]) -> dict[str, Chunk]:
    """Every chunk of the lists by its id, the first that has it."""
    found: dict[str, Chunk] = {}
    for case in cases:
        for hit in case.candidates.hits if case.candidates else ():
            found.setdefault(hit.chunk.id, hit.chunk)
    return found
