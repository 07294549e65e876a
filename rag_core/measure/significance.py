"""Does one pipeline differ from another? Paired comparison of two vectors of per-query values.

Delta is b − a, so a positive one means that b is better. The interval is a bootstrap over queries and the p a paired
permutation test (resampling.py), with a fixed seed; Holm's correction is ours because scipy only controls the false
discovery rate, and whoever picks one winner from a table wants the chance of any false one held. What the values mean
is in measures.py; queries that either side leaves unscored take no part.

Sources: Holm 1979; Bloom 1995 (minimum detectable effect).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import isfinite
from typing import TYPE_CHECKING, Any, Protocol

from rag_core.errors import InputError
from rag_core.measure.resampling import RESAMPLES as RESAMPLES
from rag_core.measure.resampling import TIE as TIE
from rag_core.measure.resampling import Chance, Interval, intervals, permutation_tests

if TYPE_CHECKING:
    from rag_core.measure.resampling import Row

CORRECTION = "Holm"

Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How b differs from a over the queries that both score. None where there are too few queries to say."""

    a: str
    b: str
    measure: str
    queries: int  # pairs compared
    delta: float | None  # mean of b − a
    low: float | None  # 95 % bootstrap interval of delta; from 2 queries on
    high: float | None
    p: float | None  # paired permutation test, two-sided
    wins: int  # queries on which b is better
    ties: int
    losses: int
    detectable: float | None  # smallest true difference found with power 0.8
    interval: str = ""  # how the interval came about: BCa, percentile, or constant where all differences are equal
    exact: bool = False  # p counts every sign pattern instead of sampling them
    p_corrected: float | None = None  # set by `corrected`

    def to_json(self) -> dict[str, Any]:
        """One flat mapping for the `comparison` list of the command line."""
        ci = None if self.low is None or self.high is None else [self.low, self.high]
        named = {name: getattr(self, name) for name in self.__slots__ if name not in ("low", "high")}
        return {**named, "ci": ci, "correction": CORRECTION if self.p_corrected is not None else None}

    def to_text(self) -> str:
        """One line: the difference with its interval, the test, wins and losses."""
        return comparison_line(self.to_json())


@dataclass(frozen=True, slots=True)
class ValuePair:
    """Two vectors of per-query values that stand in the same order of queries, and what they are called."""

    a: Values
    b: Values
    names: tuple[str, str] = ("a", "b")
    measure: str = ""


