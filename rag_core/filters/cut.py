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
from typing import NamedTuple

from rag_core.errors import InputError

UNIT = 1e-9
DEFAULT_THRESHOLD = 0.1
DEFAULT_OFFSET = 0.4
THRESHOLDS = {
    "largest": DEFAULT_THRESHOLD,
    "first": DEFAULT_THRESHOLD,
    "relative": 0.25,
    "knee": 0.0,
    "autocut": 0.0,
    "ratio": DEFAULT_THRESHOLD,
}
"""Policy → its default gap_threshold."""
POLICIES = tuple(THRESHOLDS)
OF_SPAN = ("relative", "knee", "autocut")
"""Policies under which gap_threshold is a fraction of d[last] − d[0]."""


def units(value: float) -> int:
    """The value in whole units of 1e-9, halves up."""
    return math.floor(value * 1e9 + 0.5)


class CutRule(NamedTuple):
    """The settings of the rule; what each means is said at `cut`."""

    gap_threshold: float
    distance_offset: float
    min_results: int
    max_results: int
    gap_policy: str
    relative_offset: float | None
    jumps: int = 1
    worst_score: float | None = None  # as a distance, like weak_top
    weak_top: float | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a list is cut and why. Distances and gaps are in the list's own metric."""

    keep: int  # how many of the list are kept
    looked: int  # how many were looked at
    kind: str  # "gap": at a gap · "offset": no gap was eligible · "weak": the top is weak · "all": nothing to decide
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
    jumps: int = 1,
    worst_score: float | None = None,
    weak_top: float | None = None,
) -> Cut:
    """How many of an ascending list of distances to keep.

    At most `max_results` are looked at; the first gap is skipped; among gaps of at least `gap_threshold` the largest
    (first of equals; under `first` the first) ends the list; without one, all within `distance_offset` of the nearest
    stay; never fewer than `min_results`. Under `relative` the threshold is a fraction (default 0.25) of
    d[last] − d[0]; `relative_offset`, if given, is a fraction of the same span. `knee` and `autocut` look at jumps:
    gaps above the mean gap that one not above it follows. The list ends at the jump whose end lies highest above the
    straight line from first to last (Kneedle), or at the `jumps`-th (Weaviate's autocut), if that gap reaches such a
    fraction (default 0). Under `ratio` no gap ends the list and distance_offset is a fraction of the size of d[0].
    Nothing further than `worst_score` is looked at, and nothing at all where d[0] is further than `weak_top`.
    ValueError on a list that does not ascend, NaN or infinite distances, negative thresholds, min_results > max_results
    or an unknown policy.
    """
    if gap_threshold is None:
        gap_threshold = THRESHOLDS.get(gap_policy, DEFAULT_THRESHOLD)
    rule = CutRule(
        gap_threshold,
        distance_offset,
        min_results,
        max_results,
        gap_policy,
        relative_offset,
        jumps,
        worst_score,
        weak_top,
    )
    _check_settings(rule)
    for position, distance in enumerate(distances, 1):
        if not math.isfinite(distance):
            raise InputError(f"distances[{position}] is {distance!r}, expected a finite number")
        if position > 1 and distance < distances[position - 2]:
            raise InputError(
                f"distances[{position}] is {distance!r} after {distances[position - 2]!r}, expected ascending distances"
            )
    return Ranked(distances[:max_results]).cut(rule)


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

    def cut(self, rule: CutRule) -> Cut:
        """What `cut` gives for these settings, which are known to be valid."""
        whole = self.whole
        if not whole:
            return Cut(0, 0, "all", None, None, rule.gap_threshold, None, False)
        if rule.weak_top is not None and whole[0] > units(rule.weak_top):
            return Cut(0, 0, "weak", None, None, rule.gap_threshold, None, False)
        keep, looked, chosen, threshold, offset, ruled = self.end(rule)
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

    def looked(self, rule: CutRule) -> int:
        """How many of a list that is not empty are looked at."""
        looked = min(len(self.whole), rule.max_results)
        if rule.worst_score is not None:
            looked = bisect_right(self.whole, units(rule.worst_score), 0, looked)
        return 0 if rule.weak_top is not None and self.whole[0] > units(rule.weak_top) else looked

    def jump(self, looked: int, rule: CutRule) -> int | None:
        """The gap after which `knee` or `autocut` would end a list of so many; None: it has no such jump."""
        whole, span = self.whole, self.whole[looked - 1] - self.whole[0]
        above = [(whole[at + 1] - whole[at]) * (looked - 1) > span for at in range(looked - 1)] + [False]
        jumps = [at for at in range(1, looked - 1) if above[at] and not above[at + 1]]
        if rule.gap_policy == "autocut":
            return jumps[rule.jumps - 1] if rule.jumps <= len(jumps) else None
        return max(jumps, key=lambda at: (whole[at + 1] - whole[0]) * (looked - 1) - (at + 1) * span, default=None)

    def end(self, rule: CutRule) -> tuple[int, int, int | None, int, int, int]:
        """Of a list that is not empty: how many are kept and looked at, the gap chosen, threshold and offset in units,
        and how many the rule would keep.
        """
        whole, policy, looked = self.whole, rule.gap_policy, self.looked(rule)
        span = whole[looked - 1] - whole[0] if looked else 0
        of_span = policy in OF_SPAN
        threshold = math.floor(rule.gap_threshold * span + 0.5) if of_span else units(rule.gap_threshold)
        offset = units(rule.distance_offset)
        if rule.relative_offset is not None:
            offset = math.floor(rule.relative_offset * span + 0.5)
        elif policy == "ratio":
            offset = math.floor(rule.distance_offset * abs(whole[0]) + 0.5)
        last, chosen = looked - 3, None
        if last >= 0 and policy != "ratio" and not (of_span and span == 0):
            if policy in ("knee", "autocut"):
                at = self.jump(looked, rule)
                chosen = at if at is not None and whole[at + 1] - whole[at] >= threshold else None
            elif self.largest[last] >= threshold:
                # where the largest gap so far first reaches the threshold stands the first that does
                chosen = self.largest_at[bisect_left(self.largest, threshold) if policy == "first" else last]
        ruled = bisect_right(whole, whole[0] + offset, 0, looked) if chosen is None else chosen + 1
        return min(max(ruled, rule.min_results), looked), looked, chosen, threshold, offset, ruled


def _check_settings(rule: CutRule) -> None:
    """Refuse settings that have no meaning, naming argument and value."""
    for name in ("gap_threshold", "distance_offset", "relative_offset"):
        value = getattr(rule, name)
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise InputError(f"{name} is {value!r}, expected a number of at least 0")
    for name in ("worst_score", "weak_top"):
        value = getattr(rule, name)
        if value is not None and not math.isfinite(value):
            raise InputError(f"{name} is {value!r}, expected a finite number")
    if rule.jumps < 1:
        raise InputError(f"jumps is {rule.jumps!r}, expected at least 1")
    if rule.min_results < 0:
        raise InputError(f"min_results is {rule.min_results!r}, expected at least 0")
    if rule.min_results > rule.max_results:
        raise InputError(f"min_results is {rule.min_results}, expected at most max_results ({rule.max_results})")
    if rule.gap_policy not in POLICIES:
        raise InputError(f"gap_policy is {rule.gap_policy!r}, expected one of {', '.join(POLICIES)}")
