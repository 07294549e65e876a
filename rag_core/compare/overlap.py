"""Two kept lists of one query: how alike they are, and why each difference is.

A reason is never made up here: it is what the pipeline that lacks the chunk wrote into its own trace, with what would
have kept it there. Means over queries: compare.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rag_core.measure.experiment import Outcome, kept_ids
from rag_core.measure.tally import labelled_drops
from rag_core.stage import flatten
from rag_core.types import Counterfactual, Drop, Hit

NOT_BROUGHT = "not brought"


@dataclass(frozen=True, slots=True)
class Difference:
    """A chunk that one pipeline kept and another did not, with the reason of the one that lacks it."""

    chunk_id: str
    title: str
    grade: int | None
    kept_by: str
    missing_from: str
    rank: int | None  # its place in the list the lacking pipeline judged; None where it was not brought
    stage: str  # which stage of the lacking pipeline took it out (label), or its source
    reason: str
    would_keep: tuple[Counterfactual, ...]


def jaccard(first: Iterable[str], second: Iterable[str]) -> float:
    """Common over all; two empty lists are the same (1)."""
    one, two = set(first), set(second)
    return len(one & two) / len(one | two) if one | two else 1.0


def differences(first: Outcome, second: Outcome, names: tuple[str, str] = ("first", "second")) -> list[Difference]:
    """Every chunk that exactly one of the two kept, with the reason: what only the first kept, then the second."""
    mine = _only(first, second, *names)
    theirs = _only(second, first, *reversed(names))
    return [*mine, *theirs]


def _only(keeps: Outcome, lacks: Outcome, kept_by: str, missing: str) -> list[Difference]:
    """What one kept and the other lacks, in the order of the list that keeps it."""
    drops = last_drops(lacks)
    held = {hit.chunk.id for hit in lacks.result.hits}
    first = {hit.chunk.id: hit for hit in reversed(keeps.result.hits)}
    only = [first[chunk] for chunk in kept_ids(keeps.result) if chunk not in held]
    return [_difference(hit, lacks, drops.get(hit.chunk.id), kept_by, missing) for hit in only]


def last_drops(outcome: Outcome) -> dict[str, tuple[str, Drop]]:
    """Chunk id → (stage label, drop) of its last drop."""
    return {drop.hit.chunk.id: (label, drop) for label, drop in labelled_drops(outcome.result)}


def _difference(hit: Hit, lacks: Outcome, found: tuple[str, Drop] | None, kept_by: str, missing: str) -> Difference:
    chunk, grade = hit.chunk, lacks.case.grades.get(hit.chunk.id)
    if found is None:
        stage, reason = _never_came(hit, lacks)
        return Difference(chunk.id, chunk.title, grade, kept_by, missing, None, stage, reason, ())
    label, drop = found
    back = lacks.counterfactuals.get(drop.hit.key, ())
    return Difference(chunk.id, chunk.title, grade, kept_by, missing, drop.hit.rank, label, drop.reason.text, back)


def _never_came(hit: Hit, lacks: Outcome) -> tuple[str, str]:
    """Why a chunk is in no list of a pipeline: it came by a way this one has not, or its source ends before it."""
    source = next((stage for stage in flatten(lacks.pipeline) if stage.kind == "source"), None)
    if hit.origin:
        return NOT_BROUGHT, f"it came otherwise ({hit.origin}), which this pipeline does not do"
    brought = lacks.result.steps[0].left if lacks.result.steps else len(lacks.start.hits)
    where = source.name if source is not None else NOT_BROUGHT
    return where, f"not among the {brought} candidates it read; rank {hit.rank} in the other list"
