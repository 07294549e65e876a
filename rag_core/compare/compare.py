"""Pipelines side by side: means with intervals, differences to a baseline, the queries where two differ, slices by tag.

Every difference is other − baseline, so that a negative one is a regression. The statistics themselves are in
significance.py, why two kept lists differ in overlap.py, where relevant chunks are lost in attribution.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from math import fsum

from rag_core.errors import InputError
from rag_core.labelling import label_next
from rag_core.measure.economy import Economy, total
from rag_core.measure.resampling import RESAMPLES, TIE, intervals
from rag_core.measure.significance import Comparison, Pair, compare_all, corrected
from rag_core.measure.tally import PipelineTally, QueryTally

Told = Callable[[int, int], None]
"""Called with how many parts of how many are done; one that raises ends the work."""

SHOWN = ("SetP", "SetR", "SetF", "nDCG@15")
ORDERS = ("difference", "regressions", "improvements")
_DRAWS = 5_000_000  # values drawn for one interval; above 500 queries fewer resamples are taken


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over scored queries with its 95 % bootstrap interval; None where there are too few queries to say."""

    mean: float | None
    low: float | None
    high: float | None
    queries: int


@dataclass(frozen=True, slots=True)
class Cell:
    """One measure of one pipeline, and how it differs from the baseline (None for the baseline itself)."""

    estimate: Estimate
    against: Comparison | None


@dataclass(frozen=True, slots=True)
class TableRow:
    """One pipeline of the table: its cells by measure, and the counts that must stand beside them."""

    name: str
    cells: dict[str, Cell]
    economy: Economy
    kept_mean: float
    unjudged: float | None  # share of the kept chunks without a label
    queries_total: int
    queries_scored: int
    queries_empty: int
    queries_fallback: int


@dataclass(frozen=True, slots=True)
class Contrast:
    """One query on which two pipelines are compared: both values and other − baseline."""

    query_id: str
    query: str
    tags: tuple[str, ...]
    baseline: float
    other: float
    difference: float


@dataclass(frozen=True, slots=True)
class Slice:
    """The queries of one tag: the mean of every pipeline, and its difference to the baseline."""

    tag: str  # "" for the queries without any tag
    queries: int
    cells: dict[str, Cell]


@dataclass(frozen=True, slots=True)
class Matrix:
    """One measure as a table, query × pipeline; None where a query is unscored."""

    measure: str
    queries: tuple[str, ...]
    pipelines: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]  # one row per query


def check_same_queries(tallies: Sequence[PipelineTally]) -> None:
    """InputError where there is no pipeline, or two did not run over the same queries in the same order."""
    if not tallies:
        raise InputError("a comparison got no pipeline, expected at least one")
    first = [query.query_id for query in tallies[0].queries]
    for tally in tallies[1:]:
        if [query.query_id for query in tally.queries] != first:
            raise InputError(
                f"pipelines {tallies[0].name!r} and {tally.name!r} ran over different queries, expected the same ones"
            )


