import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rag_core.measure import resampling
from rag_core.measure.resampling import intervals, permutation_tests


def rows_of(counts, seed=0):
    dice = np.random.default_rng(seed)
    return [np.round(dice.random(count) * 20) / 21 - 0.4 for count in counts]


def scipys(row, resamples, seed):
    interval = stats.bootstrap((row,), np.mean, n_resamples=resamples, rng=np.random.default_rng(seed))
    return interval.confidence_interval, scipys_p(row, resamples, seed)


def scipys_p(row, resamples, seed):
    return stats.permutation_test(
        (row,),
        np.mean,
        permutation_type="samples",
        n_resamples=resamples,
        vectorized=True,
        rng=np.random.default_rng(seed),
    ).pvalue


@pytest.mark.parametrize("seed", [0, 3])
def test_rows_of_many_lengths_together_each_equal_scipy_on_that_row(seed):
    rows = rows_of([5, 40, 300, 40, 5, 1200], seed)
    found = intervals(rows, seed=seed, resamples=999)
    tests = permutation_tests(rows, seed=seed, resamples=999)
    for row, (low, high, method), (p, _) in zip(rows, found, tests, strict=True):
        theirs, theirs_p = scipys(row, 999, seed)
        assert method == "BCa"
        assert (low, high, p) == pytest.approx((theirs.low, theirs.high, theirs_p), abs=1e-9)


@given(st.lists(st.lists(st.sampled_from([-0.5, 0.0, 0.1, 0.3, 1.0]), max_size=9), max_size=5))
def test_a_row_among_others_has_the_figures_it_has_alone(rows):
    together = [np.array(row) for row in rows]
    alone = [(intervals([row], resamples=99)[0], permutation_tests([row], resamples=99)[0]) for row in together]
    found = zip(intervals(together, resamples=99), permutation_tests(together, resamples=99), strict=True)
    assert list(found) == alone


def test_equal_values_are_constant_and_one_value_says_nothing():
    found = intervals([np.full(5, 0.25), np.array([0.5]), np.array([])])
    assert found == [(0.25, 0.25, "constant"), (None, None, ""), (None, None, "")]


def test_few_signs_are_counted_out_beside_a_long_row_that_is_sampled():
    short, long = permutation_tests([np.array([0.2, 0.3, 0.4]), *rows_of([30])], resamples=99)
    assert short == (2 / 2**3, True)
    assert not long[1]


@pytest.mark.parametrize(("work", "drawer"), [(intervals, "_draws"), (permutation_tests, "_signs")])
def test_the_queries_are_drawn_once_for_all_rows_of_a_length(monkeypatch, work, drawer):
    lengths = []
    real = getattr(resampling, drawer)
    monkeypatch.setattr(resampling, drawer, lambda count, *given: lengths.append(count) or real(count, *given))
    work(rows_of([30, 30, 30, 8]), resamples=99)
    assert sorted(lengths) == [8, 30]


def test_means_of_nought_that_rounding_sets_apart_are_the_same():
    row = [-0.5] * 4 + [0.3] * 3 + [1.0, 0.1]  # sums to 0, in floats to a little more or less as the order has it
    assert all(permutation_tests([np.array(turned)])[0] == (1.0, True) for turned in (row, row[::-1], sorted(row)))


@given(
    st.lists(st.sampled_from([-0.5, 0.0, 0.125, 0.375, 1.0]), min_size=2, max_size=12), st.sampled_from([7, 99, 4999])
)
def test_p_is_scipys_whether_signs_are_counted_out_or_drawn(row, resamples):
    theirs = scipys_p(np.array(row), resamples, seed=2)
    assert permutation_tests([np.array(row)], seed=2, resamples=resamples)[0][0] == pytest.approx(theirs, abs=1e-12)


def test_intervals_and_tests_leave_scipy_stats_unimported():
    code = (
        "import sys; from rag_core.measure.significance import compare; compare([0.1] * 20, [0.2, 0.3] * 10); "
        "raise SystemExit('scipy.stats' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_is_held_at_once_does_not_grow_with_the_rows(monkeypatch):
    monkeypatch.setattr(resampling, "_BATCH_CELLS", 3000)
    seen = []
    real = np.mean

    def watched(values, axis=None):
        seen.append(np.size(values))
        return real(values, axis=axis)

    monkeypatch.setattr(np, "mean", watched)
    intervals(rows_of([100] * 7), resamples=500)
    assert max(seen) <= 3000
