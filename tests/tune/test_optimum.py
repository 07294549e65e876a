"""The optimum of the continuous plane against brute force over every change point, and against grids."""

import math
import random
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.errors import InputError
from rag_core.filters.cut import OF_SPAN, POLICIES, units
from rag_core.tune.arrays import make_lists
from rag_core.tune.plane import least_fraction, optimum, plane


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch):
    """The small lists of these tests in many blocks, so that skipping them is at work."""
    monkeypatch.setattr("rag_core.tune.plane._STRETCHES", 2)
    monkeypatch.setattr("rag_core.tune.plane._CELLS", 6)


steps = st.sampled_from([0.0, 0.05, 0.1, 0.15]) | st.floats(0, 0.5)
rows = st.lists(st.tuples(steps, st.booleans()), max_size=8)
captures = st.lists(rows, min_size=1, max_size=5)
limits = st.tuples(st.integers(0, 9), st.integers(1, 9)).filter(lambda pair: pair[0] <= pair[1])


def captured(capture):
    """The capture as Lists; None where nothing in it is relevant."""
    totals = [sum(flag for _, flag in one) or None for one in capture]
    if not any(totals):
        return None
    distances = [np.cumsum([step for step, _ in one]).tolist() for one in capture]
    return make_lists(distances, [[flag for _, flag in one] for one in capture], totals)


def every_value(lists, relative, of_the_first=False):
    """Values on both sides of every point at which a cut could change; relative to a span, or to the first's size."""
    values = {0.0, 10.0}
    for row, length in zip(lists.distances.tolist(), lists.lengths.tolist(), strict=True):
        whole = row[:length]
        sizes = [after - before for before, after in pairwise(whole)] + [one - whole[0] for one in whole]
        for looked in range(1, length + 1) if relative else [0]:
            span = (whole[looked - 1] - whole[0] or 1) if relative else 1e9
            if of_the_first:
                span = abs(whole[0]) or 1 if whole else 1
            values |= {max(0.0, (size + more) / span) for size in sizes for more in (-1, -0.4, 0, 0.4, 0.6, 1)}
    ordered = sorted(values)
    return sorted(ordered + [(one + other) / 2 for one, other in pairwise(ordered)])


@given(captures, limits, st.sampled_from(POLICIES), st.booleans(), st.sampled_from(["SetP", "SetR", "SetF"]))
def test_the_optimum_is_the_best_over_all_change_points(capture, limit, policy, relative_offset, measure):
    lists = captured(capture)
    if lists is None:
        return
    found = optimum(lists, measure, *limit, policy, relative_offset=relative_offset)
    every = plane(
        lists,
        every_value(lists, policy in OF_SPAN),
        every_value(lists, relative_offset),
        *limit,
        policy,
        relative_offset=relative_offset,
    )
    # its means are those of the plane at its point; the values tried may miss a window between two fractions
    assert getattr(found, measure) >= getattr(every, measure).max() - 1e-12


@given(captures, limits, st.sampled_from(POLICIES), st.booleans())
def test_within_the_cell_of_the_optimum_nothing_changes_and_its_edge_is_where_it_says(
    capture, limit, policy, relative_offset
):
    lists = captured(capture)
    if lists is None:
        return
    found = optimum(lists, "SetF", *limit, policy, relative_offset=relative_offset)
    last = [
        below if below is None else math.nextafter(below, 0) if relative else below - 0.6e-9
        for below, relative in (
            (found.gap_threshold_below, policy in OF_SPAN),
            (found.distance_offset_below, relative_offset or policy == "ratio"),
        )
    ]
    corners = plane(
        lists,
        [found.gap_threshold, 10.0 if last[0] is None else last[0]],
        [found.distance_offset, found.distance_offset + 10.0 if last[1] is None else last[1]],
        *limit,
        policy,
        relative_offset=relative_offset,
    )
    assert corners.SetF == pytest.approx(np.full((2, 2), found.SetF), abs=1e-12)
    assert corners.kept_mean == pytest.approx(np.full((2, 2), found.kept_mean), abs=1e-12)


@given(captures, limits, st.sampled_from(POLICIES), st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]))
def test_with_a_floor_the_optimum_is_the_best_of_what_reaches_it(capture, limit, policy, floor):
    lists = captured(capture)
    if lists is None:
        return
    found = optimum(lists, "SetP", *limit, policy, at_least=("SetR", floor))
    offsets = every_value(lists, False, of_the_first=policy == "ratio")
    every = plane(lists, every_value(lists, policy in OF_SPAN), offsets, *limit, policy)
    allowed = every.SetP[every.SetR >= floor - 1e-12]
    if not allowed.size:
        assert found is None
        return
    assert found.SetP == pytest.approx(allowed.max(), abs=1e-12)
    assert found.SetR >= floor - 1e-12


