"""Quantiles of the normal and of Student's t distribution, without scipy: it takes longer to import than to ask.

Held to scipy.special by a test. What is read off them is in resampling.py and significance.py.
Sources: Wichura 1988 (the normal quantile, Python's own); Abramowitz and Stegun 1964, 26.7.3 and 26.7.4 (t).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from math import cos, inf, pi, sin, sqrt, tan
from operator import mul
from statistics import NormalDist

HALVINGS = 60  # of the quarter circle: less than the last digit of a float is left

_NORMAL = NormalDist()


def normal_below(value: float) -> float:
    """The share of the standard normal distribution below a value."""
    return _NORMAL.cdf(value)


def normal_quantile(share: float) -> float:
    """The value with that share of the standard normal distribution below it; infinite at 0 and 1."""
    if share in (0, 1):
        return inf if share else -inf
    return _NORMAL.inv_cdf(share)


@lru_cache(maxsize=256)
def t_quantile(share: float, freedom: int) -> float:
    """The value with that share of Student's t distribution below it; whole degrees of freedom, at least 1."""
    if share < 0.5:
        return -t_quantile(1 - share, freedom)
    low, high = 0.0, pi / 2
    for _ in range(HALVINGS):
        angle = (low + high) / 2
        low, high = (angle, high) if _within(angle, freedom) < 2 * share - 1 else (low, angle)
    return sqrt(freedom) * tan((low + high) / 2)


def _within(angle: float, freedom: int) -> float:
    """The share of t between −√n · tan(angle) and √n · tan(angle), for n degrees of freedom."""
    shrink = cos(angle) ** 2
    if freedom % 2:
        factors = (shrink * 2 * k / (2 * k + 1) for k in range(1, (freedom - 1) // 2))
        inner = sin(angle) * cos(angle) * sum(accumulate(factors, mul, initial=1.0)) if freedom > 1 else 0.0
        return (angle + inner) * 2 / pi
    factors = (shrink * (2 * k - 1) / (2 * k) for k in range(1, freedom // 2))
    return sin(angle) * sum(accumulate(factors, mul, initial=1.0))
