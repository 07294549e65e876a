"""What may be looked at after every label and every question: bounds of a mean difference that hold however often.

A bettor who may stop whenever he likes does not grow rich against a fair game: with the differences of the question
families as outcomes, each stake is a share of what is owned, and the wealth of many constant stakes is averaged. Where
the true mean is at most m, the chance that wealth against m ever reaches 1/level is at most level (Ville 1939). So the
bounds are where wealth stands at that mark. The average does not depend on the order of the questions, and rises with
each difference: a question that is judged only in part may stand with its worst value.

Sources: Waudby-Smith and Ramdas 2024 (estimating means by betting, JRSS B 86); Grünwald, de Heide and Koolen 2024 (safe
testing). Measured in benchmarks/honesty.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from rag_core.measure.significance import (
    BETTER,
    FEWEST,
    LEVEL,
    MARGIN,
    OPEN,
    SAME,
    TOO_FEW,
    WORSE,
    by_family,
    difference_interval,
    fewest,
    p_of_no_difference,
)

Row = NDArray[np.float64]
STAKES = 0.99 * np.sin(np.linspace(0.05, 1, 40) * pi / 2)
"""Shares of what may be staked at most; more of the large ones, since differences of a measure are small beside 1."""
WEAK, BOTH = 0.8416, 1.2816  # standard deviations below its mean that 4 runs in 5, and that 9 in 10, reach


def wealth(row: Row, least: float = 0.0) -> float:
    """The logarithm of what betting against "the mean is at most `least`" has made of 1; values within −1 to 1."""
    stakes = STAKES / (1 + least)
    return float(np.logaddexp.reduce(np.log1p(np.outer(stakes, row - least)).sum(axis=1)) - log(len(STAKES)))


def lasting_bounds(row: Row, level: float = LEVEL) -> tuple[float, float]:
    """The bounds of the mean that hold however often they are looked at, with chance 1 − level; ±1 without values."""
    return _lasting_low(row, level / 2), -_lasting_low(-row, level / 2)


def _lasting_low(row: Row, level: float) -> float:
    mark = -log(level)
    if not len(row) or wealth(row, -0.999) < mark:
        return -1.0
    low, high = -0.999, 0.999
    while high - low > 1e-6:  # wealth falls as `least` rises; scipy's root finder takes half a second to import
        middle = (low + high) / 2
        low, high = (middle, high) if wealth(row, middle) >= mark else (low, middle)
    return low


def families_to_decide_watching(row: Row, margin: float = MARGIN, level: float = LEVEL) -> int | None:
    """The fewest families with which the lasting bounds would decide four times in five, if more are like these.

    None where 100,000 would not do.
    """
    if not len(row):
        return None
    mark = -log(level / 2)

    def reached(outcomes: Row, least: float, count: int, below: float = WEAK) -> bool:
        grown = np.log1p(np.outer(STAKES / (1 + least), outcomes - least))
        weak = count * grown.mean(axis=1) - below * sqrt(count) * grown.std(axis=1)
        return bool(np.logaddexp.reduce(weak) - log(len(STAKES)) >= mark)

    def enough(count: int) -> bool:
        sides = (reached(row, 0.0, count), reached(-row, 0.0, count))
        same = margin > 0 and all(reached(side, -margin, count, BOTH) for side in (row, -row))
        return any(sides) or same

    return fewest(enough)


@dataclass(frozen=True, slots=True)
class Ruling:
    """A word that stands however often and at however many pairs somebody looks, and the bounds it comes from."""

    word: str
    low: float  # of the mean difference, at 1 − level
    high: float
    level: float  # this pair's part of what may go wrong
    needed: int | None  # families in all with which it would be known four times in five, where it is not


def part_of(pair: int) -> float:
    """The part of `LEVEL` that the first, second … pair of a split may use: 1/2, 1/6, 1/12 …, which sum to 1."""
    return LEVEL / (pair * (pair + 1))


def decide(
    row: Row,
    families: Sequence[str] | None = None,
    *,
    pair: int = 1,
    before: tuple[float, float] | None = None,
    first: bool = True,
    margin: float = MARGIN,
) -> Ruling:
    """The word for paired differences: the `pair`-th pair of pipelines that is judged on these held-out questions.

    Half of the pair's part goes to the fixed-size interval and test of the `first` look at it, half to the bounds that
    last; `before` are the bounds of that first look, which still hold at a later one.
    """
    sums, level = by_family(row, families), part_of(pair)
    count = len(sums.means)
    means = np.clip(sums.means, -1, 1)  # a family larger than the others counts for more than one
    low, high = lasting_bounds(means, level / 2)
    if first:
        fixed = difference_interval(row, families, level / 2)
        p = p_of_no_difference(sums)
        if fixed.low is not None and fixed.high is not None and p is not None:
            sure = p <= level / 2  # the test must say it too: else zero is left open
            before = (fixed.low, fixed.high) if sure else (min(fixed.low, 0.0), max(fixed.high, 0.0))
    if before is not None and max(low, before[0]) <= min(high, before[1]):
        low, high = max(low, before[0]), min(high, before[1])
    if count < FEWEST:
        return Ruling(TOO_FEW, low, high, level, None)
    word = SAME if -margin < low and high < margin else BETTER if low > 0 else WORSE if high < 0 else OPEN
    needed = families_to_decide_watching(means, margin, level / 2) if word == OPEN else None
    return Ruling(word, low, high, level, needed)
