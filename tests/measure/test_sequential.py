"""What may be watched: bounds that hold at every look, in any order, and the words that come from them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.measure.sequential import decide, families_to_decide_watching, lasting_bounds, part_of, wealth
from rag_core.measure.significance import BETTER, LEVEL, OPEN, SAME, TOO_FEW, WORSE

values = st.lists(st.floats(-1, 1), max_size=30).map(np.array)


def test_one_stake_by_hand():
    # The wealth of one constant stake after two outcomes is (1 + s·x)(1 + s·y); of many their mean.
    from rag_core.measure.sequential import STAKES

    assert wealth(np.array([0.5, -0.2])) == pytest.approx(np.log(np.mean((1 + STAKES * 0.5) * (1 - STAKES * 0.2))))


@given(values, st.floats(-0.9, 0.9))
def test_wealth_knows_no_order_falls_with_what_is_bet_against_and_rises_with_an_outcome(row, least):
    assert wealth(row[::-1], least) == pytest.approx(wealth(row, least), abs=1e-9)
    assert wealth(row, least + 0.05) <= wealth(row, least) + 1e-9
    if len(row):
        assert wealth(np.append(row[1:], 1.0), least) >= wealth(row, least) - 1e-9


@given(values)
def test_bounds_hold_the_mean_and_turn_with_the_sides(row):
    low, high = lasting_bounds(row)
    assert -1 <= low < high <= 1
    if len(row):
        assert low <= row.mean() + 1e-6
        assert high >= row.mean() - 1e-6
    assert lasting_bounds(-row) == pytest.approx((-high, -low), abs=1e-5)


def test_a_fair_game_is_called_seldom_though_watched_after_every_question():
    dice = np.random.default_rng(5)
    called = 0
    for _ in range(60):
        row = np.clip(dice.normal(0, 0.2, 120), -1, 1)
        called += any(wealth(side[:count]) > np.log(2 / LEVEL) for side in (row, -row) for count in range(6, 120, 3))
    assert called <= 6  # 5 % of 60 are 3; the binomial's 97th percentile is 6


def test_the_parts_of_all_pairs_sum_to_the_level():
    assert sum(part_of(pair) for pair in range(1, 5000)) == pytest.approx(LEVEL, rel=1e-3)


def test_words_of_a_first_look_and_of_later_ones():
    dice = np.random.default_rng(1)
    row = np.clip(dice.normal(0.12, 0.2, 40), -1, 1)
    first = decide(row)
    assert (first.word, decide(-row).word) == (BETTER, WORSE)
    assert decide(row, first=False).word == OPEN  # watching costs more questions
    assert decide(row, first=False, before=(first.low, first.high)).word == BETTER  # what was shown stands
    assert decide(row[:5]).word == TOO_FEW
    assert decide(np.zeros(300)).word == SAME
    twentieth = decide(row, pair=20)
    assert twentieth.low < first.low
    assert twentieth.needed is None or twentieth.needed > 40


@pytest.mark.slow
def test_the_number_that_would_decide_does_four_times_in_five():
    dice = np.random.default_rng(2)
    seen = np.clip(dice.normal(0.1, 0.2, 30), -1, 1)
    needed = families_to_decide_watching(seen)
    hit = [lasting_bounds(dice.choice(seen, needed))[0] > 0 for _ in range(400)]
    assert np.mean(hit) == pytest.approx(0.8, abs=0.06)
