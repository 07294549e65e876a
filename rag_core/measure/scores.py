"""Scores of one kept list against the labels of its query, and macro means over queries.

`score` says what stands beside the figures: empty, without relevant, unjudged, share judged, bounds. `summarise` gives
macro means: mean SetF is the mean of per-query F, not the F of mean precision and mean recall. What a measure is:
measures.py; whether two pipelines differ: significance.py. Nothing here knows how the list came about.

Four kinds of query:
  scored            something relevant is known; an empty kept list scores 0 by convention and is flagged.
  without relevant  all of the pool is judged, and nothing is relevant: no measure is defined, so values are None and
                    only whether it returned anything counts (false-return rate).
  undecided         labels, none of them relevant, and some of the pool without one: run, not scored.
  unjudged          no label at all: run, not scored.

The pool is what was kept and the first `POOL_DEPTH` chunks of the list that came to the pipeline. Bounds: `low` and
`high` are the least and greatest value of each set measure over all ways in which the unjudged chunks of the pool may
be relevant or not, dropped ones included: a relevant one among those lowers recall. With a known `relevant_total` no
more of them can be relevant than it leaves open; without one, each that is adds to the total. An unjudged chunk counts
as irrelevant in the figure itself, which is exact where `low` and `high` are one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import Any

from rag_core.errors import InputError
from rag_core.measure.measures import DEFAULT_MEASURES, SET_MEASURES, JudgedList, Measure
from rag_core.types import Grades

POOL_DEPTH = 15
"""Places of the list that is filtered which are to be judged; what is kept from further down is judged as well."""


@dataclass(frozen=True, slots=True)
class QueryScores:
    """One query's figures. A value of None means unscored; `low` and `high` hold the set measures' bounds."""

    values: Mapping[str, float | None]
    kept: int
    found: int  # relevant among the kept
    relevant_total: int
    judged_kept: int  # kept chunks that have a label
    denominators: Mapping[str, int]  # by measure, of those that are one count over another
    low: Mapping[str, float]
    high: Mapping[str, float]
    unjudged: bool = False  # the query has no label at all
    without_relevant: bool = False  # the whole pool has labels, and nothing is relevant
    undecided: bool = False  # it has labels, none relevant, and not on the whole pool
    fallback: bool = False  # a stage fell back on this query

    @property
    def scored(self) -> bool:
        """Whether the query enters the means."""
        return not (self.unjudged or self.without_relevant or self.undecided)

    @property
    def empty(self) -> bool:
        """Whether nothing was kept."""
        return not self.kept

    @property
    def judged(self) -> float | None:
        """Share of the kept chunks that have a label; None where nothing was kept."""
        return self.judged_kept / self.kept if self.kept else None


def score(
    kept_ids: Sequence[str],
    grades: Grades,
    relevant_total: int | None = None,
    min_grade: int = 1,
    measures: Sequence[Measure] = DEFAULT_MEASURES,
    *,
    pool: Collection[str] = (),
    fallback: bool = False,
) -> QueryScores:
    """Measure one kept list, in final order, against its query's labels; a kept chunk without a label counts as 0.

    Relevant means grade ≥ `min_grade`. `relevant_total` is how many relevant chunks exist in all, where that is known;
    it is raised to the number of relevant labels where labels outgrew it, and each chunk it counts beyond them enters
    nDCG's ideal with grade `min_grade`, the least it can have. `pool` are the ids that might have been kept and are to
    be judged; what was kept is always of it.

    Raises InputError for a chunk kept twice, a min_grade below 1, a negative relevant_total.
    """
    _check(kept_ids, relevant_total, min_grade)
    known = sum(grade >= min_grade for grade in grades.values())
    total = max(known, relevant_total or 0)
    unjudged = not grades and relevant_total != 0
    scored = not unjudged and total > 0
    judged = _judge(kept_ids, grades, total, known, min_grade)
    judged_kept = sum(id_ in grades for id_ in kept_ids)
    dropped = sum(id_ not in grades for id_ in set(pool).difference(kept_ids))
    open_kept = len(kept_ids) - judged_kept
    low, high = _bounds(measures, judged, open_kept, dropped, known, relevant_total) if scored else ({}, {})
    undecided = not unjudged and not total and relevant_total is None and open_kept + dropped > 0
    return QueryScores(
        values={measure.name: measure(judged) if scored else None for measure in measures},
        kept=len(kept_ids),
        found=judged.found,
        relevant_total=total,
        judged_kept=judged_kept,
        denominators=_denominators(measures, len(kept_ids), total) if scored else {},
        low=low,
        high=high,
        unjudged=unjudged,
        without_relevant=not unjudged and not total and not undecided,
        undecided=undecided,
        fallback=fallback,
    )


def _check(kept_ids: Sequence[str], relevant_total: int | None, min_grade: int) -> None:
    if len(set(kept_ids)) != len(kept_ids):
        twice = next(id_ for position, id_ in enumerate(kept_ids) if id_ in kept_ids[:position])
        raise InputError(f"kept list holds chunk {twice!r} more than once, expected every chunk once")
    if min_grade < 1:
        raise InputError(f"min_grade is {min_grade}, expected a whole number from 1")
    if relevant_total is not None and relevant_total < 0:
        raise InputError(f"relevant_total is {relevant_total}, expected 0 or more")


def _judge(kept_ids: Sequence[str], grades: Grades, total: int, known: int, min_grade: int) -> JudgedList:
    """The kept list with its grades, and every grade known for the query in ideal order."""
    kept = tuple(grades.get(id_, 0) for id_ in kept_ids)
    ideal = sorted([*grades.values(), *[min_grade] * (total - known)], reverse=True)
    irrelevant = sum(0 <= grade < min_grade for grade in grades.values())
    judged = tuple(id_ in grades for id_ in kept_ids)
    return JudgedList(tuple(grade >= min_grade for grade in kept), kept, total, tuple(ideal), judged, irrelevant)


def _denominators(measures: Iterable[Measure], kept: int, total: int) -> dict[str, int]:
    pairs = ((measure.name, measure.denominator(kept, total)) for measure in measures)
    return {name: whole for name, whole in pairs if whole is not None}


def _bounds(
    measures: Iterable[Measure],
    judged: JudgedList,
    unjudged_kept: int,
    unjudged_dropped: int,
    known: int,
    relevant_total: int | None,
) -> tuple[dict[str, float], dict[str, float]]:
    """Least and greatest value of every set measure: they rise with each unjudged kept chunk that is relevant, and fall
    with each dropped one.
    """
    found, kept, total = judged.found, len(judged.relevant), judged.relevant_total
    more = unjudged_kept if relevant_total is None else min(unjudged_kept, total - known)
    reach = total + more if relevant_total is None else total
    low: dict[str, float] = {}
    high: dict[str, float] = {}
    for measure in dict.fromkeys((*SET_MEASURES, *measures)):
        least = measure.from_counts(found, kept, total + (unjudged_dropped if relevant_total is None else 0))
        most = measure.from_counts(found + more, kept, reach)
        if least is not None and most is not None:
            low[measure.name], high[measure.name] = least, most
    return low, high


@dataclass(frozen=True, slots=True)
class Summary:
    """Macro means over the scored queries, and the counts that must stand beside them."""

    means: Mapping[str, float | None]  # None where no query is scored
    low: Mapping[str, float | None]  # means of the per-query bounds of the set measures
    high: Mapping[str, float | None]
    queries_total: int
    queries_scored: int
    queries_empty: int  # of all queries: nothing was kept
    queries_without_relevant: int
    queries_undecided: int  # labels, none relevant, and not on the whole pool
    queries_unjudged: int
    queries_fallback: int
    judged: float | None  # share of all kept chunks, over all queries, that have a label
    false_return_rate: float | None  # share of the queries without relevant that returned anything

    def to_json(self) -> dict[str, Any]:
        """One flat mapping: measures, counts, each set measure's bounds as NAME_low and NAME_high, and its `kind`.

        The kind is exact where no label that is still open can move the mean, else bounds.
        """
        counts = {name: getattr(self, name) for name in self.__slots__ if name not in ("means", "low", "high")}
        bounds = {f"{name}_low": value for name, value in self.low.items()}
        bounds |= {f"{name}_high": value for name, value in self.high.items()}
        kind = {
            name: "exact" if self.low[name] == self.high[name] else "bounds" for name in self.low if self.queries_scored
        }
        return {**self.means, **counts, **bounds, "kind": kind}


def summarise(scores: Sequence[QueryScores]) -> Summary:
    """Macro means of per-query scores: every scored query weighs the same, an empty result included."""
    scored = [one for one in scores if one.scored]
    without = [one for one in scores if one.without_relevant]
    kept = sum(one.kept for one in scores)
    return Summary(
        means=_means([one.values for one in scored], [name for one in scores[:1] for name in one.values]),
        low=_means([one.low for one in scored], _BOUNDED),
        high=_means([one.high for one in scored], _BOUNDED),
        queries_total=len(scores),
        queries_scored=len(scored),
        queries_empty=sum(one.empty for one in scores),
        queries_without_relevant=len(without),
        queries_undecided=sum(one.undecided for one in scores),
        queries_unjudged=sum(one.unjudged for one in scores),
        queries_fallback=sum(one.fallback for one in scores),
        judged=sum(one.judged_kept for one in scores) / kept if kept else None,
        false_return_rate=sum(not one.empty for one in without) / len(without) if without else None,
    )


_BOUNDED = [measure.name for measure in SET_MEASURES]


def _means(rows: Sequence[Mapping[str, float | None]], always: Sequence[str]) -> dict[str, float | None]:
    """Mean per name over the rows that have a value; the names in `always` are there even with no row."""
    names = dict.fromkeys((*always, *(name for row in rows for name in row)))
    return {name: _mean([value for row in rows if (value := row.get(name)) is not None]) for name in names}


def _mean(values: Sequence[float]) -> float | None:
    return fsum(values) / len(values) if values else None


class ScoredReport:
    """A pipeline's name and its figures by query: what every kind of report is compared by."""

    name: str

    @property
    def query_scores(self) -> Sequence[QueryScores]:
        """The figures of every query."""
        raise NotImplementedError

    @property
    def families(self) -> Sequence[str]:
        """The family of every query."""
        raise NotImplementedError

    @cached_property
    def summary(self) -> Summary:
        """Macro means with their counts; asked for when all queries are in."""
        return summarise(self.query_scores)

    def values(self, measure: str) -> list[float | None]:
        """A measure by query; None where it is unscored."""
        return [scores.values.get(measure) for scores in self.query_scores]
