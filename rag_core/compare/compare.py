"""Pipelines side by side: means with intervals, differences to a baseline, the queries where two differ, slices by tag.

Every difference is other − baseline, so that a negative one is a regression. The statistics themselves are in
significance.py, why two kept lists differ in overlap.py, where relevant chunks are lost in attribution.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from math import fsum
from typing import Any

from rag_core.compare import overlap
from rag_core.errors import InputError
from rag_core.measure.economy import Economy, total
from rag_core.measure.experiment import Outcome, kept_ids, shown
from rag_core.measure.significance import (
    BETTER,
    MARGIN,
    OPEN,
    SAME,
    TIE,
    TOO_FEW,
    WORSE,
    Comparison,
    compare,
    corrected,
    mean_interval,
    shown_p,
)
from rag_core.measure.tally import PipelineTally


def verdict_words(found: Comparison, margin: float = MARGIN) -> str:
    """What the second of the two is beside the first, by how much, and how many more questions would tell."""
    if found.delta is None:
        return f"No query is scored for both {found.a} and {found.b}, so nothing can be said."
    counts = f"{found.wins} wins, {found.ties} ties, {found.losses} losses"
    if not found.wins and not found.losses:
        where = "the one query" if found.queries == 1 else f"all {found.queries} queries"
        start = f"{found.b} and {found.a} have the same {found.measure} on {where}"
    else:
        way = "higher" if found.delta >= 0 else "lower"
        start = f"{found.b} is {abs(found.delta):.3f} {way} in {found.measure} than {found.a} ({counts})"
    word = found.word(margin)
    if found.low is None or found.high is None or found.p is None:
        return f"{start}: {word} for a verdict or an interval."
    p = found.p if found.p_corrected is None else found.p_corrected
    figures = f"interval {found.low:+.3f} to {found.high:+.3f}, {shown_p(p)}"
    if word in (BETTER, WORSE):
        return f"{start}: it is {word}; {figures}."
    if word == SAME:
        return f"{start}: {word}, within {margin:g}; {figures}."
    return f"{start}: {OPEN} which is better; {figures}.{more_words(found, margin)}"


def more_words(found: Comparison, margin: float = MARGIN) -> str:
    """How many more questions would decide; empty where the number is not to be had."""
    needed = found.needed(margin)
    if needed is None or found.word(margin) == TOO_FEW:
        return ""
    more = max(1, needed - found.families)
    return f" About {more:,} more questions would decide, if they are like these."


def detectable_words(found: Comparison) -> str:
    """How small a true difference the queries would have shown between the two: the minimum detectable effect.

    Empty where no query differs, or where they are too few for any word.
    """
    if found.detectable is None or (not found.wins and not found.losses):
        return ""
    if found.detectable > 1:  # every measure lies between 0 and 1
        return (
            f"With these {found.queries} queries no difference in {found.measure} between {found.b} and {found.a}, "
            "however large, would be found four times in five; it needs more queries."
        )
    return (
        f"With these {found.queries} queries a true difference of {found.detectable:.3f} in {found.measure} between "
        f"{found.b} and {found.a} would be found four times in five; smaller ones need more queries."
    )


def compared_words(found: Comparison) -> list[str]:
    """The sentences about two pipelines: the verdict, and how small a difference could be found."""
    return [words for words in (verdict_words(found), detectable_words(found)) if words]


def unjudged_words(name: str, unjudged: float | None) -> str:
    """How much of what a pipeline kept nobody has judged; empty where all of it is."""
    if not unjudged:
        return ""
    return f"{unjudged:.0%} of what {name} kept has no label and counts as irrelevant."


def side_by_side_json(outcomes: Sequence[Outcome], names: Sequence[str]) -> dict[str, Any]:
    """One query through every pipeline, each against the first: measures, overlap, the reason of every difference."""
    base, *others = outcomes
    against = []
    for name, other in zip(names[1:], others, strict=True):
        found = overlap.differences(base, other, (names[0], name))
        alike = overlap.jaccard(kept_ids(base.result), kept_ids(other.result))
        against.append({"name": name, "jaccard": alike, "differences": [asdict(one) for one in found]})
    return {
        "id": base.case.query.id,
        "query": base.case.query.text,
        "pipelines": [
            {"name": name, "values": dict(outcome.scores.values)} for name, outcome in zip(names, outcomes, strict=True)
        ],
        "against": against,
    }


Told = Callable[[int, int], None]
"""Called with how many parts of how many are done; one that raises ends the work."""

SHOWN = ("SetP", "SetR", "SetF", "nDCG@15")
ORDERS = ("difference", "regressions", "improvements")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over scored queries with its 95 % interval; None where there are too few queries to say."""

    mean: float | None
    low: float | None
    high: float | None
    queries: int


