"""How far a model's labels may be believed: its agreement with people's, with an interval, and how steady it is.

Agreement is Cohen's kappa on relevant or not, which is what the set measures see; kappa on the grades stands beside it.
The interval is a bootstrap over queries, since grades of one query hang together. A model passes when the whole
interval lies at or above the bar on at least 50 labels of 10 queries: a few lucky labels are not enough.

Sources: Cohen 1960; Efron and Tibshirani 1993 (percentile bootstrap); Thomas et al. 2024, "Large language models can
accurately predict searcher preferences" (agreement before use).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rag_core.labelling.agreement import GRADES

BAR = 0.6
LEAST_ITEMS, LEAST_QUERIES = 50, 10
RESAMPLES = 2000
Item: TypeAlias = tuple[str, str]
"""(query id, chunk key)."""
Counts = NDArray[np.float64]


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
            return f"{self.judge} and people share {self.items} labels, too few or too alike for a kappa"
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
    seed: int = 0,
) -> JudgeAgreement:
    """The agreement of a model's first run with people's grades, and how steady its runs are.

    A file's grade beyond 0 to 3 (other collections go to 4, or have -1) counts as the nearest of these.
    """
    first = runs[0] if runs else {}
    shared = [item for item in first if item in people]
    by_query: dict[str, Counts] = {}
    for item in shared:
        counts = by_query.setdefault(item[0], np.zeros((len(GRADES), len(GRADES))))
        counts[min(max(people[item], GRADES[0]), GRADES[-1]), first[item]] += 1
    tables: Counts = np.array(list(by_query.values())) if by_query else np.zeros((0, len(GRADES), len(GRADES)))
    confusion = tables.sum(axis=0)
    sides = _by_side(tables, min_grade)
    total = sides.sum(axis=0)
    low, high = _interval(sides, seed)
    return JudgeAgreement(
        judge=judge,
        items=len(shared),
        queries=len(by_query),
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


def kappa_of(confusion: Counts) -> float | None:
    """Cohen's kappa of a square table of counts; None where it is 0/0."""
    value = float(_kappas(np.asarray(confusion, dtype=float)[None])[0])
    return None if np.isnan(value) else value


def flip_rate(runs: Sequence[Mapping[Item, int]]) -> float | None:
    """The share of the items graded in every run that were not always graded alike; None with fewer than two runs."""
    if len(runs) < 2:
        return None
    common = [item for item in runs[0] if all(item in run for run in runs)]
    return sum(len({run[item] for run in runs}) > 1 for item in common) / len(common) if common else None


def _by_side(tables: Counts, min_grade: int) -> Counts:
    """The tables with grades made two: below min_grade, and from it on."""
    cut = [slice(0, min_grade), slice(min_grade, None)]
    return np.array([[tables[:, one, other].sum(axis=(1, 2)) for other in cut] for one in cut]).transpose(2, 0, 1)


def _interval(tables: Counts, seed: int) -> tuple[float | None, float | None]:
    """The middle 95 % of the kappas of resampled queries; None where one query is all there is or none has a kappa."""
    if len(tables) < 2:
        return None, None
    dice = np.random.default_rng(seed)
    drawn = dice.multinomial(len(tables), np.full(len(tables), 1 / len(tables)), size=RESAMPLES)
    kappas = _kappas(np.tensordot(drawn.astype(float), tables, axes=1))
    known = kappas[~np.isnan(kappas)]
    if len(known) < RESAMPLES / 2:
        return None, None
    low, high = np.quantile(known, [0.025, 0.975])
    return float(low), float(high)


def _kappas(tables: Counts) -> Counts:
    """Cohen's kappa of each table; NaN where it is 0/0."""
    totals = tables.sum(axis=(1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = np.trace(tables, axis1=1, axis2=2) / totals
        expected = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1) / totals**2
        return np.asarray(np.where(expected < 1, (observed - expected) / (1 - expected), np.nan))
