"""The adaptive rule as a pure function: how many of an ascending list of distances to keep.

The rule has twins (the browser's chart, the vectorised sweep) that must agree with it to the last chunk, so all
comparisons are made in whole units of 1e-9: floor(x · 1e9 + 0.5), the same in every language. The stage around it is
in adaptive.py; choosing thresholds is the business of tune/.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rag_core.errors import InputError

UNIT = 1e-9
POLICIES = ("largest", "first", "relative")
DEFAULT_THRESHOLD = 0.1
DEFAULT_RELATIVE_THRESHOLD = 0.25
DEFAULT_OFFSET = 0.4


def units(value: float) -> int:
    """The value in whole units of 1e-9, halves up."""
    return math.floor(value * 1e9 + 0.5)


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a list is cut and why. Distances and gaps are in the list's own metric."""

    keep: int  # how many of the list are kept
    looked: int  # how many were looked at
    kind: str  # "gap": at a gap · "offset": no gap was eligible · "all": nothing to decide
    gap_index: int | None  # index i of the chosen gap d[i+1] − d[i]
    gap: float | None
    gap_threshold: float  # in distance, also under policy relative
    reach: float | None  # d[0] + offset, the largest distance the fallback keeps
    raised: bool  # min_results kept more than the rule would have


def cut(
    distances: Sequence[float],
    gap_threshold: float | None = None,
    distance_offset: float = DEFAULT_OFFSET,
    min_results: int = 2,
    max_results: int = 15,
    gap_policy: str = "largest",
    relative_offset: float | None = None,
) -> Cut:
    """How many of an ascending list of distances to keep.

    At most `max_results` are looked at; the first gap is skipped; among gaps of at least `gap_threshold` the largest
    (first of equals; under `first` the first) ends the list; without one, all within `distance_offset` of the nearest
    stay; never fewer than `min_results`. Under `relative` the threshold is a fraction (default 0.25) of
    d[last] − d[0]; `relative_offset`, if given, is a fraction of the same span. ValueError on a list that does not
    ascend, NaN or infinite distances, negative thresholds, min_results > max_results or an unknown policy.
    """
    if gap_threshold is None:
        gap_threshold = DEFAULT_RELATIVE_THRESHOLD if gap_policy == "relative" else DEFAULT_THRESHOLD
    _check_settings(gap_threshold, distance_offset, min_results, max_results, gap_policy, relative_offset)
    _check_distances(distances)
    ranked = Ranked(distances[:max_results])
    return ranked.cut(gap_threshold, distance_offset, min_results, max_results, gap_policy, relative_offset)


class Ranked:
    """An ascending list made ready to be cut with any settings: trying one more costs two look-ups, not the list."""

    def __init__(self, distances: Sequence[float]) -> None:
        self.whole = [units(distance) for distance in distances]
        gaps = [after - before for before, after in pairwise(self.whole)]
        self.largest: list[int] = []  # of the gaps 1 … j + 1, at j: gap 0 never ends a list
        self.largest_at: list[int] = []  # the index of that gap, the first of equals
        top, at = -1, 0
        for index, gap in enumerate(gaps[1:], 1):
            if gap > top:
                top, at = gap, index
            self.largest.append(top)
            self.largest_at.append(at)

    def cut(
        self,
        gap_threshold: float,
        distance_offset: float,
        min_results: int,
        max_results: int,
        gap_policy: str,
        relative_offset: float | None,
    ) -> Cut:
        """What `cut` gives for these settings, which are known to be valid."""
        whole = self.whole
        if not whole:
            return Cut(0, 0, "all", None, None, gap_threshold, None, False)
        settings = (gap_threshold, distance_offset, min_results, max_results, gap_policy, relative_offset)
        keep, looked, chosen, threshold, offset, ruled = self.end(*settings)
        return Cut(
            keep=keep,
            looked=looked,
            kind="offset" if chosen is None else "gap",
            gap_index=chosen,
            gap=None if chosen is None else (whole[chosen + 1] - whole[chosen]) * UNIT,
            gap_threshold=threshold * UNIT,
            reach=(whole[0] + offset) * UNIT,
            raised=keep > ruled,
        )

    def end(
        self,
        gap_threshold: float,
        distance_offset: float,
        min_results: int,
        max_results: int,
        gap_policy: str,
        relative_offset: float | None,
    ) -> tuple[int, int, int | None, int, int, int]:
        """Of a list that is not empty: how many are kept and looked at, the gap chosen, threshold and offset in units,
        and how many the rule would keep.
        """
        whole = self.whole
        looked = min(len(whole), max_results)
        span = whole[looked - 1] - whole[0]
        relative = gap_policy == "relative"
        threshold = math.floor(gap_threshold * span + 0.5) if relative else units(gap_threshold)
        offset = units(distance_offset) if relative_offset is None else math.floor(relative_offset * span + 0.5)
        last, chosen = looked - 3, None
        if last >= 0 and self.largest[last] >= threshold and not (relative and span == 0):
            # where the largest gap so far first reaches the threshold stands the first that does
            place = bisect_left(self.largest, threshold) if gap_policy == "first" else last
            chosen = self.largest_at[place]
        ruled = bisect_right(whole, whole[0] + offset, 0, looked) if chosen is None else chosen + 1
        return min(max(ruled, min_results), looked), looked, chosen, threshold, offset, ruled


def _check_settings(
    gap_threshold: float,
    distance_offset: float,
    min_results: int,
    max_results: int,
    gap_policy: str,
    relative_offset: float | None,
) -> None:
    """Refuse settings that have no meaning, naming argument and value."""
    named = {"gap_threshold": gap_threshold, "distance_offset": distance_offset, "relative_offset": relative_offset}
    for name, value in named.items():
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise InputError(f"{name} is {value!r}, expected a number of at least 0")
    if min_results < 0:
        raise InputError(f"min_results is {min_results!r}, expected at least 0")
    if min_results > max_results:
        raise InputError(f"min_results is {min_results}, expected at most max_results ({max_results})")
    if gap_policy not in POLICIES:
        raise InputError(f"gap_policy is {gap_policy!r}, expected one of {', '.join(POLICIES)}")


def _check_distances(distances: Sequence[float]) -> None:
    """Refuse a list that is not finite and ascending, naming position and value."""
    for position, distance in enumerate(distances, 1):
        if not math.isfinite(distance):
            raise InputError(f"distances[{position}] is {distance!r}, expected a finite number")
        if position > 1 and distance < distances[position - 2]:
            raise InputError(
                f"distances[{position}] is {distance!r} after {distances[position - 2]!r}, expected ascending distances"
            )