@dataclass(frozen=True, slots=True)
class Cell:
    """One measure of one pipeline, and how it differs from the baseline (None for the baseline itself)."""

    estimate: Estimate
    against: Comparison | None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self.estimate), "against": None if self.against is None else self.against.to_json()}


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

    def to_json(self) -> dict[str, Any]:
        """Cells with their difference, economy and counts."""
        counts = ("kept_mean", "unjudged", "queries_total", "queries_scored", "queries_empty", "queries_fallback")
        return {
            "name": self.name,
            "measures": {name: cell.to_json() for name, cell in self.cells.items()},
            "economy": self.economy.to_json(),
            **{name: getattr(self, name) for name in counts},
        }


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


def estimate(values: Sequence[float | None], families: Sequence[str] | None = None) -> Estimate:
    """Mean of the scored values and its interval; `families` name the queries in their order."""
    places = [at for at, value in enumerate(values) if value is not None]
    scored = [value for value in values if value is not None]
    if not scored:
        return Estimate(None, None, None, 0)
    low, high, _ = mean_interval(scored, None if families is None else [families[at] for at in places])
    return Estimate(fsum(scored) / len(scored), low, high, len(scored))


def table(
    tallies: Sequence[PipelineTally],
    measures: Sequence[str] = SHOWN,
    baseline: int = 0,
    progress: Told | None = None,
) -> list[TableRow]:
    """Pipelines × measures with differences to the pipeline at `baseline`; p corrected (Holm) over the whole table."""
    check_same_queries(tallies)
    families = tallies[0].families
    means: dict[str, list[Estimate]] = {}
    against: list[Comparison] = []
    for done, measure in enumerate(measures, 1):
        means[measure] = [estimate(tally.values(measure), families) for tally in tallies]
        against += _against(tallies, [tally.values(measure) for tally in tallies], measure, baseline, families)
        if progress is not None:
            progress(done, len(measures))
    compared = {(one.measure, one.b): one for one in corrected(against)}
    return [
        TableRow(
            name=tally.name,
            cells={measure: Cell(means[measure][at], compared.get((measure, tally.name))) for measure in measures},
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


def differences(tallies: Sequence[PipelineTally], measure: str = "SetF", baseline: int = 0) -> dict[str, Comparison]:
    """Every other pipeline against the baseline by name, p corrected (Holm) for their number."""
    values = [tally.values(measure) for tally in tallies]
    found = _against(tallies, values, measure, baseline, tallies[0].families)
    return {one.b: one for one in corrected(found)}


def _against(
    tallies: Sequence[PipelineTally],
    values: Sequence[Sequence[float | None]],
    measure: str,
    baseline: int,
    families: Sequence[str],
) -> list[Comparison]:
    """Every other row against that of the baseline, p as it came."""
    base = tallies[baseline].name
    return [
        compare(values[baseline], row, names=(base, tally.name), measure=measure, families=families)
        for at, (tally, row) in enumerate(zip(tallies, values, strict=True))
        if at != baseline
    ]


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
    progress: Told | None = None,
) -> list[Slice]:
    """Per tag the means and differences, largest slice first; p corrected (Holm) over all slices and pipelines."""
    check_same_queries(tallies)
    by_tag: dict[str, list[int]] = {}  # tag → places of its queries, which stand under the empty one without a tag
    for at, query in enumerate(tallies[0].queries):
        for tag in dict.fromkeys(query.tags) or ("",):
            by_tag.setdefault(tag, []).append(at)
    tagged = dict(sorted(by_tag.items(), key=lambda pair: (-len(pair[1]), pair[0])))
    values, families = [tally.values(measure) for tally in tallies], tallies[0].families
    found: list[tuple[list[Estimate], list[Comparison]]] = []
    for done, places in enumerate(tagged.values(), 1):
        rows, named = [[column[at] for at in places] for column in values], [families[at] for at in places]
        means = [estimate(row, named) for row in rows]
        found.append((means, _against(tallies, rows, measure, baseline, named)))
        if progress is not None:
            progress(done, len(tagged))
    compared = iter(corrected([one for _, against in found for one in against]))
    made = []
    for (tag, places), (means, against) in zip(tagged.items(), found, strict=True):
        by_name = {one.b: one for one in islice(compared, len(against))}
        cells = {tally.name: Cell(mean, by_name.get(tally.name)) for tally, mean in zip(tallies, means, strict=True)}
        made.append(Slice(tag, len(places), cells))
    return made


@dataclass(frozen=True)
class Compared:
    """Pipelines side by side, the first as baseline: table, queries that differ most, slices."""

    tallies: Sequence[PipelineTally]
    rows: list[TableRow]
    measure: str
    contrasts: Mapping[str, list[Contrast]]  # pipeline → queries on which it differs most from the first

    @property
    def sentences(self) -> list[str]:
        """Every pipeline against the first, and how much of what each kept nobody has judged."""
        against = [row.cells[self.measure].against for row in self.rows]
        said = [sentence for found in against if found is not None for sentence in compared_words(found)]
        return said + [words for row in self.rows if (words := unjudged_words(row.name, row.unjudged))]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        by_tag = slices(self.tallies, self.measure)
        return {
            "baseline": self.tallies[0].name,
            "measure": self.measure,
            "table": [row.to_json() for row in self.rows],
            "sentences": self.sentences,
            "contrasts": {name: [asdict(one) for one in found] for name, found in self.contrasts.items()},
            "slices": [
                {
                    "tag": one.tag,
                    "queries": one.queries,
                    "pipelines": {name: cell.to_json() for name, cell in one.cells.items()},
                }
                for one in by_tag
            ],
        }

    def to_text(self) -> str:
        """The table, what it says, and the contrasts."""
        lines = []
        for row in self.rows:
            found = row.cells[self.measure].estimate
            interval = "" if found.low is None else f" [{shown(found.low)}, {shown(found.high)}]"
            lines.append(f"{row.name}: {self.measure} {shown(found.mean)}{interval}, {row.kept_mean:.1f} kept a query")
        lines += self.sentences
        for name, queries in self.contrasts.items():
            lines.append(f"{name} against {self.tallies[0].name}:")
            lines += [
                f"  {one.difference:+.3f}  {one.query_id}  {one.baseline:.3f} → {one.other:.3f}" for one in queries
            ]
        return "\n".join(lines)


def side_by_side(
    tallies: Sequence[PipelineTally],
    measure: str = "SetF",
    order: str = "regressions",
    most: int = 20,
) -> Compared:
    """The table against the first pipeline, and the `most` queries that differ most from it."""
    base, *others = tallies
    rows = table(tallies, list(dict.fromkeys(("SetP", "SetR", "SetF", measure))))
    found = {other.name: list(contrasts(base, other, measure, order)[:most]) for other in others}
    return Compared(tallies, rows, measure, found)