def resamples_for(queries: int) -> int:
    """How many resamples an interval or test takes: 9,999, above 500 queries fewer, never under 999."""
    return max(999, min(RESAMPLES, _DRAWS // max(1, queries)))


def estimate(values: Sequence[float | None], seed: int = 0) -> Estimate:
    """Mean of the scored values and its interval."""
    return estimates([values], seed)[0]


def estimates(rows: Sequence[Sequence[float | None]], seed: int = 0) -> list[Estimate]:
    """`estimate` of every row; rows over equally many queries share their resamples."""
    import numpy as np

    scored = [[value for value in row if value is not None] for row in rows]
    found = [Estimate(None, None, None, 0)] * len(rows)
    for count in {len(row) for row in scored} - {0}:
        places = [at for at, row in enumerate(scored) if len(row) == count]
        limits = intervals([np.asarray(scored[at]) for at in places], seed=seed, resamples=resamples_for(count))
        for at, (low, high, _) in zip(places, limits, strict=True):
            found[at] = Estimate(fsum(scored[at]) / count, low, high, count)
    return found


def table(
    tallies: Sequence[PipelineTally],
    measures: Sequence[str] = SHOWN,
    baseline: int = 0,
    seed: int = 0,
    progress: Told | None = None,
) -> list[TableRow]:
    """Pipelines × measures with differences to the pipeline at `baseline`; p corrected (Holm) within each measure."""
    check_same_queries(tallies)
    columns = {}
    for done, measure in enumerate(measures, 1):
        columns[measure] = _column(tallies, measure, baseline, seed)
        if progress is not None:
            progress(done, len(measures))
    return [
        TableRow(
            name=tally.name,
            cells={measure: column[at] for measure, column in columns.items()},
            economy=total(query.economy for query in tally.queries),
            kept_mean=sum(len(query.kept) for query in tally.queries) / max(1, len(tally.queries)),
            unjudged=tally.unjudged,
            queries_total=tally.summary.queries_total,
            queries_scored=tally.summary.queries_scored,
            queries_empty=tally.summary.queries_empty,
            queries_fallback=tally.summary.queries_fallback,
        )
        for at, tally in enumerate(tallies)
    ]


def _column(tallies: Sequence[PipelineTally], measure: str, baseline: int, seed: int) -> list[Cell]:
    """One measure of every pipeline."""
    against = differences(tallies, measure, baseline, seed)
    means = estimates([tally.values(measure) for tally in tallies], seed)
    return [Cell(one, against.get(tally.name)) for tally, one in zip(tallies, means, strict=True)]


def differences(
    tallies: Sequence[PipelineTally], measure: str = "SetF", baseline: int = 0, seed: int = 0
) -> dict[str, Comparison]:
    """Every other pipeline against the baseline by name, p corrected (Holm) for their number."""
    values = [tally.values(measure) for tally in tallies]
    found = _against([tally.name for tally in tallies], values, measure, baseline, seed)
    return {one.b: one for one in corrected(found)}


def _against(
    names: Sequence[str], values: Sequence[Sequence[float | None]], measure: str, baseline: int, seed: int
) -> list[Comparison]:
    """Every other row against that of the baseline, p as it came."""
    pairs = [
        Pair(values[baseline], row, (names[baseline], name), measure)
        for at, (name, row) in enumerate(zip(names, values, strict=True))
        if at != baseline
    ]
    return compare_all(pairs, seed=seed, resamples=resamples_for(len(values[baseline])))


def contrasts(
    baseline: PipelineTally, other: PipelineTally, measure: str = "SetF", order: str = "difference"
) -> list[Contrast]:
    """The queries both score, by absolute difference, or with the worst regressions (or improvements) first.

    Equal ones keep the order of the queries; a difference of mere rounding is 0.
    """
    check_same_queries([baseline, other])
    if order not in ORDERS:
        raise InputError(f"order is {order!r}, expected one of {', '.join(ORDERS)}")
    found = []
    for one, two in zip(baseline.queries, other.queries, strict=True):
        before, after = one.scores.values.get(measure), two.scores.values.get(measure)
        if before is not None and after is not None:
            difference = 0.0 if abs(after - before) <= TIE else after - before
            found.append(Contrast(one.query_id, one.query, one.tags, before, after, difference))
    if order == "difference":
        return sorted(found, key=lambda one: -abs(one.difference))
    return sorted(found, key=lambda one: one.difference, reverse=order == "improvements")


def slices(
    tallies: Sequence[PipelineTally],
    measure: str = "SetF",
    baseline: int = 0,
    seed: int = 0,
    progress: Told | None = None,
) -> list[Slice]:
    """Per tag the means and differences, largest slice first; p corrected (Holm) over all slices and pipelines."""
    check_same_queries(tallies)
    tagged = _by_tag(tallies[0].queries)
    names, values = [tally.name for tally in tallies], [tally.values(measure) for tally in tallies]
    found: list[tuple[list[Estimate], list[Comparison]]] = []
    for done, places in enumerate(tagged.values(), 1):
        rows = [[column[at] for at in places] for column in values]
        found.append((estimates(rows, seed), _against(names, rows, measure, baseline, seed)))
        if progress is not None:
            progress(done, len(tagged))
    compared = iter(corrected([one for _, against in found for one in against]))
    made = []
    for (tag, places), (means, against) in zip(tagged.items(), found, strict=True):
        by_name = {one.b: one for one in islice(compared, len(against))}
        cells = {name: Cell(mean, by_name.get(name)) for name, mean in zip(names, means, strict=True)}
        made.append(Slice(tag, len(places), cells))
    return made


def _by_tag(queries: Sequence[QueryTally]) -> dict[str, list[int]]:
    """Tag → places of its queries, largest first; queries without a tag stand under the empty one."""
    found: dict[str, list[int]] = {}
    for at, query in enumerate(queries):
        for tag in dict.fromkeys(query.tags) or ("",):
            found.setdefault(tag, []).append(at)
    return dict(sorted(found.items(), key=lambda pair: (-len(pair[1]), pair[0])))


def matrix(tallies: Sequence[PipelineTally], measure: str = "SetF") -> Matrix:
    """One measure of every query and pipeline: what a heat map shows."""
    check_same_queries(tallies)
    columns = [tally.values(measure) for tally in tallies]
    ids = tuple(query.query_id for query in tallies[0].queries)
    return Matrix(measure, ids, tuple(tally.name for tally in tallies), tuple(zip(*columns, strict=True)))


def to_decide(baseline: PipelineTally, other: PipelineTally) -> label_next.Comparison:
    """The two as a question of labels: `.ranked()[:12]` are the (gain, query id, chunk id) to label next,
    `.settled` says whether no open label can change which of them has the higher mean SetF.
    """
    check_same_queries([baseline, other])
    queries = [
        label_next.open_query(one.query_id, (one.kept, two.kept), one.grades, baseline.min_grade, one.relevant_total)
        for one, two in zip(baseline.queries, other.queries, strict=True)
    ]
    grades = [query.grades for query in baseline.queries]
    return label_next.Comparison(tuple(label_next.with_chances(queries, grades, baseline.min_grade)))
