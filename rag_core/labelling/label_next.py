"""What to label next: the chunks whose label can still change which of two pipelines has the higher mean SetF.

A chunk both pipelines kept hardly moves their difference; one that only one of them kept does. Here are the exact
bounds of the difference over every way in which the open labels may fall, and an order that closes them soonest.
"Settled" is a proof about the labels that are open, not a test of significance: that is significance.py. Relevance is
yes or no here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import erf, fsum, sqrt

import numpy as np
from numpy.typing import NDArray

from rag_core.measure.experiment import PipelineReport, kept_ids
from rag_core.types import Grades

SIDES = ("first", "second", "both", "neither")
"""Who kept an open chunk."""
PLANS = (("first",), ("second",), ("first", "second"), ("both",), ("first", "second", "both"), SIDES)
"""Sides of one query that may be labelled in one go."""
TOLERANCE = 1e-12
PRIOR_WEIGHT = 2.0  # the share of relevant chunks over all queries counts as so many labels of each query
Totals = NDArray[np.float64]


@dataclass(frozen=True)
class OpenQuery:
    """One query of a comparison: what is counted already, and the open chunks by who kept them.

    `reach` is how many open chunks can be relevant at most: all of them, or what a known `relevant_total` leaves.
    """

    query_id: str
    found: tuple[int, int]
    kept: tuple[int, int]
    relevant: int  # known relevant; with a known total, that
    open: Mapping[str, tuple[str, ...]]
    reach: int | None = None
    chance: float = 0.5  # how likely an open chunk is relevant

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Least and greatest SetF(first) − SetF(second) over all ways the open labels may fall; unscored counts 0."""
        return self._bounds_after(())

    def _bounds_after(self, labelled: Collection[str]) -> tuple[float, float]:
        """The bounds once these sides are labelled, if as many of their chunks as expected turn out relevant."""
        swapped = replace(
            self,
            found=self.found[::-1],
            kept=self.kept[::-1],
            open=dict(self.open) | {"first": self.open["second"], "second": self.open["first"]},
        )
        mirror = {"first": "second", "second": "first"}
        return self._least(labelled), -swapped._least([mirror.get(side, side) for side in labelled])

    def _least(self, labelled: Collection[str]) -> float:
        """The least difference: it rises with each relevant chunk of the first's own, falls with the other's."""
        counts = {side: float(len(self.open[side])) for side in SIDES}
        room = sum(counts.values()) if self.reach is None else float(self.reach)
        fixed = {side: np.asarray([self.chance * counts[side]]) for side in labelled}
        shared = fixed.get("both", np.arange(counts["both"] + 1))[:, None]
        outside = fixed.get("neither", np.arange(counts["neither"] + 1))[None, :]
        mine = fixed.get("first", np.zeros(1))
        rest = room - shared - outside - mine
        theirs = fixed.get("second", np.clip(rest, 0, counts["second"]))
        values = self.difference(mine, theirs, shared, outside)
        possible = values[rest >= 0]
        return float(possible.min() if possible.size else values.min())

    def difference(self, mine: Totals, theirs: Totals, both: Totals, neither: Totals) -> Totals:
        """SetF(first) − SetF(second) if so many open chunks of each side are relevant."""
        more = mine + theirs + both + neither if self.reach is None else 0 * mine
        total = np.asarray(self.relevant + more, dtype=float)
        wholes = [np.maximum(kept + total, 1) for kept in self.kept]
        values = (self.found[0] + mine + both) / wholes[0] - (self.found[1] + theirs + both) / wholes[1]
        return np.where(total > 0, 2 * values, 0.0)

    @property
    def expected(self) -> float:
        """The difference if every open chunk were relevant to the degree it is likely to be."""
        counts = [np.asarray(self.chance * len(self.open.get(side, ()))) for side in SIDES]
        return float(self.difference(*counts))

    @cached_property
    def gains(self) -> dict[str, tuple[float, float]]:
        """Side → by how much a label there is expected to lift the lower bound, and to lower the upper one.

        Labels of one query work together (a shared chunk weighs once the others are known), so a label's gain is that
        of the best plan it is part of, per label: see PLANS.
        """
        found = {side: (0.0, 0.0) for side in SIDES if self.open[side]}
        for plan in PLANS:
            sides = [side for side in plan if side in found]
            count = sum(len(self.open[side]) for side in sides)
            if not count:
                continue
            low, high = self._bounds_after(sides)
            lift, sink = (low - self.bounds[0]) / count, (self.bounds[1] - high) / count
            for side in sides:
                found[side] = max(found[side], (lift, sink), key=sum)
        return found


