"""Confidence bands of chunks by distance and gap.

In this order: low where the distance is over 0.4 or the gap before it at least 0.1; high where the distance is under
0.2 and the gap before it under 0.05; else medium. The limits are settings; they are cosine distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rag_core.errors import InputError
from rag_core.filters.cut import units


@dataclass(frozen=True, slots=True)
class BandLimits:
    """Where the bands end, in distance. InputError where high would begin behind low."""

    low_distance: float = 0.4
    low_gap: float = 0.1
    high_distance: float = 0.2
    high_gap: float = 0.05

    def __post_init__(self) -> None:
        if self.high_distance > self.low_distance or self.high_gap > self.low_gap:
            raise InputError(
                f"high confidence ends at distance {self.high_distance} and gap {self.high_gap}, expected at most "
                f"{self.low_distance} and {self.low_gap}"
            )


DEFAULT_LIMITS = BandLimits()


def band(distance: float, gap_before: float, limits: BandLimits = DEFAULT_LIMITS) -> str:
    """`high`, `medium` or `low`; compared in whole units of 1e-9, as the cut does."""
    whole, gap = units(distance), units(gap_before)
    if whole > units(limits.low_distance) or gap >= units(limits.low_gap):
        return "low"
    if whole < units(limits.high_distance) and gap < units(limits.high_gap):
        return "high"
    return "medium"


def bands(distances: Sequence[float], limits: BandLimits = DEFAULT_LIMITS) -> list[str]:
    """The band of every chunk of an ascending list; before the first there is no gap."""
    whole = [units(distance) for distance in distances]
    gaps = [0.0, *((after - before) / 1e9 for before, after in pairwise(whole))][: len(whole)]
    return [band(distance, gap, limits) for distance, gap in zip(distances, gaps, strict=True)]