def compare(
    a: Values,
    b: Values,
    *,
    names: tuple[str, str] = ("a", "b"),
    measure: str = "",
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Comparison:
    """Compare two vectors of per-query values that stand in the same order of queries.

    A query that either side leaves unscored (None) is left out. Raises InputError for vectors of different length or
    a value that is not finite.
    """
    return compare_all([ValuePair(a, b, names, measure)], seed=seed, resamples=resamples)[0]


def compare_all(pairs: Sequence[ValuePair], *, seed: int = 0, resamples: int = RESAMPLES) -> list[Comparison]:
    """Each pair as `compare` has it; those over equally many queries share their resamples, which saves most of it."""
    import numpy as np

    rows = [np.asarray(_differences(pair.a, pair.b), dtype=float) for pair in pairs]
    found = intervals(rows, seed=seed, resamples=resamples)
    tests = permutation_tests(rows, seed=seed, resamples=resamples)
    return [_comparison(*one) for one in zip(pairs, rows, found, tests, strict=True)]


def _comparison(pair: ValuePair, row: Row, interval: Interval, test: Chance) -> Comparison:
    """One pair from its differences and what was drawn of them."""
    count, wins, losses = len(row), int((row > 0).sum()), int((row < 0).sum())
    if not count:
        return Comparison(*pair.names, pair.measure, 0, None, None, None, None, 0, 0, 0, None)
    low, high, method = interval
    return Comparison(
        *pair.names,
        pair.measure,
        count,
        delta=float(row.mean()),
        low=low,
        high=high,
        p=test[0],
        wins=wins,
        ties=count - wins - losses,
        losses=losses,
        detectable=minimum_detectable_effect(count, float(row.std(ddof=1))) if count > 1 else None,
        interval=method,
        exact=test[1],
    )


def _differences(a: Values, b: Values) -> list[float]:
    """Each b − a over the queries that both score; what is mere rounding is 0, so that no test sees it."""
    if len(a) != len(b):
        raise InputError(f"comparison got {len(a)} and {len(b)} values, expected one of each per query")
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    bad = next((value for pair in pairs for value in pair if not isfinite(value)), None)
    if bad is not None:
        raise InputError(f"comparison got the value {bad}, expected a finite number or nothing")
    differences = [float(y) - float(x) for x, y in pairs]
    return [0.0 if abs(difference) <= TIE else difference for difference in differences]


def bootstrap_interval(differences: Row, *, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """`resampling.intervals` of one row: its 95 % interval and the method."""
    return intervals([differences], seed=seed, resamples=resamples)[0]


def minimum_detectable_effect(queries: int, spread: float, *, power: float = 0.8, alpha: float = 0.05) -> float | None:
    """Smallest true mean difference that `queries` queries show with this power; None below 2 queries.

    (t(1 − α/2) + t(power)) · spread / √n with n − 1 degrees of freedom, where spread is the standard deviation of the
    per-query differences (Bloom, Minimum detectable effects, Evaluation Review 19(5), 1995).
    """
    from scipy.special import stdtrit  # what scipy.stats.t asks; scipy.stats itself takes long to import

    if queries < 2:
        return None
    quantiles = stdtrit(queries - 1, [1 - alpha / 2, power])
    return float(quantiles.sum() * spread / queries**0.5)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: adjusted p values, in the order given (Holm 1979)."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for done, position in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - done) * p_values[position]))
        adjusted[position] = highest
    return adjusted


def corrected(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons with `p_corrected` for their number; those without a p do not count."""
    adjusted = iter(holm([one.p for one in comparisons if one.p is not None]))
    return [one if one.p is None else replace(one, p_corrected=next(adjusted)) for one in comparisons]


class ReportedValues(Protocol):
    """A pipeline's report, as far as it is compared."""

    @property
    def name(self) -> str:
        """The pipeline's name."""

    def values(self, measure: str) -> list[float | None]:
        """A measure by query."""


def comparison_line(row: Mapping[str, Any]) -> str:
    """What `Comparison.to_json` gave, in one line."""
    if row["delta"] is None:
        return f"{row['b']} − {row['a']}: no question has a relevant label, so nothing is compared"
    interval = "" if row["ci"] is None else f" [{row['ci'][0]:+.3f}, {row['ci'][1]:+.3f}]"
    p = row["p"] if row["p_corrected"] is None else row["p_corrected"]
    said = "" if p is None else f", p {'< 0.001' if p < 0.001 else f'{p:.3f}'} ({row['correction'] or 'uncorrected'})"
    counts = f"{row['wins']} wins, {row['ties']} ties, {row['losses']} losses"
    return f"{row['b']} − {row['a']}: {row['measure']} {row['delta']:+.3f}{interval}{said}; {counts}"


def compare_reports(
    reports: Sequence[ReportedValues], seed: int, every_pair: bool = False, measures: Sequence[str] = ("SetF",)
) -> list[Comparison]:
    """Each pipeline against the first, or every pair, in these measures; nothing for a single one.

    p is corrected over all of it, pairs and measures.
    """
    if len(reports) < 2:
        return []
    compared: list[Comparison] = []
    for measure in dict.fromkeys(measures):
        values = {report.name: report.values(measure) for report in reports}
        compared += (all_pairs if every_pair else against_first)(values, measure, seed=seed)
    return corrected(compared)


def against_first(values: Mapping[str, Values], measure: str, *, seed: int = 0) -> list[Comparison]:
    """Every pipeline against the first (its values by name, same queries in the same order), corrected."""
    names = list(values)
    return _compare_pairs([(names[0], name) for name in names[1:]], values, measure, seed)


def all_pairs(values: Mapping[str, Values], measure: str, *, seed: int = 0) -> list[Comparison]:
    """Every pair of pipelines, corrected."""
    return _compare_pairs(list(combinations(values, 2)), values, measure, seed)


def _compare_pairs(
    pairs: Sequence[tuple[str, str]], values: Mapping[str, Values], measure: str, seed: int
) -> list[Comparison]:
    return corrected(compare_all([ValuePair(values[a], values[b], (a, b), measure) for a, b in pairs], seed=seed))
