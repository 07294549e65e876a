"""Intervals and permutation tests of many rows of per-query values at once: the queries are drawn once for all of them.

Rows of one length stand for the same queries, so one seed would draw the same resamples for each: they are drawn once
and every row is averaged over them. scipy draws; BCa limits are worked out here, since scipy finds the acceleration by
leaving out each query in turn, n² values, where for a mean it follows from the deviations alone. A row's figures are
those it gets alone, and those of scipy with the same seed. What the figures mean is in significance.py.

Sources: Efron and Tibshirani 1993, 14.3 (BCa); Smucker, Allan and Carterette 2007 (permutation over queries).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Row = NDArray[np.float64]

CONFIDENCE = 0.95
RESAMPLES = 9999
TIE = 1e-12  # differences this small are rounding, not wins
_BATCH_CELLS = 500_000  # resampled values held at once: 4 MB, which a cache holds too

Interval = tuple[float | None, float | None, str]
Chance = tuple[float | None, bool]
Found = TypeVar("Found")


def intervals(rows: Sequence[Row], *, seed: int = 0, resamples: int = RESAMPLES) -> list[Interval]:
    """Per row the 95 % interval of its mean and the method: BCa, else percentile, else constant; None below 2 values.

    `constant` means that all values are equal: resampling them says nothing about how other queries would differ.
    """
    import numpy as np

    found: list[Interval] = [(None, None, "")] * len(rows)
    spread = []
    for at, row in enumerate(rows):
        if len(row) > 1 and np.ptp(row) > TIE:
            spread.append(at)
        elif len(row) > 1:
            found[at] = (float(row.mean()), float(row.mean()), "constant")
    return _by_length(rows, spread, found, lambda group: _bootstrap(group, seed, resamples))


def permutation_tests(rows: Sequence[Row], *, seed: int = 0, resamples: int = RESAMPLES) -> list[Chance]:
    """Per row of paired differences the two-sided p, and whether it is exact (all 2^n signs, while they fit).

    None below 2 values. Under the null hypothesis the two sides are exchangeable per query, so each difference may have
    either sign.
    """
    long = [at for at, row in enumerate(rows) if len(row) > 1]
    nothing: list[Chance] = [(None, False)] * len(rows)
    return _by_length(rows, long, nothing, lambda group: _permute(group, seed, resamples))


def _by_length(
    rows: Sequence[Row], places: Sequence[int], found: list[Found], work: Callable[[list[Row]], list[Found]]
) -> list[Found]:
    """`found` with the places filled by `work`, which gets all rows of one length together."""
    groups: dict[int, list[int]] = {}
    for at in places:
        groups.setdefault(len(rows[at]), []).append(at)
    for group in groups.values():
        for at, value in zip(group, work([rows[at] for at in group]), strict=True):
            found[at] = value
    return found


def _bootstrap(rows: list[Row], seed: int, resamples: int) -> list[Interval]:
    """The intervals of rows of one length."""
    import numpy as np
    from scipy.stats import bootstrap

    def means(places: Any, axis: int) -> Any:
        drawn = places.astype(np.intp)
        return np.stack([np.mean(row[drawn], axis=axis) for row in rows])

    count = len(rows[0])
    drawn = bootstrap(
        (np.arange(count),),
        means,
        n_resamples=resamples,
        batch=max(1, _BATCH_CELLS // count),
        method="percentile",
        rng=np.random.default_rng(seed),
    ).bootstrap_distribution
    return [_limits(row, ours) for row, ours in zip(rows, drawn, strict=True)]


def _limits(row: Row, drawn: Row) -> Interval:
    """BCa limits of one row's resampled means; the plain percentiles where they are degenerate."""
    import numpy as np
    from scipy.special import ndtr, ndtri

    tail = (1 - CONFIDENCE) / 2
    mean = np.mean(row)
    below = (np.count_nonzero(drawn < mean) + np.count_nonzero(drawn <= mean)) / (2 * len(drawn))
    off = row - mean
    bend = np.sum(off**3) / np.sum(off**2) ** 1.5 / 6
    shift = ndtri(below)
    ends = [shift + ndtri(tail), shift + ndtri(1 - tail)]
    with np.errstate(invalid="ignore"):
        shares = [float(ndtr(shift + end / (1 - bend * end))) for end in ends]
    method = "BCa" if all(map(isfinite, shares)) else "percentile"
    low, high = np.quantile(drawn, shares if method == "BCa" else [tail, 1 - tail])
    return float(low), float(high), method


def _permute(rows: list[Row], seed: int, resamples: int) -> list[Chance]:
    """The tests of rows of one length: the signs are drawn for a row of ones, and laid on every row."""
    import numpy as np
    from scipy.stats import permutation_test

    def means(signs: Any, axis: int) -> Any:
        return np.stack([np.mean(signs * row, axis=axis) for row in rows], axis=-1)

    count = len(rows[0])
    found = permutation_test(
        (np.ones(count),),
        means,
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        batch=max(1, _BATCH_CELLS // count),
        rng=np.random.default_rng(seed),
    )
    return [(float(p), 2**count <= resamples) for p in found.pvalue]
