"""Does one pipeline differ from another? Paired comparison of two vectors of per-query values.

Delta is b − a, so a positive one means that b is better. The interval is a bootstrap over queries and the p a paired
permutation test, both from scipy with a fixed seed; Holm's correction is ours because scipy only controls the false
discovery rate, and whoever picks one winner from a table wants the chance of any false one held. What the values mean
is in measures.py; queries that either side leaves unscored take no part.

Sources: Smucker, Allan and Carterette 2007 (permutation tests over queries); Efron and Tibshirani 1993 (BCa bootstrap);
Holm 1979; Bloom 1995 (minimum detectable effect).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import isfinite
from typing import TYPE_CHECKING, Any

from rag_core.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CORRECTION = "Holm"
CONFIDENCE = 0.95
RESAMPLES = 9999
TIE = 1e-12  # differences this small are rounding, not wins
_BATCH_CELLS = 2_000_000  # resampled values held at once: 16 MB

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
    differences = _differences(a, b)
    count = len(differences)
    wins = sum(difference > 0 for difference in differences)
    losses = sum(difference < 0 for difference in differences)
    if not count:
        return Comparison(*names, measure, 0, None, None, None, None, 0, 0, 0, None)
    import numpy as np

    array = np.asarray(differences)
    low, high, interval = bootstrap_interval(array, seed=seed, resamples=resamples)
    p, exact = permutation_p(array, seed=seed, resamples=resamples)
    return Comparison(
        *names,
        measure,
        count,
        delta=float(array.mean()),
        low=low,
        high=high,
        p=p,
        wins=wins,
        ties=count - wins - losses,
        losses=losses,
        detectable=minimum_detectable_effect(count, float(array.std(ddof=1))) if count > 1 else None,
        interval=interval,
        exact=exact,
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


def bootstrap_interval(
    differences: NDArray[np.float64], *, seed: int = 0, resamples: int = RESAMPLES
) -> tuple[float | None, float | None, str]:
    """95 % interval of the mean difference and its method: BCa, else percentile, else constant; None below 2 queries.

    `constant` means that all differences are equal: resampling them says nothing about how other queries would differ.
    """
    import numpy as np
    from scipy.stats import bootstrap

    if len(differences) < 2:
        return None, None, ""
    if np.ptp(differences) <= TIE:
        constant = float(differences.mean())
        return constant, constant, "constant"
    for method in ("BCa", "percentile"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scipy warns of a degenerate BCa; the percentile interval follows
            found = bootstrap(
                (differences,),
                np.mean,
                n_resamples=resamples,
                batch=max(1, _BATCH_CELLS // len(differences)),
                confidence_level=CONFIDENCE,
                method=method,
                rng=np.random.default_rng(seed),
            ).confidence_interval
        if isfinite(found.low) and isfinite(found.high):
            break
    return float(found.low), float(found.high), method


def permutation_p(
    differences: NDArray[np.float64], *, seed: int = 0, resamples: int = RESAMPLES
) -> tuple[float | None, bool]:
    """Two-sided p of the paired permutation test, and whether it is exact (all 2^n sign patterns, while they fit).

    None below 2 queries. Under the null hypothesis the two pipelines are exchangeable per query, so each difference
    may have either sign.
    """
    import numpy as np
    from scipy.stats import permutation_test

    if len(differences) < 2:
        return None, False
    found = permutation_test(
        (differences,),
        np.mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        batch=max(1, _BATCH_CELLS // len(differences)),
        rng=np.random.default_rng(seed),
    )
    return float(found.pvalue), 2 ** len(differences) <= resamples


def minimum_detectable_effect(queries: int, spread: float, *, power: float = 0.8, alpha: float = 0.05) -> float | None:
    """Smallest true mean difference that `queries` queries show with this power; None below 2 queries.

    (t(1 − α/2) + t(power)) · spread / √n with n − 1 degrees of freedom, where spread is the standard deviation of the
    per-query differences (Bloom, Minimum detectable effects, Evaluation Review 19(5), 1995).
    """
    from scipy.stats import t

    if queries < 2:
        return None
    quantiles = t.ppf([1 - alpha / 2, power], queries - 1)
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
    return corrected([compare(values[a], values[b], names=(a, b), measure=measure, seed=seed) for a, b in pairs])
