"""The guarantee on average over draws, and the formula by hand."""

import numpy as np
import pytest

from rag_core.errors import InputError
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cutoff import MinSimilarity, TopK
from rag_core.tune.promise import least_loose, needs, promise
from tests import planted


def test_the_formula_by_hand():
    # four queries need 1, 2, 3 and 4; at 3 one of four misses all: (4 · 1/4 + 1) / 5 = 0.4
    four = [np.array([float(need)]) for need in (1, 2, 3, 4)]
    assert least_loose(four, 0.4) == (3.0, 0.25)
    assert least_loose(four, 0.39) == (4.0, 0.0)
    assert least_loose(four, 0.2) == (4.0, 0.0)  # (0 + 1) / 5
    assert least_loose(four, 0.19) == (None, 0.0)  # four queries cannot promise that


def test_shares_are_per_query_before_they_are_averaged():
    # at 1 the first query misses nothing and the second two of three: mean 1/3, (2 · 1/3 + 1) / 3 = 0.556
    assert least_loose([np.array([1.0]), np.array([1.0, 5, 5])], 0.556) == (1.0, pytest.approx(1 / 3))


def test_what_each_relevant_chunk_needs_of_each_knob():
    case = planted.case_of(1, [0.2, 0.3, 0.55], [True, False, True])
    assert needs(case.candidates, case, "k").tolist() == [1, 3]
    assert needs(case.candidates, case, "min_relevance").tolist() == pytest.approx([-0.8, -0.45])
    assert needs(case.candidates, case, "distance_offset").tolist() == pytest.approx([0, 0.35])


@pytest.mark.parametrize("knob", ["k", "min_relevance", "distance_offset"])
def test_the_value_run_as_a_stage_misses_what_it_says(knob):
    cases = planted.planted_gap(3, 40, noise=0.2)
    found = promise(cases, (), knob, 0.15)
    stage = {
        "k": lambda value: TopK(k=int(value)),
        "min_relevance": lambda value: MinSimilarity(value),
        "distance_offset": lambda value: AdaptiveGap(1000, value, min_results=0, max_results=1000),
    }[knob](found.value)
    shares = []
    for case in cases:
        relevant = {id_ for id_, grade in case.grades.items() if grade}
        kept = {hit.chunk.id for hit in stage(case.candidates).hits}
        shares.append(len(relevant - kept) / len(relevant))
    assert np.mean(shares) == pytest.approx(found.miss_share)
    assert found.queries == 40
    assert found.miss_share <= 0.15


@pytest.mark.parametrize("count", [25, 50, 200])
@pytest.mark.parametrize("alpha", [0.1, 0.2])
def test_the_mean_miss_share_over_500_resamples_keeps_the_promise(count, alpha):
    dice = np.random.default_rng(count)
    population = [np.sort(dice.gamma(3, 0.1, dice.integers(1, 8))) for _ in range(4000)]
    sizes = np.array([len(one) for one in population])
    padded = np.array([[*one, *[-1.0] * (7 - len(one))] for one in population])
    realised = []
    for _ in range(500):
        drawn = dice.permutation(len(population))
        value, _ = least_loose([population[at] for at in drawn[:count]], alpha)
        held = drawn[count : count + 500]
        realised.append(np.mean((padded[held] > value).sum(axis=1) / sizes[held]))
    error = np.std(realised, ddof=1) / 500**0.5
    assert np.mean(realised) <= alpha + 2 * error
    assert np.mean(realised) >= alpha - 2 / (count + 1) - 2 * error  # and no looser than the theory says it need be


@pytest.mark.parametrize("count", [50, 200])
def test_a_promise_with_a_chance_is_broken_by_so_few_calibrations(count):
    """500 calibrations at α = .1 with a chance of .9: at most one in ten misses more on the whole population."""
    dice = np.random.default_rng(count)
    population = [np.sort(dice.gamma(3, 0.1, dice.integers(1, 8))) for _ in range(4000)]
    each = np.concatenate([np.full(len(one), 1 / len(one)) for one in population])
    together = np.concatenate(population)
    broken, average = 0, 0
    for _ in range(500):
        drawn = [population[at] for at in dice.integers(0, len(population), count)]
        misses = [each[together > least_loose(drawn, 0.1, sure)[0]].sum() / len(population) for sure in (0.9, 0.0)]
        broken, average = broken + (misses[0] > 0.1), average + (misses[1] > 0.1)
    assert broken / 500 <= 0.1 + 2 * (0.1 * 0.9 / 500) ** 0.5
    assert average > broken


def test_a_wrong_knob_alpha_or_no_case_is_refused():
    cases = planted.planted_gap(1, 4)
    for knob, alpha, says in [("depth", 0.1, "knob is"), ("k", 1.0, "alpha is"), ("k", 0.0, "alpha is")]:
        with pytest.raises(InputError, match=says):
            promise(cases, (), knob, alpha)
    with pytest.raises(InputError, match="no query"):
        promise([], (), "k", 0.1)
