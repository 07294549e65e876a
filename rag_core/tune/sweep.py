"""Every setting of AdaptiveGap over captured lists at once: the plane of gap thresholds × offsets from one pass.

The plain twin is the pipeline itself with one setting after the other; the results are the same cuts. A query is cut
at a gap for all thresholds up to one of its own and at the offset above it. So, with the queries in the order of that
threshold, a prefix sum of what the offset cuts give and a sum of what the gap cuts give hold every threshold at once.
The best point of the whole continuous plane is in optimum.py; choosing honestly among settings is not done here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from rag_core.tune.lists import Lists, Whole, whole_units
from rag_core.tune.view import Floats, Sums, View, settings_array

_BLOCK_CELLS = 8_000  # queries × offsets worked on at once: arrays that stay in the cache and on the heap


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
    return _planes_of([view], thresholds, offsets, within)[0]


def _planes_of(views: Sequence[View], thresholds: Floats, offsets: Floats, within: Whole | None) -> list[Plane]:
    """The planes of views that differ in min_results only, from one pass over the lists."""
    upward = np.argsort(thresholds, kind="stable")
    means = _means(views, thresholds[upward], offsets, within)
    if (upward[1:] < upward[:-1]).any():
        means = means[:, :, np.argsort(upward)]
    relative = within is None
    return [
        Plane(thresholds, offsets, view.min_results, view.max_results, view.policy, relative, *means[:, at])
        for at, view in enumerate(views)
    ]


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
    found: dict[tuple[str, int, int], Plane] = {}
    for policy, most in product(policies, max_results):
        views = [View(lists, least, most, policy) for least in min_results if least <= most]
        for one in _planes_of(views, thresholds, reaches, within) if views else ():
            found[policy, one.min_results, most] = one
    return [found[one] for one in product(policies, min_results, max_results) if one in found]


def per_query(view: View, gap_threshold: float, offset: float, *, relative_offset: bool = False) -> tuple[Whole, Sums]:
    """How many of each list one setting keeps (q,), hits passed unjudged not counted, and what that is worth (q,)."""
    offsets = settings_array("relative_offset" if relative_offset else "distance_offset", [offset])
    kept = view.kept(settings_array("gap_threshold", [gap_threshold]), offsets, relative_offset=relative_offset)
    return kept[:, 0], Sums(*(worth[:, 0] for worth in view.worth(kept)))


def _means(views: Sequence[View], thresholds: Floats, offsets: Floats, within: Whole | None) -> Floats:
    """Means of shape (4, views, thresholds, offsets) for ascending thresholds.

    The views differ in min_results only, so that a threshold cuts the same lists at a gap in all of them.
    """
    counts = views[0].gap_counts(thresholds)
    upward = np.argsort(counts, kind="stable")
    own, starts = np.unique(counts[upward], return_index=True)
    groups = np.searchsorted(own, np.arange(len(thresholds)), side="right")  # lists cut at the offset, by threshold
    gaps = np.stack([view.gap_sums(thresholds) for view in views], axis=1)
    sums = np.repeat(gaps[..., None], len(offsets), axis=3)
    block = max(1, _BLOCK_CELLS // (len(counts) * len(views)))
    for start in range(0, len(offsets), block):
        part = slice(start, start + block)
        reached = (views[0].relative_within(offsets[part]) if within is None else within[:, part])[upward]
        lengths = np.concatenate([view.clamp(reached, upward) for view in views], axis=1)
        for quantity, worth in enumerate(views[0].worths(lengths, (0, 1, 2, 3), upward)):
            running = np.zeros((len(own) + 1, worth.shape[1]))
            np.cumsum(np.add.reduceat(worth, starts, axis=0), axis=0, out=running[1:])
            by_view = running[groups].reshape(len(thresholds), len(views), -1)
            sums[quantity, :, :, part] += by_view.swapaxes(0, 1)
    sums /= views[0].divisors()[:, None, None, None]
    return sums
