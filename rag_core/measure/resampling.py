"""Intervals and permutation tests of many rows of per-query values at once: the queries are drawn once for all of them.

Rows of one length stand for the same queries, so one seed would draw the same resamples for each: they are drawn once
and every row is averaged over them. What is drawn is what scipy.stats draws with the same seed, and a row's figures are
scipy's, as the tests hold them to; scipy.stats itself takes longer to import than all of this to compute, and finds the
acceleration of BCa by leaving out each query in turn, where for a mean it follows from the deviations alone. A row's
figures are those it gets alone. What they mean is in significance.py.

Sources: Efron and Tibshirani 1993, 14.3 (BCa); Smucker, Allan and Carterette 2007 (permutation over queries).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Row = NDArray[np.float64]

CONFIDENCE = 0.95
RESAMPLES = 9999
TIE = 1e-12  # differences this small are rounding, not wins
_SAME = 100 * 2.0**-52  # means that differ by less of the values' size are the same number, summed in another order
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

    means = [[np.mean(row[places], axis=-1) for row in rows] for places in _draws(len(rows[0]), seed, resamples)]
    return [_limits(row, ours) for row, ours in zip(rows, np.concatenate(means, axis=-1), strict=True)]


def _draws(count: int, seed: int, resamples: int) -> Iterator[NDArray[np.int64]]:
    """The places of the queries in each resample (resamples × count), some resamples at a time."""
    import numpy as np

    dice, most = np.random.default_rng(seed), max(1, _BATCH_CELLS // count)
    for start in range(0, resamples, most):
        yield dice.integers(0, count, (min(most, resamples - start), count))


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
    """The tests of rows of one length: the signs are drawn once, and laid on every row."""
    import numpy as np

    means = [[np.mean(signs * row, axis=-1) for row in rows] for signs in _signs(len(rows[0]), seed, resamples)]
    found, exact = np.concatenate(means, axis=-1), is_exact(len(rows[0]), resamples)
    return [_two_sided(row, ours, exact) for row, ours in zip(rows, found, strict=True)]


def sign_flips(row: Row, seed: int, resamples: int) -> Row:
    """The means of a row under every pattern of signs, or under `resamples` drawn ones where there are more."""
    import numpy as np

    return np.concatenate([np.mean(signs * row, axis=-1) for signs in _signs(len(row), seed, resamples)])


def _signs(count: int, seed: int, resamples: int) -> Iterator[Row]:
    """The signs of the queries in each pattern (patterns × count), some patterns at a time."""
    import numpy as np

    if is_exact(count, resamples):
        yield np.where(np.arange(2**count)[:, None] >> np.arange(count) & 1, -1.0, 1.0)
        return
    dice, most = np.random.default_rng(seed), min(resamples, max(1, _BATCH_CELLS // count))
    both = np.tile([1.0, -1.0], (most, count, 1))
    for start in range(0, resamples, most):
        yield dice.permuted(both, axis=-1)[: resamples - start, :, 0]


def is_exact(count: int, resamples: int) -> bool:
    """Whether all 2^count patterns of signs fit among the resamples: they are counted then, not drawn."""
    return count < 63 and 2**count <= resamples


def share_at_most(drawn: Row, mean: float, exact: bool) -> float:
    """The share of drawn means that are no larger than the mean found, which counts as one of them where they are
    sampled.
    """
    size = max(abs(float(drawn.max())), abs(float(drawn.min())), abs(mean))  # where the mean is 0, its own size is none
    count = int((drawn <= mean + _SAME * size).sum())
    return count / len(drawn) if exact else (count + 1) / (len(drawn) + 1)


def _two_sided(row: Row, drawn: Row, exact: bool) -> Chance:
    """The p of one row from its means under the patterns of signs."""
    mean = float(row.mean())
    return min(1.0, 2 * min(share_at_most(drawn, mean, exact), share_at_most(-drawn, -mean, exact))), exact