@dataclass(frozen=True)
class OpenComparison:
    """Two pipelines over the same queries, with the labels known so far."""

    queries: tuple[OpenQuery, ...]

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Least and greatest mean difference SetF(first) − SetF(second), per query of the comparison."""
        count = max(1, len(self.queries))
        return (
            fsum(query.bounds[0] for query in self.queries) / count,
            fsum(query.bounds[1] for query in self.queries) / count,
        )

    @property
    def settled(self) -> bool:
        """Whether no open label can change the winner any more (or that there is none)."""
        low, high = self.bounds
        return low > TOLERANCE or high < -TOLERANCE or high - low <= TOLERANCE

    @property
    def winner(self) -> int:
        """1 or 2 where it is settled that the first or the second has the higher mean SetF, else 0."""
        low, high = self.bounds
        return 1 if low > TOLERANCE else 2 if high < -TOLERANCE else 0

    @cached_property
    def chance_of_first(self) -> float:
        """How likely the first wins, roughly: a normal law around what is expected, as wide as the bounds."""
        spread = sqrt(fsum(((query.bounds[1] - query.bounds[0]) / 4) ** 2 for query in self.queries))
        middle = fsum(query.expected for query in self.queries)
        return 0.5 if spread == 0 else 0.5 * (1 + erf(middle / spread / sqrt(2)))

    def ranked(self) -> list[tuple[float, str, str]]:
        """(gain, query id, chunk id) of every open chunk, what closes the comparison soonest first.

        Gain is the expected move of the bounds per label, of the one in the way of the likely winner above all. Rank
        anew after some labels: each changes the gains. Equal gains keep the order of queries and chunks, and what one
        pipeline alone kept comes before what both did.
        """
        towards = 0.25 + 0.5 * self.chance_of_first  # both ways always count: the likely winner may be the wrong one
        found = [
            (towards * lift + (1 - towards) * sink, query.query_id, chunk_id)
            for query in self.queries
            for side, (lift, sink) in query.gains.items()
            for chunk_id in query.open[side]
        ]
        return sorted(found, key=lambda one: -one[0])


def compare(
    first: PipelineReport,
    second: PipelineReport,
    chunks: Callable[[str], Iterable[str]] = lambda _: (),
    labels: Mapping[str, Grades] | None = None,
) -> OpenComparison:
    """The comparison of two reports over the same cases, with the labels their cases carry, or `labels` by query id.

    `chunks` names, per query id, further chunks that may turn out relevant (a deeper pool); without it whatever neither
    pipeline kept and nobody judged is taken as irrelevant, as scores.py does.
    """
    given = [one.case.grades if labels is None else labels.get(one.case.query.id, {}) for one in first.outcomes]
    queries = []
    for one, other, grades in zip(first.outcomes, second.outcomes, given, strict=True):
        query_id, total = one.case.query.id, one.case.relevant_total
        kept = (kept_ids(one.result), kept_ids(other.result))
        queries.append(open_query(query_id, kept, grades, first.min_grade, total, chunks(query_id)))
    return OpenComparison(tuple(with_chances(queries, given, first.min_grade)))


def open_query(
    query_id: str,
    kept: tuple[Sequence[str], Sequence[str]],
    grades: Grades,
    min_grade: int = 1,
    relevant_total: int | None = None,
    others: Iterable[str] = (),
) -> OpenQuery:
    """One query of a comparison from the two kept lists and the labels known.

    A known `relevant_total` leaves only so many open chunks to be relevant, as in scores.py.
    """
    known = sum(grade >= min_grade for grade in grades.values())
    total = None if relevant_total is None else max(known, relevant_total)
    sides: dict[str, list[str]] = {side: [] for side in SIDES}
    for chunk_id in dict.fromkeys((*kept[0], *kept[1], *others)):
        if chunk_id not in grades:
            kept_by = [side for side, ids in zip(SIDES, kept, strict=False) if chunk_id in ids]
            sides["both" if len(kept_by) > 1 else (kept_by or ["neither"])[0]].append(chunk_id)
    first, second = (sum(grades.get(chunk_id, 0) >= min_grade for chunk_id in ids) for ids in kept)
    return OpenQuery(
        query_id,
        found=(first, second),
        kept=(len(kept[0]), len(kept[1])),
        relevant=known if total is None else total,
        open={side: tuple(ids) for side, ids in sides.items()},
        reach=None if total is None else min(total - known, sum(map(len, sides.values()))),
    )


def with_chances(queries: Sequence[OpenQuery], grades: Sequence[Grades], min_grade: int = 1) -> list[OpenQuery]:
    """The queries with how likely an open chunk is relevant: the query's own share, drawn to the share over all."""
    relevant = [sum(grade >= min_grade for grade in given.values()) for given in grades]
    overall = (sum(relevant) + 1) / (sum(map(len, grades)) + 2)
    return [
        replace(query, chance=(count + PRIOR_WEIGHT * overall) / (len(given) + PRIOR_WEIGHT))
        for query, count, given in zip(queries, relevant, grades, strict=True)
    ]
