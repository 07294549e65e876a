"""How far annotators agree beyond chance: Cohen's kappa for a pair, Krippendorff's alpha for many, a model and people.

Works on grades by annotator and item; where they come from is the caller's. An item is whatever was labelled, usually
(query id, chunk id). Unsure and missing grades are simply not there. Both figures come of tables of counts that are
sums over items, so that an interval is a jackknife over clusters of items: those of one question hang together.

A model's labels may count where its kappa with people on relevant or not, which is what the set measures see, lies with
its whole interval at or above the bar, on at least 50 labels of 10 queries: a few lucky labels are not enough.

Sources: Cohen 1960; Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability"; Efron and Tibshirani 1993
(jackknife); Agresti and Coull 1998 (observations added at either end); Thomas et al. 2024, "Large language models can
accurately predict searcher preferences" (agreement before use).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from math import sqrt
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rag_core.errors import InputError
from rag_core.measure.significance import FEWEST, LEVEL

GRADES = (0, 1, 2, 3)
FEWEST_ITEMS, FEWEST_CLUSTERS = 20, FEWEST
"""Fewer items judged twice, or from fewer questions, carry no interval: too few to say how far they agree."""
BAR = 0.6
LEAST_ITEMS, LEAST_QUERIES = 50, 10
Item: TypeAlias = Any
"""Anything hashable."""
Labels: TypeAlias = Mapping[str, Mapping[Item, int]]
"""{annotator: {item: grade}}."""
Counts: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Two annotators on the items both judged; `kappa` is None where chance alone explains everything or no item is.

    Without an interval it is too little to say.
    """

    first: str
    second: str
    items: int
    observed: float | None
    kappa: float | None
    low: float | None = None  # of kappa
    high: float | None = None
    clusters: int = 0  # questions that the items come from


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An item on which the grades differ, and who said what."""

    item: Item
    grades: Mapping[str, int]

    @property
    def spread(self) -> int:
        """Highest minus lowest grade."""
        return max(self.grades.values()) - min(self.grades.values())


UNEQUAL: Counts = 1 - np.eye(len(GRADES))
LINEAR: Counts = np.abs(np.subtract.outer(np.arange(len(GRADES)), np.arange(len(GRADES)))).astype(np.float64)
"""How much a miss counts: each the same, or by its distance."""


def kappas(tables: Counts, misses: Counts = UNEQUAL) -> Counts:
    """Cohen's kappa of each square table of counts (n, grades, grades), in [−1, 1]; NaN where it is 0/0."""
    weights = misses[: tables.shape[1], : tables.shape[1]]
    by_chance = tables.sum(axis=2)[:, :, None] * tables.sum(axis=1)[:, None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = (weights * by_chance).sum(axis=(1, 2)) / tables.sum(axis=(1, 2))
        return np.asarray(np.where(expected > 0, 1 - (weights * tables).sum(axis=(1, 2)) / expected, np.nan))


def kappa_of(table: Sequence[Sequence[float]] | Counts, misses: Counts = UNEQUAL) -> float | None:
    """Cohen's kappa of one square table of counts; None where it is 0/0."""
    return _known(kappas(np.asarray(table, dtype=float)[None], misses))


def cohen_kappa(first: Sequence[int], second: Sequence[int], misses: Counts = UNEQUAL) -> float | None:
    """Cohen's kappa of two equally long lists of grades; None where it is undefined (0/0)."""
    if len(first) != len(second):
        raise InputError(f"{len(first)} and {len(second)} grades, expected two lists of one length")
    table: Counts = np.zeros((len(GRADES), len(GRADES)))
    for one, other in zip(first, second, strict=True):
        table[_in_range(one), _in_range(other)] += 1
    return kappa_of(table, misses)


def tables_by_cluster(rows: Iterable[tuple[Hashable, int, int]]) -> Counts:
    """A table of counts (grade of the one, grade of the other) for each cluster, from (cluster, grade, grade)."""
    tables: dict[Hashable, Counts] = {}
    for cluster, one, other in rows:
        tables.setdefault(cluster, np.zeros((len(GRADES), len(GRADES))))[_in_range(one), _in_range(other)] += 1
    return np.array(list(tables.values())).reshape(-1, len(GRADES), len(GRADES))


def itself(item: Item) -> Hashable:
    """Every item a cluster of its own."""
    hashed: Hashable = item
    return hashed


def pair_agreements(
    labels: Labels, misses: Counts = UNEQUAL, cluster: Callable[[Item], Hashable] = itself
) -> list[PairAgreement]:
    """Cohen's kappa of every two annotators, by name, on the items both judged, with its interval over clusters."""
    pairs = []
    for first, second in combinations(sorted(labels), 2):
        ours, theirs = labels[first], labels[second]
        shared = [item for item in ours if item in theirs]
        tables = tables_by_cluster((cluster(item), ours[item], theirs[item]) for item in shared)
        observed = float(np.trace(tables.sum(axis=0))) / len(shared) if shared else None
        low, high = interval_of(tables, lambda added: kappas(added, misses), len(shared))
        kappa = kappa_of(tables.sum(axis=0), misses)
        pairs.append(PairAgreement(first, second, len(shared), observed, kappa, low, high, len(tables)))
    return pairs


def alphas(tables: Counts) -> Counts:
    """Krippendorff's alpha of each coincidence table (n, grades, grades), grades ordered; NaN where only one occurs.

    α = 1 − Dₒ/Dₑ; the squared distance of two grades counts the judgements that lie between.
    """
    totals = tables.sum(axis=1)
    places = np.cumsum(totals, axis=1) - totals / 2
    distance = (places[:, :, None] - places[:, None, :]) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = (totals[:, :, None] * totals[:, None, :] * distance).sum(axis=(1, 2)) / (totals.sum(axis=1) - 1)
        observed = (tables * distance).sum(axis=(1, 2))
        return np.asarray(np.where(expected > 0, 1 - observed / expected, np.nan))


def krippendorff_alpha(labels: Labels) -> float | None:
    """Krippendorff's alpha, which bears missing grades; None where nothing was judged twice or one grade is all."""
    _, tables = _coincidences(labels)
    return _known(alphas(tables.sum(axis=0)[None])) if len(tables) else None


@dataclass(frozen=True, slots=True)
class AlphaEstimate:
    """Krippendorff's alpha with its 95 % interval; the ends are None where too little was judged twice to say."""

    alpha: float | None
    low: float | None
    high: float | None
    items: int  # judged by two or more
    clusters: int  # that these items come from


def alpha_estimate(labels: Labels, cluster: Callable[[Item], Hashable] = itself) -> AlphaEstimate:
    """Alpha and its interval over clusters of items."""
    items, tables = _coincidences(labels)
    place = {name: at for at, name in enumerate(dict.fromkeys(cluster(item) for item in items))}
    by_cluster: Counts = np.zeros((len(place), len(GRADES), len(GRADES)))
    np.add.at(by_cluster, [place[cluster(item)] for item in items], tables)
    low, high = interval_of(by_cluster, alphas, len(items))
    return AlphaEstimate(krippendorff_alpha(labels), low, high, len(items), len(place))


def _coincidences(labels: Labels) -> tuple[list[Item], Counts]:
    """The items that two or more judged, and each one's coincidence table (items, grades, grades)."""
    by_item: dict[Item, list[int]] = {}
    for grades in labels.values():
        for item, grade in grades.items():
            by_item.setdefault(item, []).append(_in_range(grade))
    twice = {item: grades for item, grades in by_item.items() if len(grades) > 1}
    counts: Counts = np.array([np.bincount(grades, minlength=len(GRADES)) for grades in twice.values()], dtype=float)
    counts = counts.reshape(len(twice), len(GRADES))
    tables = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(len(GRADES))
    return list(twice), np.asarray(tables / (counts.sum(axis=1) - 1)[:, None, None])


def _in_range(grade: int) -> int:
    if grade not in GRADES:
        raise InputError(f"grade is {grade!r}, expected 0, 1, 2 or 3")
    return grade


def _known(values: Counts) -> float | None:
    return None if np.isnan(values[0]) else float(values[0])


def interval_of(tables: Counts, figure: Callable[[Counts], Counts], items: int) -> tuple[float | None, float | None]:
    """The 95 % interval of a figure of tables added up, one of each cluster; None where they are too few to say.

    Student's t over jackknife values, with one cluster added that agrees throughout and one that agrees by chance, so
    that full agreement is never certain. With 6 to 40 questions of 4 or 5 items, kappas from .27 to .89 and 8 or 30 %
    relevant it covered .93 to 1.00 of 400 runs each; the percentile bootstrap .54 to .95.
    """
    from scipy.special import stdtrit

    count = len(tables)
    if count < FEWEST_CLUSTERS or items < FEWEST_ITEMS:
        return None, None
    whole = tables.sum(axis=0)
    rows, columns = whole.sum(axis=1) / whole.sum(), whole.sum(axis=0) / whole.sum()
    added = np.array([np.diag((rows + columns) / 2), np.outer(rows, columns)]) * whole.sum() / count
    several = np.concatenate([tables, added])
    total = several.sum(axis=0)
    centre, without = float(figure(total[None])[0]), figure(total - several)
    if np.isnan(without).any():
        return None, None
    off = float(stdtrit(count - 1, 1 - LEVEL / 2)) * sqrt((len(several) - 1) ** 2 * without.var(ddof=1) / len(several))
    seen = float(figure(whole[None])[0])
    return max(-1.0, min(seen, centre - off)), min(1.0, max(seen, centre + off))


def disagreements(labels: Labels) -> list[Disagreement]:
    """The items with differing grades, widest spread first, else in the order they were judged."""
    by_item: dict[Item, dict[str, int]] = {}
    for annotator, grades in labels.items():
        for item, grade in grades.items():
            by_item.setdefault(item, {})[annotator] = grade
    differing = [Disagreement(item, grades) for item, grades in by_item.items() if len(set(grades.values())) > 1]
    return sorted(differing, key=lambda disagreement: -disagreement.spread)


@dataclass(frozen=True)
class PeopleAgreement:
    """How far annotators agree beyond chance, by pair and all together, and the items on which they differ."""

    annotators: tuple[str, ...]
    pairs: tuple[PairAgreement, ...]
    krippendorff: AlphaEstimate
    disagreements: tuple[Disagreement, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values; an item is (query id, chunk)."""
        return {
            "annotators": list(self.annotators),
            "pairs": [asdict(pair) for pair in self.pairs],
            "krippendorff_alpha": self.krippendorff.alpha,
            "krippendorff_interval": [self.krippendorff.low, self.krippendorff.high],
            "disagreements": [
                {"query_id": row.item[0], "chunk_id": row.item[1], "grades": dict(row.grades)}
                for row in self.disagreements
            ],
        }

    def to_text(self) -> str:
        """A line a pair, and all together; an undefined figure is a dash."""
        lines = [
            f"{pair.first} and {pair.second}: {pair.items} in common, kappa {shown(pair.kappa, pair.low, pair.high)}"
            for pair in self.pairs
        ]
        everyone = self.krippendorff
        different = f"{len(self.disagreements)} chunks labelled differently"
        return "\n".join([*lines, f"Krippendorff {shown(everyone.alpha, everyone.low, everyone.high)}", different])


def shown(value: float | None, low: float | None, high: float | None, digits: int = 3) -> str:
    """A figure of agreement with its interval, or that it is too little to say."""
    if value is None or low is None or high is None:
        return f"too few (it needs {FEWEST_ITEMS} chunks of {FEWEST_CLUSTERS} questions, of more than one grade)"
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def agreement(labels: Labels, names: Mapping[Item, Item] | None = None) -> PeopleAgreement:
    """Cohen's kappa by pair, Krippendorff's alpha, and every disagreement; items are (query id, chunk).

    `names`: what an item is called where people read of it.
    """
    named = names or {}
    return PeopleAgreement(
        tuple(sorted(labels)),
        tuple(pair_agreements(labels, cluster=lambda item: item[0])),
        alpha_estimate(labels, cluster=lambda item: item[0]),
        tuple(replace(row, item=named.get(row.item, row.item)) for row in disagreements(labels)),
    )


# A model beside people


@dataclass(frozen=True)
class JudgeAgreement:
    """A model beside people, on the items both graded. Kappas are None where chance explains everything (0/0)."""

    judge: str
    items: int
    queries: int
    observed: float | None  # share of items with the same side of relevant or not
    kappa: float | None
    low: float | None
    high: float | None
    grade_kappa: float | None
    confusion: tuple[tuple[int, ...], ...]  # rows: people's grade 0-3, columns: the model's
    runs: int
    flip_rate: float | None  # share of items that not every run graded alike; None with a single run
    bar: float

    @property
    def passes(self) -> bool:
        """Whether its labels may count."""
        enough = self.items >= LEAST_ITEMS and self.queries >= LEAST_QUERIES
        return enough and self.low is not None and self.low >= self.bar

    @property
    def words(self) -> str:
        """The agreement in one sentence."""
        if self.kappa is None or self.low is None or self.high is None:
            return f"{self.judge} and people share {self.items} labels: kappa {shown(None, None, None)}"
        few = self.items < LEAST_ITEMS or self.queries < LEAST_QUERIES
        verdict = "passes" if self.passes else "shares too few labels to pass" if few else "does not pass"
        return (
            f"{self.judge} agrees with people by kappa {self.kappa:.3f} [{self.low:.3f}, {self.high:.3f}] on "
            f"{self.items} labels of {self.queries} queries; it {verdict} the bar of {self.bar:g}"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "passes": self.passes}

    def to_text(self) -> str:
        """The sentence, how steady the model is, and the confusion matrix."""
        steady = "asked once, so its steadiness is not known"
        if self.flip_rate is not None:
            steady = f"{self.flip_rate:.1%} of its grades flip over {self.runs} runs"
        rows = ["    people \\ model     0     1     2     3"]
        rows += [f"    {grade:>14}" + "".join(f"{n:>6}" for n in row) for grade, row in enumerate(self.confusion)]
        return "\n".join([f"{self.words}; {steady}", *rows])


def judge_agreement(
    judge: str,
    people: Mapping[Item, int],
    runs: Sequence[Mapping[Item, int]],
    min_grade: int = 1,
    bar: float = BAR,
) -> JudgeAgreement:
    """The agreement of a model's first run with people's grades, items being (query id, chunk key), and its steadiness.

    A file's grade beyond 0 to 3 (other collections go to 4, or have -1) counts as the nearest of these.
    """
    first = runs[0] if runs else {}
    shared = [item for item in first if item in people]
    tables = tables_by_cluster((item[0], min(max(people[item], GRADES[0]), GRADES[-1]), first[item]) for item in shared)
    edges = [0, min_grade]  # below min_grade, and from it on
    sides = np.add.reduceat(np.add.reduceat(tables, edges, axis=1), edges, axis=2)
    total, confusion = sides.sum(axis=0), tables.sum(axis=0)
    low, high = interval_of(sides, kappas, len(shared))
    return JudgeAgreement(
        judge=judge,
        items=len(shared),
        queries=len(tables),
        observed=float(np.trace(total) / total.sum()) if shared else None,
        kappa=kappa_of(total),
        low=low,
        high=high,
        grade_kappa=kappa_of(confusion),
        confusion=tuple(tuple(int(count) for count in row) for row in confusion),
        runs=len(runs),
        flip_rate=flip_rate(runs),
        bar=bar,
    )


def flip_rate(runs: Sequence[Mapping[Item, int]]) -> float | None:
    """The share of the items graded in every run that were not always graded alike; None with fewer than two runs."""
    if len(runs) < 2:
        return None
    common = [item for item in runs[0] if all(item in run for run in runs)]
    return sum(len({run[item] for run in runs}) > 1 for item in common) / len(common) if common else None
