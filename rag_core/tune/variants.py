"""Captured lists for a chain of stages: what of a pipeline must run as it is, and what a sweep may do in arrays.

TopK and MinSimilarity cut a list that is in order of similarity to a beginning of itself, so any number of them in a
row is one length per query, and a refill in front of them is its rules and one more length. Whatever else stands in
front of the cut runs plainly, once per variant, and its output is kept. Where a list is not of that kind (repeated
chunks, similarities out of order, hits the cut does not judge) nothing is assumed and the caller runs the plain
pipeline instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rag_core.errors import InputError
from rag_core.filters.adaptive import AdaptiveGap, as_distance
from rag_core.filters.cutoff import MinSimilarity, TopK, cosine_similarity
from rag_core.filters.query_form import threshold_factor
from rag_core.measure.experiment import start_of
from rag_core.retrieve.requery import Requery
from rag_core.spec import fingerprint
from rag_core.stage import Pipeline, Stage
from rag_core.tune.arrays import Floats, Lists, Whole, lists_of, make_lists, relevant_totals, whole_units
from rag_core.types import Candidates, Case, Order, falling

_FAR = 10**9  # behind every list
_KEPT_VARIANTS = 10  # captured variants held at once; product order comes back to the same few


@dataclass(frozen=True, eq=False)
class Captured:
    """The lists that reach a place in a pipeline, one per case."""

    starts: tuple[Candidates, ...]
    cases: tuple[Case, ...]
    min_grade: int
    read_at: Whole | None = None  # (q, k) where each hit stood in front of a refill's rules, far behind the end

    @cached_property
    def scales(self) -> dict[object, Floats]:
        """Values of thresholds between which something changes, by what they depend on: kept by steps.py."""
        return {}

    @cached_property
    def lists(self) -> Lists:
        """The lists as the adaptive cut sees them."""
        return lists_of(self.starts, self.cases, self.min_grade)

    @cached_property
    def ordered(self) -> Lists:
        """The lists in their own order, for chains without an adaptive cut; their distances say nothing."""
        relevant = [
            [case.grades.get(hit.chunk.id, 0) >= self.min_grade for hit in start.hits]
            for start, case in zip(self.starts, self.cases, strict=True)
        ]
        totals = relevant_totals(self.cases, self.min_grade)
        return make_lists([[0.0] * len(flags) for flags in relevant], relevant, totals)

    @cached_property
    def similarities(self) -> Floats | None:
        """Cosine similarities (q, k), +∞ where a list has none and −∞ behind its end; None: a floor is no beginning."""
        table = np.full((len(self.starts), max(len(start.hits) for start in self.starts)), -np.inf)
        for row, start in zip(table, self.starts, strict=True):
            known = [cosine_similarity(hit, start.metric) for hit in start.hits]
            if all(one is None for one in known):
                row[: len(known)] = np.inf
                continue
            if any(one is None for one in known):
                return None
            row[: len(known)] = known
            if (np.diff(row[: len(known)]) > 0).any():
                return None
        return table

    @cached_property
    def distinct(self) -> bool:
        """Whether no list holds a chunk twice."""
        return all(len({hit.chunk.id for hit in start.hits}) == len(start.hits) for start in self.starts)

    @cached_property
    def refillable(self) -> bool:
        """Whether a refill of these lists is its rules and a length: no chunk twice, survivors in the order read."""
        known = [[hit.distance for hit in start.hits if hit.distance is not None] for start in self.starts]
        in_order = (
            start.order is not Order.DISTANCE or row == sorted(row)
            for start, row in zip(self.starts, known, strict=True)
        )
        return self.distinct and all(start.recorded for start in self.starts) and all(in_order)

    @cached_property
    def by_distance(self) -> bool:
        """Whether every list is in order of distance and the cut judges all of it."""
        return all(start.order is Order.DISTANCE and not any(hit.origin for hit in start.hits) for start in self.starts)

    @cached_property
    def judged_whole(self) -> bool:
        """Whether the cut leaves no hit of any list unjudged."""
        return not self.lists.kept_always.any()

    @cached_property
    def fallen(self) -> tuple[Candidates, ...]:
        """The lists as a cut reads them, with a distance whatever their score."""
        return tuple(falling(start) for start in self.starts)

    @cached_property
    def bare(self) -> tuple[Candidates, ...]:
        """The lists in order of distance that hold a hit without one: what the cut refuses, whatever its settings."""
        return tuple(
            start
            for start in self.fallen
            if start.order is Order.DISTANCE and any(hit.distance is None and not hit.origin for hit in start.hits)
        )

    @cached_property
    def lengths(self) -> Whole:
        """How many hits each list has (q,)."""
        return np.array([len(start.hits) for start in self.starts], dtype=np.int64)

    @cached_property
    def threshold_factors(self) -> Floats:
        """What a query-specific gap threshold is multiplied with for each question (q,)."""
        return np.array([threshold_factor(start.query.text) for start in self.starts], dtype=np.float64)

    @cached_property
    def metrics(self) -> tuple[Candidates, ...]:
        """One empty list of every metric there is, the first query's of each."""
        first = {start.metric: start for start in reversed(self.fallen)}
        return tuple(replace(start, hits=()) for start in self.fallen if first[start.metric] is start)

    def reached(self, worst: Sequence[float | None], weak: Sequence[float | None]) -> Whole:
        """How many of each list lie within each worst_score, of a top within each weak_top (q, n); all without."""
        signs = np.array([as_distance(1.0, start.metric) for start in self.fallen])[:, None]
        lists, columns = self.lists, []
        for far, top in zip(worst, weak, strict=True):
            counts = lists.lengths
            if far is not None:
                counts = np.minimum(counts, (lists.distances <= whole_units(signs * far)).sum(axis=1))
            columns.append(counts if top is None else counts * (lists.nearest <= whole_units(signs * top)[:, 0]))
        return np.stack(columns, axis=1)

    def refuse(self, cut: Stage) -> None:
        """Raise what the plain stage raises on these lists: hits without a distance, defaults for another metric."""
        for start in (*self.metrics, *self.bare):
            _named(cut, start)

    def limits(self, cutoffs: Sequence[Stage]) -> Whole | None:
        """How many chunks of each list the cutoffs leave, shape (q,); None where that is no beginning.

        Cutoffs are TopK and MinSimilarity, and in front of them the refill whose rules these lists passed.
        """
        left = self.lengths
        for stage in cutoffs:
            if isinstance(stage, TopK):
                left = np.minimum(left, stage.k)
            elif isinstance(stage, MinSimilarity) and self.similarities is not None:
                # the very comparison of the plain stage, slack included
                left = np.minimum(left, (self.similarities >= stage.min_relevance - 1e-9).sum(axis=1))
            elif isinstance(stage, Requery) and self.read_at is not None:
                left = self.refilled(stage)
            else:
                return None
        return left

    def refilled(self, refill: Requery) -> Whole:
        """How many of those that pass a refill keeps (q,): up to k of the hits that its rounds read.

        Whole rounds are read until k pass, and the first k of what passed are kept: where the last round ends does not
        matter, only where the rounds do. `prefilter` has no last round.
        """
        assert self.read_at is not None
        read = _FAR if refill.strategy == "prefilter" else refill.reach
        return np.asarray(np.minimum((self.read_at < read).sum(axis=1), refill.k), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Chain:
    """A pipeline taken apart for a sweep: captured lists, lengths left before the cut, the cut, lengths left after."""

    captured: Captured
    front: Whole
    cut: AdaptiveGap | None
    back: Whole


class Captures:
    """Runs what must run plainly, once per variant, over the same cases."""

    def __init__(self, cases: Sequence[Case], min_grade: int) -> None:
        """Cases in the order of every array that comes of them. InputError without any case."""
        if not cases:
            raise InputError("a sweep got no query, expected at least one")
        self.cases, self.min_grade = tuple(cases), min_grade
        self._known: dict[str, Captured] = {}
        self.functions: dict[tuple[Any, ...], Any] = {}  # step functions of the last knobs (tune/steps.py)

    def after(self, stages: Sequence[Stage]) -> Captured:
        """What these stages give of every case's list; the longest beginning that is known is not run again."""
        key = fingerprint(Pipeline(tuple(stages)))
        if key not in self._known:
            self._keep(key, Captured(tuple(self._run(stages)), self.cases, self.min_grade))
        return self._known[key]

    def _run(self, stages: Sequence[Stage]) -> list[Candidates]:
        if not stages:
            return [start_of(case) for case in self.cases]
        before = self.after(stages[:-1]).starts
        return [_named(stages[-1], start) for start in before]

    def front(self, stages: Sequence[Stage]) -> tuple[Captured, int]:
        """The lists in front of the run of cutoffs that ends these stages, and where the run begins.

        A refill may begin it: then the lists are those that its rules leave, however far it reads.
        """
        first = first_cutoff(stages)
        if not first or not isinstance(refill := stages[first - 1], Requery):
            return self.after(stages[:first]), first
        before = self.after(stages[: first - 1])
        if not before.refillable:
            return self.after(stages[:first]), first
        key = f"{fingerprint(Pipeline((*stages[: first - 1], refill.rules)))} refilled"
        if key not in self._known:
            ruled = [_named(refill.rules, start) for start in before.starts]
            read_at = np.full((len(ruled), max(len(start.hits) for start in ruled)), _FAR, dtype=np.int64)
            for row, start, after in zip(read_at, before.starts, ruled, strict=True):
                places = {hit.key: place for place, hit in enumerate(start.hits)}
                row[: len(after.hits)] = [places[hit.key] for hit in after.hits]
            self._keep(key, Captured(tuple(ruled), self.cases, self.min_grade, read_at))
        return self._known[key], first - 1

    def _keep(self, key: str, captured: Captured) -> None:
        while len(self._known) >= _KEPT_VARIANTS:
            self._known.pop(next(iter(self._known)))
        self._known[key] = captured

    def chain(self, pipeline: Pipeline) -> Chain | None:
        """The pipeline as captured lists, lengths and one adaptive cut; None where only the plain pipeline is exact."""
        cuts = [at for at, stage in enumerate(pipeline.stages) if isinstance(stage, AdaptiveGap)]
        if len(cuts) > 1:
            return None
        at = cuts[0] if cuts else len(pipeline.stages)
        head, tail = pipeline.stages[:at], pipeline.stages[at + 1 :]
        (captured, first), front = self.front(head), None
        if captured.distinct and (captured.by_distance or not cuts):
            front = captured.limits(head[first:])
        if front is None and cuts:
            captured = self.after(head)
            front = captured.lengths
        if front is None or not captured.distinct or not cuts:
            return None if front is None or not captured.distinct else Chain(captured, front, None, front)
        return self._with_cut(captured, front, pipeline.stages[at], tail)

    def _with_cut(self, captured: Captured, front: Whole, cut: Stage, tail: Sequence[Stage]) -> Chain | None:
        """The chain around a cut, once it is known that the cut refuses none of the lists."""
        if not isinstance(cut, AdaptiveGap) or cut.query_specific:
            return None
        captured.refuse(cut)
        if cut.worst_score is not None or cut.weak_top is not None:
            front = np.minimum(front, captured.reached([cut.worst_score], [cut.weak_top])[:, 0])
        if not tail:
            return Chain(captured, front, cut, front)
        # a refill behind the cut reads on from there: the one whose rules the lists passed is another
        refilled = any(isinstance(stage, Requery) for stage in tail)
        whole = captured.by_distance and captured.judged_whole and not refilled
        back = captured.limits(tail) if whole else None
        return None if back is None else Chain(captured, front, cut, back)


def first_cutoff(stages: Sequence[Stage]) -> int:
    """Where the run of plain cutoffs at the end of the stages begins."""
    first = len(stages)
    while first and isinstance(stages[first - 1], TopK | MinSimilarity):
        first -= 1
    return first


def _named(stage: Stage, start: Candidates) -> Candidates:
    """The stage's output, without asking a model again where it has seen the list; its errors name the query."""
    try:
        return stage.again(start)
    except InputError as error:
        raise type(error)(f"query {start.query.id}: {error}") from None
