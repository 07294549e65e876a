import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.errors import InputError
from rag_core.eval_sets.reading import load_set
from rag_core.filters.cut import OF_SPAN, POLICIES, cut


def distances_of(query_id):
    case = next(case for case in load_set("adaptive-short").cases if case.query.id == query_id)
    return [hit.distance for hit in case.candidates.hits]


@pytest.mark.parametrize(
    ("query_id", "kept"),
    [
        ("beholder", 4),
        ("dragons-10", 8),
        ("one-exceptional", 2),
        ("nothing-relevant", 3),
        ("dragons-5", 5),
        ("many-gaps", 4),
        ("owlbear", 2),
    ],
)
def test_the_seven_short_lists_come_out_as_listed(query_id, kept):
    assert cut(distances_of(query_id)).keep == kept


def test_beholder_under_policy_first_keeps_three():
    assert cut(distances_of("beholder"), gap_policy="first").keep == 3


@pytest.mark.parametrize("query_id", ["combat-1", "combat-2", "combat-3"])
def test_defaults_keep_all_fifteen_of_the_recorded_lists(query_id):
    case = next(case for case in load_set("recorded-combat").cases if case.query.id == query_id)
    made = cut([hit.distance for hit in case.candidates.hits])
    assert (made.keep, made.kind) == (15, "offset")


def test_gap_threshold_0_02_cuts_combat_1_after_rank_3():
    case = load_set("recorded-combat").cases[0]
    assert cut([hit.distance for hit in case.candidates.hits], gap_threshold=0.02).keep == 3


# Where the original design is wrong.


def test_original_wrong_ten_dragons_have_a_gap_of_0_17_at_index_7_so_8_are_kept_not_9():
    made = cut(distances_of("dragons-10"))
    assert (made.gap_index, round(made.gap, 4), made.keep) == (7, 0.17, 8)


def test_original_wrong_debug_listing_cuts_at_0_13_although_0_15_is_larger_that_is_policy_first():
    distances = distances_of("beholder")
    first, largest = cut(distances, gap_policy="first"), cut(distances)
    assert (round(first.gap, 4), round(largest.gap, 4)) == (0.13, 0.15)


def test_original_wrong_many_gaps_largest_is_0_20_not_0_15():
    assert round(cut(distances_of("many-gaps")).gap, 4) == 0.2


def test_float_error_0_35_minus_0_25_counts_as_0_1():
    assert 0.35 - 0.25 < 0.1
    assert cut([0.1, 0.25, 0.35, 0.36]).keep == 2


def test_of_equal_gaps_the_first_stands():
    assert cut([0.0, 0.1, 0.3, 0.5]).gap_index == 1


def test_the_first_gap_never_cuts():
    made = cut([0.1, 0.9, 0.91], distance_offset=1.0, min_results=1)
    assert (made.keep, made.kind) == (3, "offset")


@pytest.mark.parametrize("distances", [[], [0.3], [0.3, 0.9]])
def test_zero_one_or_two_candidates_work(distances):
    assert cut(distances).keep == len(distances)


def test_min_results_raises_what_the_offset_would_keep():
    made = cut([0.1, 0.6, 0.65], distance_offset=0.05)
    assert (made.keep, made.raised) == (2, True)


def test_only_max_results_are_looked_at():
    made = cut([0.1, 0.15, 0.2, 0.9], max_results=3)
    assert (made.looked, made.keep) == (3, 3)


def test_relative_threshold_is_a_fraction_of_the_span_and_defaults_to_a_quarter():
    made = cut([1.0, 1.1, 1.2, 1.5, 1.6], gap_policy="relative")
    assert (made.keep, round(made.gap_threshold, 6)) == (3, 0.15)


def test_relative_with_span_zero_has_no_gap():
    made = cut([0.5] * 4, gap_policy="relative", gap_threshold=0.0)
    assert (made.kind, made.keep) == ("offset", 4)


def test_relative_offset_replaces_the_absolute_one():
    assert cut([0.0, 0.1, 0.2, 0.3, 0.4], relative_offset=0.5, gap_policy="relative", gap_threshold=1.0).keep == 3


def test_both_relative_carry_over_to_scaled_distances():
    distances = [0.1, 0.15, 0.2, 0.42, 0.5]
    keep = [
        cut([d * scale for d in distances], gap_policy="relative", relative_offset=0.6).keep for scale in (0.5, 1, 7)
    ]
    assert len(set(keep)) == 1


