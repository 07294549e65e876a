"""Every setting of AdaptiveGap over captured lists at once: the plane of gap thresholds × offsets from one pass.

The plain twin is the pipeline itself with one setting after the other; the results are the same cuts. A query is cut
at a gap for all thresholds up to one of its own and at the offset above it. So, with the queries in the order of that
threshold, a prefix sum of what the offset cuts give and a sum of what the gap cuts give hold every threshold at once.
The best point of the whole continuous plane is in optimum.py; choosing honestly among settings is not done here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rag_core.evaluate.lists import Lists, Whole, whole_units
from rag_core.evaluate.view import Floats, Sums, View, settings_array

_BLOCK_CELLS = 1_000_000  # queries × offsets held at once


@dataclass(frozen=True, eq=False)
class Plane:
    """Macro means of every gap threshold (rows) × offset (columns), over the scored queries; kept_mean over all."""

    gap_thresholds: Floats
    offsets: Floats
    min_results: int
    max_results: int
    policy: str
    relative_offset: bool
    SetP: Floats
    SetR: Floats
    SetF: Floats
    kept_mean: Floats


def plane(
    lists: Lists,
    gap_thresholds: Sequence[float],
    offsets: Sequence[float],
    min_results: int = 2,
    max_results: int = 15,
    policy: str = "largest",
    *,
    relative_offset: bool = False,
    front: Whole | None = None,
    back: Whole | None = None,
) -> Plane:
    """Means of every threshold × offset, in the order given; exactly what the plain pipeline gives for each.

    Thresholds are distances, under policy `relative` fractions of the span; offsets are distances, with
    `relative_offset` fractions of the span. `front` and `back` (q,): how many chunks plain cutoffs leave before and
    after the cut. InputError for settings the plain rule refuses.
    """
    thresholds = settings_array("gap_threshold", gap_thresholds)
    reaches = settings_array("relative_offset" if relative_offset else "distance_offset", offsets)
    view = View(lists, min_results, max_results, policy, front, back)
    within = None if relative_offset else lists.within(whole_units(reaches)[None, :])
    return plane_of(view, thresholds, reaches, within)


def plane_of(view: View, thresholds: Floats, offsets: Floats, within: Whole | None) -> Plane:
    """The plane of checked settings; `within` is what each offset reaches, None for offsets relative to the span."""
    upward = np.argsort(thresholds, kind="stable")
    means = _means(view, thresholds[upward], offsets, within)[:, np.argsort(upward)]
    relative = within is None
    return Plane(thresholds, offsets, view.min_results, view.max_results, view.policy, relative, *means)


def planes(
    lists: Lists,
    gap_thresholds: Sequence[float],
    offsets: Sequence[float],
    min_results: Sequence[int],
    max_results: Sequence[int],
    policies: Sequence[str] = ("largest",),
) -> list[Plane]:
    """A plane for every policy × min_results × max_results, in that order; pairs with min over max are left out."""
    thresholds = settings_array("gap_threshold", gap_thresholds)
    reaches = settings_array("distance_offset", offsets)
    within = lists.within(whole_units(reaches)[None, :])
    return [
        plane_of(View(lists, least, most, policy), thresholds, reaches, within)
        for policy in policies
        for least in min_results
        for most in max_results
        if least <= most
    ]


def per_query(view: View, gap_threshold: float, offset: float, *, relative_offset: bool = False) -> tuple[Whole, Sums]:
    """How many of each list one setting keeps (q,), hits passed unjudged not counted, and what that is worth (q,)."""
    counts, lengths = view.gap_cuts(settings_array("gap_threshold", [gap_threshold]))
    offsets = settings_array("relative_offset" if relative_offset else "distance_offset", [offset])
    reached = view.relative_within(offsets) if relative_offset else view.lists.within(whole_units(offsets)[None, :])
    kept = np.where(counts[:, None] > 0, lengths, view.clamp(reached))
    return kept[:, 0], Sums(*(worth[:, 0] for worth in view.worth(kept)))


def _means(view: View, thresholds: Floats, offsets: Floats, within: Whole | None) -> Floats:
    """Means of shape (4, thresholds, offsets) for ascending thresholds."""
    counts = view.gap_counts(thresholds)
    upward = np.argsort(counts, kind="stable")
    own, starts = np.unique(counts[upward], return_index=True)
    groups = np.searchsorted(own, np.arange(len(thresholds)), side="right")  # lists cut at the offset, by threshold
    sums = np.repeat(view.gap_sums(thresholds)[:, :, None], len(offsets), axis=2)
    block = max(1, _BLOCK_CELLS // len(counts))
    for start in range(0, len(offsets), block):
        part = slice(start, start + block)
        reached = view.relative_within(offsets[part]) if within is None else within[:, part]
        for quantity, worth in enumerate(view.worth(view.clamp(reached)[upward], upward)):
            running = np.zeros((len(own) + 1, worth.shape[1]))
            np.cumsum(np.add.reduceat(worth, starts, axis=0), axis=0, out=running[1:])
            sums[quantity, :, part] += running[groups]
    return sums / view.divisors()[:, None, None]
