import json
import subprocess
import sys
from itertools import product
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rag_core.errors import InputError
from rag_core.measure.resampling import intervals, permutation_tests
from rag_core.measure.significance import (
    against_first,
    all_pairs,
    compare,
    corrected,
    holm,
    minimum_detectable_effect,
)


def pair(count, seed, shift=0.05):
    dice = np.random.default_rng(seed)
    a = dice.random(count)
    return a.tolist(), (a + dice.normal(shift, 0.2, count)).tolist()


# ---------------------------------------------------------------- against scipy


@pytest.mark.parametrize("count", [2, 3, 8, 24, 120])
@pytest.mark.parametrize("seed", [0, 7])
def test_interval_and_p_equal_direct_scipy_calls_with_the_same_seed(count, seed):
    a, b = pair(count, seed)
    ours = compare(a, b, seed=seed, resamples=1999)
    differences = np.asarray(b) - np.asarray(a)
    theirs = stats.bootstrap(
        (differences,), np.mean, n_resamples=1999, rng=np.random.default_rng(seed)
    ).confidence_interval
    assert (ours.interval, ours.low, ours.high) == (
        "BCa",
        pytest.approx(theirs.low, abs=1e-9),
        pytest.approx(theirs.high, abs=1e-9),
    )
    test = stats.permutation_test(
        (np.asarray(a), np.asarray(b)),
        lambda x, y, axis: np.mean(y - x, axis=axis),
        permutation_type="samples",
        n_resamples=1999,
        vectorized=True,
        rng=np.random.default_rng(seed),
    )
    # Beyond exact counting, swapping within pairs and flipping signs draw the same patterns.
    assert ours.p == pytest.approx(test.pvalue, abs=1e-9)


def test_the_interval_does_not_depend_on_how_many_resamples_are_held_at_once(monkeypatch):
    differences = np.random.default_rng(3).normal(size=50)

    def drawn():
        return intervals([differences], resamples=500), permutation_tests([differences], resamples=500)

    whole = drawn()
    monkeypatch.setattr("rag_core.measure.resampling._BATCH_CELLS", 50 * 7)
    assert drawn() == whole


def test_the_same_seed_gives_the_same_figures_and_another_seed_others():
    a, b = pair(40, 1)
    assert compare(a, b, seed=1) == compare(a, b, seed=1)
    assert compare(a, b, seed=1) != compare(a, b, seed=2)


# ---------------------------------------------------------------- by hand


def test_delta_is_b_minus_a_and_wins_are_those_of_b():
    one = compare([0.5, 0.5, 0.5, 0.5], [1.0, 0.75, 0.5, 0.25])
    assert one.delta == (0.5 + 0.25 + 0 - 0.25) / 4
    assert (one.wins, one.ties, one.losses, one.queries) == (2, 1, 1, 4)


def test_with_few_queries_p_counts_every_sign_pattern():
    differences = [0.4, 0.3, 0.2, -0.1, 0.5]
    one = compare([0.0] * 5, differences)
    reached = sum(
        abs(sum(sign * value for sign, value in zip(signs, differences, strict=True))) >= sum(differences) - 1e-12
        for signs in product([1, -1], repeat=5)
    )
    assert one.exact
    assert one.p == pytest.approx(reached / 2**5)


def test_p_is_sampled_where_there_are_too_many_patterns():
    assert not compare(*pair(14, 0)).exact


def test_a_query_that_one_side_leaves_unscored_takes_no_part():
    assert compare([0.1, None, 0.3, 0.5], [0.2, 0.9, None, 0.4]) == compare([0.1, 0.5], [0.2, 0.4])


# ---------------------------------------------------------------- degenerate


def test_no_query_gives_no_figure():
    one = compare([None], [0.5])
    assert (one.queries, one.delta, one.low, one.p, one.detectable) == (0, None, None, None, None)


def test_one_query_gives_a_delta_and_neither_interval_nor_p():
    one = compare([0.25], [0.5])
    assert (one.delta, one.low, one.high, one.p, one.detectable, one.wins) == (0.25, None, None, None, None, 1)


