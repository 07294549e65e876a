"""Differences with their interval, p and word: by hand, against scipy where that has the same, and their laws."""

import json
import subprocess
import sys
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rag_core.errors import InputError
from rag_core.measure.significance import (
    BETTER,
    FEWEST,
    OPEN,
    SAME,
    TOO_FEW,
    WORSE,
    compare,
    compare_each,
    corrected,
    difference_interval,
    families_to_decide,
    holm,
    mean_interval,
    power_of,
)


def pair(count, seed, shift=0.05):
    dice = np.random.default_rng(seed)
    a = dice.random(count)
    return a.tolist(), (a + dice.normal(shift, 0.2, count)).tolist()


# ---------------------------------------------------------------- by hand


def test_delta_is_b_minus_a_and_wins_are_those_of_b():
    one = compare([0.5, 0.5, 0.5, 0.5], [1.0, 0.75, 0.5, 0.25])
    assert one.delta == (0.5 + 0.25 + 0 - 0.25) / 4
    assert (one.wins, one.ties, one.losses, one.queries) == (2, 1, 1, 4)


def test_the_interval_is_students_with_half_of_the_largest_added():
    row = np.array([0.1, 0.0, 0.3, -0.1, 0.2, 0.2, 0.0, 0.4])
    low, high, _ = difference_interval(row)
    error = sqrt((np.sum((row - row.mean()) ** 2) + 0.4**2 / 2) / (7 * 8))
    assert (low, high) == pytest.approx(tuple(stats.t.interval(0.95, 7, row.mean(), error)))
    narrow = stats.t.interval(0.95, 7, row.mean(), stats.sem(row))
    assert low < narrow[0] < narrow[1] < high
    one = compare([0.0] * 8, row.tolist())
    assert one.p == pytest.approx(max(2 * stats.t.sf(row.mean() / error, 7), 2.0 ** (1 - 6)))


def test_a_level_has_one_family_added_at_either_end():
    row = np.array([1.0, 1.0, 0.5, 1.0, 1.0, 0.75, 1.0])
    added = np.append(row, [0.0, 1.0])
    low, high, _ = mean_interval(row)
    edge = stats.t.ppf(0.975, 6) * stats.sem(added)
    assert (low, high) == pytest.approx((added.mean() - edge, min(1.0, added.mean() + edge)))


def test_where_nothing_differs_the_bound_is_that_of_a_share():
    one = compare([0.5] * 20, [0.5] * 20)
    theirs = stats.binomtest(0, 20).proportion_ci(0.95, "exact").high
    assert (one.low, one.high, one.p, one.interval) == (pytest.approx(-theirs), pytest.approx(theirs), 1.0, "exact")
    assert one.word() == OPEN
    assert compare([0.5] * 72, [0.5] * 72).word() == SAME


def test_questions_of_one_family_say_no_more_than_its_mean():
    a, b = pair(12, 3)
    five = compare(a * 5, b * 5, families=[f"f{at}" for at in range(12)] * 5)
    once = compare(a, b)
    assert (five.delta, five.low, five.high) == pytest.approx((once.delta, once.low, once.high))
    assert five.p == pytest.approx(once.p)
    assert (five.queries, five.families) == (60, 12)


def test_families_of_unequal_size_keep_the_mean_over_questions():
    differences = [0.6, 0.6, 0.6, 0.6, 0.0, 0.0, 0.1, 0.1, -0.1, 0.0]
    named = ["big"] * 4 + list("abcdef")
    one = compare([0.0] * 10, differences, families=named)
    assert one.delta == pytest.approx(np.mean(differences))
    assert one.families == 7
    assert one.low < 0  # one family carries it: ten questions alone would say otherwise
    assert compare([0.0] * 10, differences).low > one.low


def test_a_query_that_one_side_leaves_unscored_takes_no_part():
    assert compare([0.1, None, 0.3, 0.5], [0.2, 0.9, None, 0.4]) == compare([0.1, 0.5], [0.2, 0.4])


# ---------------------------------------------------------------- few, equal, broken


@given(st.lists(st.floats(0, 1), max_size=FEWEST - 1))
def test_below_six_families_there_is_neither_interval_nor_word(values):
    one = compare([0.0] * len(values), values)
    assert (one.low, one.high, one.p, one.detectable, one.word()) == (None, None, None, None, TOO_FEW)
    assert mean_interval(values) == (None, None, "")


def test_five_questions_that_differ_cannot_carry_a_word_among_ties():
    assert compare([0.0] * 30, [0.9] * 5 + [0.0] * 25).word() == OPEN  # signs alone show it once in sixteen


def test_differences_that_are_mere_rounding_are_ties_and_not_significant():
    a = [0.1 * number for number in range(20)]
    one = compare(a, [value + 3e-16 for value in a])
    assert (one.delta, one.p, one.ties) == (0, 1, 20)


rows = st.lists(st.tuples(*[st.none() | st.floats(0, 1)] * 2, st.sampled_from("abcdefghij")), max_size=24)


