"""Rows timed in turn, round by round, so that a busy machine slows all alike: a ratio is taken within each round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter, thread_time
from typing import NamedTuple

Work = Callable[[int], object]
"""A row's work in the round of that number."""


class Ratio(NamedTuple):
    """How many times longer one row takes than another: the median of the rounds, the least and the most."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:9,.1f}× [{self.low:,.1f} … {self.high:,.1f}]"


def clock_ms(work: Work, number: int) -> float:
    """Milliseconds of one call."""
    started = perf_counter()
    work(number)
    return (perf_counter() - started) * 1000


def processor_ms(work: Work, number: int) -> float:
    """Milliseconds of this thread's processor, from as many calls as make 20 ms: other load does not count."""
    calls, started = 0, thread_time()
    while not calls or thread_time() - started < 0.02:
        work(number)
        calls += 1
    return (thread_time() - started) * 1000 / calls


def in_turn(
    rows: dict[str, Work], rounds: int, timed: Callable[[Work, int], float] = clock_ms
) -> dict[str, list[float]]:
    """Milliseconds of every row in every round; the first one warms up and is left out."""
    times: dict[str, list[float]] = {name: [] for name in rows}
    for number in range(rounds + 1):
        for name, work in rows.items():
            taken = timed(work, number)
            if number:
                times[name].append(taken)
    return times


def ratio(slow: Sequence[float], fast: Sequence[float]) -> Ratio:
    """The ratio of two rows."""
    each = [one / other for one, other in zip(slow, fast, strict=True)]
    return Ratio(median(each), min(each), max(each))


def verdict(reached: bool, goal: str) -> str:
    """A goal with whether it is reached."""
    return f"  goal {goal} {'ok' if reached else 'MISSED'}"