def test_equal_differences_give_a_constant_interval_said_to_be_one():
    one = compare([0.0, 0.5, 0.25], [0.25, 0.75, 0.5])
    assert (one.low, one.high, one.interval, one.detectable) == (0.25, 0.25, "constant", 0)
    assert one.p == 2 / 2**3


def test_a_pipeline_against_itself_ties_everywhere_with_p_1():
    a, _ = pair(30, 5)
    one = compare(a, a)
    assert (one.delta, one.low, one.high, one.p, one.ties) == (0, 0, 0, 1, 30)


def test_differences_that_are_mere_rounding_are_ties_and_not_significant():
    a = [0.1 * number for number in range(20)]
    one = compare(a, [value + 3e-16 for value in a])
    assert (one.delta, one.p, one.ties) == (0, 1, 20)


@given(st.lists(st.tuples(*[st.none() | st.floats(0, 1)] * 2), max_size=12))
def test_any_two_vectors_give_finite_figures_in_range(pairs):
    one = compare([a for a, _ in pairs], [b for _, b in pairs], resamples=99)
    written = json.loads(json.dumps(one.to_json(), allow_nan=False))
    assert one.wins + one.ties + one.losses == one.queries == written["queries"]
    if one.p is not None:
        assert 0 < one.p <= 1
    if written["ci"] is not None:
        assert written["ci"][0] <= written["ci"][1]


def test_vectors_of_different_length_are_refused():
    with pytest.raises(InputError, match="2 and 1"):
        compare([0.1, 0.2], [0.1])


def test_a_value_that_is_not_finite_is_refused():
    with pytest.raises(InputError, match="nan"):
        compare([0.1, float("nan")], [0.1, 0.2])


# ---------------------------------------------------------------- behaviour over many draws


@pytest.mark.slow
def test_under_no_difference_p_is_below_5_percent_in_about_5_percent_of_draws():
    below = sum(compare(*pair(12, seed, shift=0.0), resamples=4999).p <= 0.05 for seed in range(400))
    assert abs(below / 400 - 0.05) < 3 * sqrt(0.05 * 0.95 / 400)


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
    rows = against_first(values, "SetF")
    assert [(row.a, row.b, row.measure) for row in rows] == [("base", "x", "SetF"), ("base", "y", "SetF")]
    assert [row.p_corrected for row in rows] == holm([row.p for row in rows])


def test_all_pairs_compares_every_two():
    values = {name: pair(8, seed)[1] for seed, name in enumerate("abc")}
    assert [(row.a, row.b) for row in all_pairs(values, "SetF")] == [("a", "b"), ("a", "c"), ("b", "c")]


def test_a_single_pipeline_has_nothing_to_be_compared_with():
    assert against_first({"base": [0.5]}, "SetF") == []


# ---------------------------------------------------------------- what could be seen at all


def test_the_detectable_effect_by_hand():
    t_alpha, t_power = stats.t.ppf(0.975, 23), stats.t.ppf(0.8, 23)
    assert minimum_detectable_effect(24, 0.15) == pytest.approx((t_alpha + t_power) * 0.15 / sqrt(24))


@pytest.mark.parametrize("queries", [10, 24, 100, 1000])
def test_a_t_test_has_about_that_power_at_the_detectable_effect(queries):
    effect = minimum_detectable_effect(queries, 0.2)
    critical = stats.t.ppf(0.975, queries - 1)
    power = stats.nct.sf(critical, queries - 1, effect / (0.2 / sqrt(queries)))
    assert power == pytest.approx(0.8, abs=0.02)


def test_below_two_queries_nothing_is_detectable():
    assert minimum_detectable_effect(1, 0.2) is None


# ---------------------------------------------------------------- start


def test_importing_the_module_does_not_load_scipy_or_numpy():
    code = "import sys, rag_core.measure.significance; print(sorted({'scipy', 'numpy'} & set(sys.modules)))"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_swapping_the_sides_turns_delta_wins_and_losses_and_keeps_p():
    a, b = pair(30, 8)
    there, back = compare(a, b), compare(b, a)
    assert (there.delta, there.wins, there.losses, there.p) == (-back.delta, back.losses, back.wins, back.p)
