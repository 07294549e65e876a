"""Small charts as numbers for SVG: where dots, whiskers and bars stand. No text of others and no mark-up in here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_core.compare.compare import Estimate

WIDTH = 640.0
LEFT, RIGHT = 180.0, 60.0
ROW = 28.0
STRIP = 120.0


@dataclass(frozen=True)
class Dot:
    """A mean with its interval on one row; x positions in pixels, None where there is none."""

    y: float
    x: float
    low: float | None
    high: float | None
    value: float


@dataclass(frozen=True)
class Bar:
    """One bar of a strip or a waterfall; `good` says which way it points or what it is."""

    x: float
    y: float
    width: float
    height: float
    good: bool


def scale(value: float) -> float:
    """A measure of 0 to 1 as an x position."""
    return LEFT + value * (WIDTH - LEFT - RIGHT)


def dots(estimates: Sequence[Estimate]) -> list[Dot | None]:
    """One dot per pipeline, None where it has no mean."""
    return [
        None
        if one.mean is None
        else Dot(
            ROW * at + ROW / 2,
            scale(one.mean),
            None if one.low is None else scale(one.low),
            None if one.high is None else scale(one.high),
            one.mean,
        )
        for at, one in enumerate(estimates)
    ]


def strip(differences: Sequence[float], most: int = 400) -> list[Bar]:
    """Sorted per-query differences (−1 to 1) as bars up and down from the middle; at most so many, evenly chosen."""
    count = len(differences)
    chosen = differences if count <= most else [differences[at * count // most] for at in range(most)]
    width = WIDTH / max(1, len(chosen))
    middle = STRIP / 2
    return [
        Bar(at * width, middle - max(0.0, one) * middle, max(0.5, width - 1), max(0.5, abs(one) * middle), one >= 0)
        for at, one in enumerate(chosen)
    ]


def fall(steps: Sequence[tuple[str, int]]) -> list[Bar]:
    """A waterfall: the whole, what each step takes off it, and what is left."""
    whole = max(1, steps[0][1])
    bars, left = [], float(steps[0][1])
    for at, (_, count) in enumerate(steps):
        total = at in (0, len(steps) - 1)
        start = 0.0 if total else left - count
        bars.append(Bar(scale(start / whole), ROW * at + 4, scale(count / whole) - LEFT, ROW - 8, total))
        left = float(count) if at == 0 else left if total else left - count
    return bars
