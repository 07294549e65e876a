"""Two kept lists of one query: who kept what, how ranks moved, how alike the lists are, and why each difference is.

A reason is never made up here: it is what the pipeline that lacks the chunk wrote into its own trace, with what would
have kept it there; `replays` runs that stage again and sees whether it still holds. Means over queries: compare.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from rag_core.errors import InputError
from rag_core.measure.experiment import Outcome, kept_ids
from rag_core.measure.tally import labelled_drops, labels_of
from rag_core.stage import flatten
from rag_core.types import Counterfactual, Drop, Hit

NOT_BROUGHT = "not brought"


@dataclass(frozen=True, slots=True)
class Move:
    """One chunk in two kept lists: its 1-based places in them, None where it is not kept."""

    chunk_id: str
    title: str
    grade: int | None  # its label; None: unjudged
    first: int | None
    second: int | None

    @property
    def shift(self) -> int | None:
        """How many places it rose from the first list to the second; None where one lacks it."""
        return None if self.first is None or self.second is None else self.first - self.second

    @property
    def kept_by(self) -> str:
        """both, first or second."""
        return "both" if self.first and self.second else "first" if self.first else "second"


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


def moves(first: Outcome, second: Outcome) -> list[Move]:
    """Every chunk that at least one of the two kept: in the order of the first, then what only the second kept."""
    places = [{chunk: at for at, chunk in enumerate(kept_ids(one.result), 1)} for one in (first, second)]
    hits = {hit.chunk.id: hit for one in (second, first) for hit in one.result.hits}
    return [
        Move(chunk, hits[chunk].chunk.title, first.case.grades.get(chunk), places[0].get(chunk), places[1].get(chunk))
        for chunk in dict.fromkeys((*places[0], *places[1]))
    ]


def jaccard(first: Iterable[str], second: Iterable[str]) -> float:
    """Common over all; two empty lists are the same (1)."""
    one, two = set(first), set(second)
    return len(one & two) / len(one | two) if one | two else 1.0


def rank_biased_overlap(first: Sequence[str], second: Sequence[str], p: float = 0.9) -> float:
    """How alike two rankings are, the top counting most: extrapolated RBO, 0 to 1; two empty lists are the same (1).

    `p` in (0, 1) is how far a reader goes on: 0.9 gives the first ten ranks 86 % of the weight. Lists may differ in
    length and content; neither may hold a chunk twice. Webber, Moffat and Zobel, A similarity measure for indefinite
    rankings, ACM TOIS 28(4), 2010, equation 32.
    """
    if not 0 < p < 1:
        raise InputError(f"p is {p!r}, expected a number between 0 and 1")
    short, long = sorted((list(first), list(second)), key=len)
    for one in (short, long):
        if len(set(one)) != len(one):
            raise InputError("a ranking holds a chunk twice, expected every chunk once")
    if not short:
        return 0.0 if long else 1.0
    agreed = _agreements(short, long)
    s, deepest = len(short), len(long)
    total = sum(agreed[depth - 1] / depth * p**depth for depth in range(1, deepest + 1))
    total += sum(agreed[s - 1] * (depth - s) / (s * depth) * p**depth for depth in range(s + 1, deepest + 1))
    tail = (agreed[-1] - agreed[s - 1]) / deepest + agreed[s - 1] / s
    return (1 - p) / p * total + tail * p**deepest


def _agreements(short: Sequence[str], long: Sequence[str]) -> list[int]:
    """How many chunks the first d of both lists share, for d = 1 … the longer length."""
    seen: set[str] = set()
    shared, found = 0, []
    for depth, chunk in enumerate(long):
        news = {chunk} | ({short[depth]} if depth < len(short) else set())
        both = chunk == short[depth] if depth < len(short) else False
        shared += 1 if both else sum(one in seen for one in news)
        seen |= news
        found.append(shared)
    return found


def venn(kept: Mapping[str, Iterable[str]]) -> dict[tuple[str, ...], int]:
    """How many chunks exactly these pipelines kept and no other: {names in given order: count}, most shared first."""
    owners: dict[str, list[str]] = {}
    for name, chunks in kept.items():
        for chunk in set(chunks):
            owners.setdefault(chunk, []).append(name)
    counts: dict[tuple[str, ...], int] = {}
    for names in owners.values():
        counts[tuple(names)] = counts.get(tuple(names), 0) + 1
    return dict(sorted(counts.items(), key=lambda pair: (-len(pair[0]), -pair[1], pair[0])))


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


def replays(found: Difference, lacks: Outcome) -> bool:
    """Whether running the lacking pipeline again takes the chunk out at that stage for that reason.

    Where a setting of that stage would have kept it, the stage with that setting must keep it too. A chunk that was not
    brought must be in no list of that pipeline.
    """
    before = lacks.start
    for label, stage in zip(labels_of(lacks.pipeline), flatten(lacks.pipeline), strict=True):
        after = stage.again(before)
        gone = [drop for drop in after.drops[len(before.drops) :] if drop.hit.chunk.id == found.chunk_id]
        if gone and label == found.stage and gone[-1].reason.text == found.reason:
            settings = stage.settings()
            tried = [one for one in found.would_keep if one.parameter in settings and one.value is not None]
            return all(
                found.chunk_id in kept_ids(cast(Any, replace)(stage, **{one.parameter: one.value}).again(before))
                for one in tried
            )
        before = after
    seen = {hit.chunk.id for hit in before.hits} | {drop.hit.chunk.id for drop in before.drops}
    return found.rank is None and found.chunk_id not in seen