@pytest.mark.parametrize(
    ("distances", "arguments", "named"),
    [
        ([0.2, 0.1], {}, r"distances\[2\] is 0\.1"),
        ([0.1, math.nan], {}, r"distances\[2\] is nan"),
        ([0.1, math.inf], {}, r"distances\[2\] is inf"),
        ([0.1], {"gap_threshold": -0.1}, r"gap_threshold is -0\.1"),
        ([0.1], {"distance_offset": -1}, "distance_offset is -1"),
        ([0.1], {"relative_offset": -1}, "relative_offset is -1"),
        ([0.1], {"min_results": 3, "max_results": 2}, "min_results is 3"),
        ([0.1], {"gap_policy": "widest"}, "gap_policy is 'widest'"),
    ],
)
def test_bad_input_is_a_value_error_that_names_argument_and_value(distances, arguments, named):
    with pytest.raises(ValueError, match=named) as caught:
        cut(distances, **arguments)
    assert isinstance(caught.value, InputError)


def reimplemented(distances, threshold, offset, least, most, policy, jumps=1, worst=None, weak=None):
    """The rule once more, from the specification, on exact fractions; shares nothing with the code under test."""
    from decimal import ROUND_FLOOR, Decimal
    from fractions import Fraction

    def whole(x):
        return int((Decimal(x * 1e9) + Decimal("0.5")).to_integral_value(ROUND_FLOOR))

    def share(x, of):
        return int((Decimal(x * of) + Decimal("0.5")).to_integral_value(ROUND_FLOOR))

    seen = [whole(d) for d in distances][:most]
    if weak is not None and seen and seen[0] > whole(weak):
        return 0
    seen = [d for d in seen if worst is None or d <= whole(worst)]
    if not seen:
        return 0
    span, end = seen[-1] - seen[0], len(seen) - 1
    bar = share(threshold, span) if policy in OF_SPAN else whole(threshold)
    eligible = [i for i in range(1, end) if seen[i + 1] - seen[i] >= bar and not (policy in OF_SPAN and span == 0)]
    best = None
    if policy in ("knee", "autocut") and span:
        height = [Fraction(d - seen[0], span) - Fraction(i, end) for i, d in enumerate(seen)]
        rises = [i for i in range(2, end + 1) if height[i] > height[i - 1] and (i == end or height[i] >= height[i + 1])]
        if policy == "knee" and rises:
            best = max(rises, key=lambda i: (height[i], -i)) - 1
        elif len(rises) >= jumps:
            best = rises[jumps - 1] - 1
        best = best if best in eligible else None
    elif policy == "first" and eligible:
        best = eligible[0]
    elif policy in ("largest", "relative") and eligible:
        best = max(eligible, key=lambda i: (seen[i + 1] - seen[i], -i))
    reach = share(offset, abs(seen[0])) if policy == "ratio" else whole(offset)
    keep = len([d for d in seen if d - seen[0] <= reach]) if best is None else best + 1
    return min(len(seen), max(keep, least))


# Multiples of 0.01 and 1e-9 make ties and exact hits of a threshold frequent.
values = st.one_of(
    st.floats(0, 2), st.integers(0, 200).map(lambda n: n / 100), st.integers(0, 50).map(lambda n: n * 1e-9)
)


@given(
    st.lists(values, max_size=25).map(sorted),
    values,
    values,
    st.integers(0, 5),
    st.integers(5, 20),
    st.sampled_from(POLICIES),
    st.integers(1, 3),
    st.none() | values,
    st.none() | values,
)
def test_random_lists_agree_with_a_plain_reimplementation(
    distances, threshold, offset, least, most, policy, jumps, worst, weak
):
    made = cut(distances, threshold, offset, least, most, policy, None, jumps, worst, weak)
    assert made.keep == reimplemented(distances, threshold, offset, least, most, policy, jumps, worst, weak)


def test_a_knee_is_where_the_list_turns_flat():
    steep_then_flat = [0.1, 0.2, 0.3, 0.4, 0.41, 0.42, 0.43, 0.44]
    assert cut(steep_then_flat, gap_policy="knee").keep == 3  # the end of the last steep step is the knee


def test_autocut_ends_the_list_at_its_nth_jump():
    groups = [0.10, 0.11, 0.12, 0.30, 0.31, 0.32, 0.60, 0.61]
    assert [cut(groups, gap_policy="autocut", jumps=n, distance_offset=9).keep for n in (1, 2, 3)] == [3, 6, 8]


def test_ratio_keeps_what_is_within_a_share_of_the_top():
    assert cut([0.2, 0.25, 0.3, 0.31], gap_policy="ratio", distance_offset=0.5).keep == 3


def test_nothing_worse_than_the_worst_score_is_kept_even_where_min_results_asks_for_it():
    assert cut([0.2, 0.25, 0.3], worst_score=0.2, min_results=2).keep == 1


def test_a_weak_top_keeps_nothing():
    assert [cut([0.5, 0.6], weak_top=top).keep for top in (0.49, 0.5)] == [0, 2]
