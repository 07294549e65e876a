from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_core.eval_sets.reading import load_set
from rag_core.tune.headroom import auc, gap_signal, headroom, top_distance_signal
from tests import planted


def of(function, cases, **more):
    return function([case.candidates for case in cases], cases, **more)


def test_oracles_by_hand():
    # relevant at 1 and 4 of 4, and one more that retrieval did not bring
    (one,) = of(headroom, [planted.case_of(1, [0.1, 0.2, 0.3, 0.4], [True, False, False, True], total=3)])
    assert (one.best_length, one.best_cut) == (4, 2 * 2 / (4 + 3))  # against 2·1/(1+3) after the first
    assert one.perfect_filter == 2 * 2 / (2 + 3)
    assert one.lost_in_retrieval == pytest.approx(1 / 3)


def test_a_chunk_that_comes_twice_counts_once():
    case = planted.case_of(1, [0.1, 0.1, 0.2], [True, True, False])
    hits = tuple(
        replace(hit, chunk=case.candidates.hits[0].chunk) if hit.rank < 3 else hit for hit in case.candidates.hits
    )
    (one,) = of(headroom, [replace(case, grades={"c0": 1, "c2": 0}, candidates=replace(case.candidates, hits=hits))])
    assert (one.best_length, one.best_cut, one.perfect_filter, one.lost_in_retrieval) == (1, 1, 1, 0)


def test_the_recorded_lists_lose_nothing_in_retrieval_and_a_perfect_filter_is_perfect():
    rows = of(headroom, load_set("recorded-combat").cases)
    assert {(row.perfect_filter, row.lost_in_retrieval) for row in rows} == {(1, 0)}
    assert fmean(row.best_cut for row in rows) < 1


def test_no_cut_beats_the_best_cut():
    for one, case in zip(of(headroom, cases := planted.random_labels(1, 20)), cases, strict=True):
        flags = [case.grades[f"c{at}"] for at in range(15)]
        every = [2 * sum(flags[:n]) / (n + sum(flags)) for n in range(16)]
        assert one.best_cut == pytest.approx(max(every))
        assert every[one.best_length] == pytest.approx(max(every))


def test_a_planted_gap_is_informative_and_random_labels_are_not():
    planted_signal, random_signal = of(gap_signal, planted.planted_gap(1)), of(gap_signal, planted.random_labels(1))
    assert planted_signal.auc == 1
    assert planted_signal.better_than_chance
    assert not random_signal.better_than_chance
    assert "no better than chance" in random_signal.sentence()


def test_top_distance_by_hand():
    # the nearest first chunk is right, the second wrong, the third right: 1 of 2 pairs in order
    cases = [planted.case_of(n, [d], [f]) for n, (d, f) in enumerate([(0.1, True), (0.2, False), (0.3, True)])]
    found = of(top_distance_signal, cases)
    assert (found.queries, found.auc) == (3, 0.5)
    assert not found.better_than_chance


def test_queries_that_are_all_right_cannot_tell():
    found = of(top_distance_signal, [planted.case_of(n, [0.1], [True]) for n in range(3)])
    assert found.auc is None
    assert "cannot tell" in found.sentence()


@settings(deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=8), st.lists(st.integers(0, 4), min_size=1, max_size=8))
def test_the_auc_is_that_of_scikit_learn(right, wrong):
    from sklearn.metrics import roc_auc_score

    expected = roc_auc_score([1] * len(right) + [0] * len(wrong), [*right, *wrong])
    assert auc(np.array(right, float), np.array(wrong, float)) == pytest.approx(expected)
