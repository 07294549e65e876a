"""Figures of the LLM filter, checked by hand."""

import pytest

from rag_core.judged.trials import SimulatedRow, break_even, makespan, percentile


def row(rate, f1, seed=0):
    return SimulatedRow(rate, seed, None, None, f1, None, 0, 0)


def test_calls_side_by_side_end_when_the_last_worker_is_done():
    assert makespan([300, 300, 300], 4) == 300
    assert makespan([300, 300, 300], 2) == 600
    assert makespan([100, 400, 100, 100], 2) == 400
    assert makespan([], 4) == 0


def test_a_percentile_is_a_value_that_occurred():
    assert percentile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.0
    assert percentile([1.0, 2.0, 3.0, 4.0], 0.95) == 4.0
    assert percentile([], 0.5) is None


def test_the_break_even_lies_between_the_rates_around_it():
    rows = [row(0.0, 1.0), row(0.1, 0.8), row(0.2, 0.6)]
    assert break_even(rows, 0.7) == pytest.approx(0.15)
    assert break_even(rows, 0.5) is None
    assert break_even(rows, 1.1) is None


def test_seeds_of_one_rate_are_averaged():
    rows = [row(0.0, 0.9, 0), row(0.0, 0.7, 1), row(1.0, 0.0, 0), row(1.0, 0.0, 1)]
    assert break_even(rows, 0.4) == pytest.approx(0.5)
