"""Confidence bands of chunks by distance and gap, and whether the labels bear them out.

In this order: low where the distance is over 0.4 or the gap before it at least 0.1; high where the distance is under
0.2 and the gap before it under 0.05; else medium. The limits are settings; they are cosine distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from statistics import NormalDist

from rag_core.errors import InputError
from rag_core.filters.cut import units
from rag_core.types import Candidates, Case

BANDS = ("high", "medium", "low")


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


@dataclass(frozen=True, slots=True)
class BandShare:
    """How many judged chunks of a band are relevant, with a 95 % interval; None where none is judged."""

    band: str
    judged: int
    relevant: int
    share: float | None
    low: float | None
    high: float | None


def calibration(
    starts: Sequence[Candidates], cases: Sequence[Case], limits: BandLimits = DEFAULT_LIMITS, min_grade: int = 1
) -> list[BandShare]:
    """Share relevant of each band over all judged chunks; unjudged ones take no part. Wilson intervals (1927)."""
    counts = {name: [0, 0] for name in BANDS}
    for start, case in zip(starts, cases, strict=True):
        ranked = sorted((hit for hit in start.hits if hit.distance is not None), key=lambda hit: hit.scores["distance"])
        named = bands([hit.scores["distance"] for hit in ranked], limits)
        for hit, name in zip(ranked, named, strict=True):
            grade = case.grades.get(hit.chunk.id)
            if grade is not None:
                counts[name][0] += 1
                counts[name][1] += grade >= min_grade
    shares = []
    for name, (judged, relevant) in counts.items():
        low, high = wilson(relevant, judged) if judged else (None, None)
        shares.append(BandShare(name, judged, relevant, relevant / judged if judged else None, low, high))
    return shares


def wilson(relevant: int, judged: int) -> tuple[float, float]:
    """The 95 % interval of a share, without correction for continuity (Wilson 1927, JASA 22, 209-212).

    Worked out here: scipy.stats, which has it too, takes a second to import.
    """
    z = NormalDist().inv_cdf(0.975)
    share, wide = relevant / judged, 1 + z * z / judged
    middle = (share + z * z / (2 * judged)) / wide
    off = z / wide * sqrt(share * (1 - share) / judged + z * z / (4 * judged * judged))
    return (middle - off if relevant else 0.0), (middle + off if relevant < judged else 1.0)