@given(rows)
def test_any_two_vectors_give_finite_figures_in_range_and_no_interval_of_no_width(triples):
    a, b, families = ([row[at] for row in triples] for at in range(3))
    one = compare(a, b, families=families)
    written = json.loads(json.dumps(one.to_json(), allow_nan=False))
    assert one.wins + one.ties + one.losses == one.queries == written["queries"]
    if one.p is not None:
        assert 0 < one.p <= 1
        assert one.low < one.delta < one.high
    scored = [(value, family) for value, _, family in triples if value is not None]
    level = mean_interval([value for value, _ in scored], [family for _, family in scored])
    if level.low is not None:
        assert 0 <= level.low < level.high <= 1


def test_vectors_of_different_length_are_refused():
    with pytest.raises(InputError, match="2 and 1"):
        compare([0.1, 0.2], [0.1])


def test_a_value_that_is_not_finite_is_refused():
    with pytest.raises(InputError, match="nan"):
        compare([0.1, float("nan")], [0.1, 0.2])


# ---------------------------------------------------------------- words


def test_a_word_needs_interval_and_corrected_test():
    a, b = pair(40, 2, shift=0.1)
    one = compare(a, b)
    assert one.word() == BETTER
    assert compare(b, a).word() == WORSE
    others = [compare(*pair(40, seed, shift=0.0)) for seed in range(3, 40)]
    assert next(row for row in corrected([one, *others]) if row.delta == one.delta).p_corrected > one.p
    assert one.word(margin=0.5) == SAME


@given(st.floats(-0.3, 0.3), st.floats(0.05, 0.4), st.sampled_from([0.02, 0.05, 0.1]))
def test_the_number_that_decides_is_the_first_that_does(delta, deviation, margin):
    needed = families_to_decide(delta, deviation, deviation * 2, margin)
    if needed is not None and needed > FEWEST:
        assert power_of(needed, delta, deviation, deviation * 2, margin) >= 0.8
        assert power_of(needed - 1, delta, deviation, deviation * 2, margin) < 0.8


@pytest.mark.slow
def test_under_no_difference_a_word_is_said_in_at_most_5_percent_of_draws():
    said = sum(compare(*pair(12, seed, shift=0.0)).word() in (BETTER, WORSE) for seed in range(2000))
    assert said / 2000 < 0.05 + 2 * sqrt(0.05 * 0.95 / 2000)


# ---------------------------------------------------------------- many comparisons


def test_holm_by_hand():
    # Sorted 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1, never falling: 0.04, 0.06, 0.06, 0.06.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])


def test_holm_stops_at_1_and_takes_an_empty_list():
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=10))
def test_holm_lies_between_no_correction_and_bonferroni(p_values):
    for before, after in zip(p_values, holm(p_values), strict=True):
        assert before <= after <= min(1, before * len(p_values))


@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=8, unique=True), st.floats(0.01, 0.2))
def test_holm_rejects_what_its_step_down_rule_rejects(p_values, alpha):
    rejected = set()
    for done, p in enumerate(sorted(p_values)):
        if p * (len(p_values) - done) > alpha:
            break
        rejected.add(p)
    assert {p for p, adjusted in zip(p_values, holm(p_values), strict=True) if adjusted <= alpha} == rejected


def test_comparisons_without_a_p_do_not_count_in_the_correction():
    real = compare(*pair(10, 1))
    assert [one.p_corrected for one in corrected([real, compare([0.1], [0.2])])] == [real.p, None]


def test_in_a_table_each_pipeline_is_compared_with_the_first():
    values = {name: pair(8, seed)[1] for seed, name in enumerate(["base", "x", "y"])}
    table = compare_each(values, "SetF")
    assert [(row.a, row.b, row.measure) for row in table] == [("base", "x", "SetF"), ("base", "y", "SetF")]
    assert [row.p_corrected for row in table] == holm([row.p for row in table])


def test_all_pairs_compares_every_two():
    values = {name: pair(8, seed)[1] for seed, name in enumerate("abc")}
    assert [(row.a, row.b) for row in compare_each(values, "SetF", every_pair=True)] == [
        ("a", "b"),
        ("a", "c"),
        ("b", "c"),
    ]


def test_a_single_pipeline_has_nothing_to_be_compared_with():
    assert compare_each({"base": [0.5]}, "SetF") == []


# ---------------------------------------------------------------- start


def test_importing_the_module_does_not_load_scipy_or_numpy():
    code = "import sys, rag_core.measure.significance; print(sorted({'scipy', 'numpy'} & set(sys.modules)))"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_swapping_the_sides_turns_delta_wins_and_losses_and_keeps_p():
    a, b = pair(30, 8)
    there, back = compare(a, b), compare(b, a)
    assert (there.delta, there.wins, there.losses) == (-back.delta, back.losses, back.wins)
    assert (there.p, there.low) == pytest.approx((back.p, -back.high))
