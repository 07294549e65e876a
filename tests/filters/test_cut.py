import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_core.errors import InputError
from rag_core.eval_sets.reading import load_set
from rag_core.filters.cut import cut


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


def reimplemented(distances, threshold, offset, least, most, policy):
    """The rule once more, from the specification, on decimal integers; shares nothing with the code under test."""
    from decimal import ROUND_FLOOR, Decimal

    def whole(x):
        return int((Decimal(x * 1e9) + Decimal("0.5")).to_integral_value(ROUND_FLOOR))

    seen = [whole(d) for d in distances][:most]
    if not seen:
        return 0
    bar = whole(threshold)
    if policy == "relative":
        bar = int((Decimal(threshold * (seen[-1] - seen[0])) + Decimal("0.5")).to_integral_value(ROUND_FLOOR))
    best = None
    for i in range(len(seen) - 1):
        gap = seen[i + 1] - seen[i]
        if i == 0 or gap < bar or (policy == "relative" and seen[-1] == seen[0]):
            continue
        if best is None or (policy != "first" and gap > seen[best + 1] - seen[best]):
            best = i
    near = len([d for d in seen if d - seen[0] <= whole(offset)])
    keep = near if best is None else best + 1
    return min(len(seen), max(keep, least))


# Multiples of 0.01 and 1e-9 make ties and exact hits of a threshold frequent.
values = st.one_of(
    st.floats(0, 2), st.integers(0, 200).map(lambda n: n / 100), st.integers(0, 50).map(lambda n: n * 1e-9)
)


@settings(max_examples=1000, deadline=None)
@given(
    st.lists(values, max_size=25).map(sorted),
    values,
    values,
    st.integers(0, 5),
    st.integers(5, 20),
    st.sampled_from(["largest", "first", "relative"]),
)
def test_a_thousand_random_lists_agree_with_a_plain_reimplementation(distances, threshold, offset, least, most, policy):
    made = cut(distances, threshold, offset, least, most, policy)
    assert made.keep == reimplemented(distances, threshold, offset, least, most, policy)