def noisy_lists(queries=60, length=40, seed=0):
    dice = np.random.default_rng(seed)
    distances = np.sort(dice.random((queries, length)), axis=1)
    relevant = dice.random((queries, length)) < 1.2 * np.exp(-distances * 5)
    relevant[:, 0] = True
    return make_lists(distances, relevant, relevant.sum(axis=1).tolist())


@pytest.mark.parametrize("policy", POLICIES)
def test_the_optimum_is_at_least_the_best_of_a_fine_grid(policy):
    lists = noisy_lists()
    found = optimum(lists, policy=policy, max_results=40)
    grid = plane(lists, np.linspace(0, 0.3, 60), np.linspace(0, 1, 60), 2, 40, policy)
    assert found.SetF >= grid.SetF.max() - 1e-12


@pytest.mark.parametrize("size", [1, 40, 10_000])
def test_the_size_of_blocks_changes_nothing(monkeypatch, size):
    lists = noisy_lists(queries=12, length=15)
    whole = [optimum(lists, policy=policy, at_least=("SetR", 0.5)) for policy in POLICIES]
    monkeypatch.setattr("rag_core.tune.plane._CELLS", size)
    assert [optimum(lists, policy=policy, at_least=("SetR", 0.5)) for policy in POLICIES] == whole


def test_an_optimum_by_hand():
    # Gap 0.25 after the two relevant ones of the first list; in the second all three near ones are relevant, gap 0.05.
    lists = make_lists(
        [[0.2, 0.25, 0.5, 0.6], [0.2, 0.25, 0.3, 0.35]],
        [[True, True, False, False], [True, True, True, False]],
        [2, 3],
    )
    found = optimum(lists, min_results=1)
    assert (found.SetP, found.SetR, found.SetF) == (1, 1, 1)
    assert found.gap_threshold == pytest.approx(0.05, abs=2e-9)
    assert found.gap_threshold > 0.05  # just above the second list's gaps: there the offset decides
    assert found.gap_threshold_below == pytest.approx(0.25, abs=2e-9)
    assert (found.distance_offset, found.distance_offset_below) == pytest.approx((0.1, 0.15))


def test_of_equally_good_points_the_least_offset_and_threshold_stand():
    found = optimum(make_lists([[0.1]], [[True]], [1]))
    assert (found.gap_threshold, found.distance_offset) == (0, 0)
    assert (found.gap_threshold_below, found.distance_offset_below) == (None, None)


def test_where_nothing_reaches_the_floor_there_is_no_optimum():
    lists = make_lists([[0.1]], [[True]], [2])  # one of the two relevant is not in the list
    assert optimum(lists, at_least=("SetR", 0.6)) is None


def test_an_unknown_measure_is_refused():
    with pytest.raises(InputError, match="expected one of SetP, SetR, SetF"):
        optimum(make_lists([[0.1]], [[True]], [1]), "nDCG@10")


def test_the_least_fraction_reaches_and_the_float_below_does_not():
    dice = random.Random(0)
    wanted = np.array([dice.randint(1, 10**9) for _ in range(3000)])
    span = np.array([dice.randint(1, 2 * 10**9) for _ in range(3000)])
    for number, size, fraction in zip(
        wanted.tolist(), span.tolist(), least_fraction(wanted, span).tolist(), strict=True
    ):
        assert math.floor(fraction * size + 0.5) >= number
        assert math.floor(math.nextafter(fraction, 0) * size + 0.5) < number


def test_a_threshold_of_the_optimum_is_a_whole_number_of_units():
    found = optimum(noisy_lists(), max_results=40)
    for value in (found.gap_threshold, found.distance_offset):
        assert units(value) / 1e9 == value


def test_every_policy_and_limit_gives_a_point_that_the_plane_confirms():
    lists = noisy_lists(queries=10, length=12)
    for policy, least, most in product(POLICIES, (0, 2), (2, 12)):
        found = optimum(lists, "SetF", least, most, policy)
        again = plane(lists, [found.gap_threshold], [found.distance_offset], least, most, policy)
        assert (found.SetF, found.kept_mean) == (again.SetF[0, 0], again.kept_mean[0, 0])
