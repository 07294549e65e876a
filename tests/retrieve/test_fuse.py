"""Reciprocal rank fusion: hand arithmetic, weights, ties, and that the order of the lists is no matter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.errors import InputError
from rag_core.retrieve.fuse import fuse, fused_score

LISTS = st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True), min_size=1, max_size=4)


def test_the_three_worked_scores():
    both = fuse([["a", "b"], ["a", "x", "y", "z", "b"]])
    scores = {one[0]: one[1] for one in both}
    assert scores["a"] == pytest.approx(2 / 61)
    assert scores["b"] == pytest.approx(1 / 62 + 1 / 65)
    assert fuse([["a"], []])[0][1] == pytest.approx(1 / 61)


@pytest.mark.parametrize(("i", "j"), [(1, 1), (1, 200), (7, 3), (200, 200)])
def test_weights_of_a_half_reproduce_the_halves(i, j):
    assert fused_score((i, j), (0.5, 0.5), 60) == 0.5 / (60 + i) + 0.5 / (60 + j)


def test_a_chunk_in_one_list_only_still_counts_and_its_other_rank_is_missing():
    found = {one[0]: one[2] for one in fuse([["a", "b"], ["b"]])}
    assert found == {"a": (1, None), "b": (2, 1)}


def test_equal_scores_stand_by_id():
    assert [one[0] for one in fuse([["b", "a"], ["a", "b"]])] == ["a", "b"]


def test_weights_move_the_balance():
    assert fuse([["a", "b"], ["b", "a"]], (2, 1))[0][0] == "a"
    assert fuse([["a", "b"], ["b", "a"]], (1, 2))[0][0] == "b"


def test_an_id_that_a_list_repeats_counts_once_where_it_came_first():
    assert fuse([["a", "b", "a"]])[0][1] == pytest.approx(1 / 61)


@pytest.mark.parametrize(
    "arguments", [([["a"]], (1, 1)), ([["a"]], (-1,)), ([["a"]], (0,)), ([["a"]], (float("nan"),)), ([["a"]], (1,), -1)]
)
def test_weights_and_k_without_meaning_are_refused(arguments):
    with pytest.raises(InputError, match="fusion has"):
        fuse(*arguments)


@given(LISTS, st.integers(0, 100))
def test_every_id_once_by_the_plain_sum_and_the_lists_may_come_in_any_order(lists, k):
    found = fuse(lists, k=k)
    expected = {one: sum(1 / (k + ids.index(one) + 1) for ids in lists if one in ids) for ids in lists for one in ids}
    assert {one[0]: one[1] for one in found} == pytest.approx(expected)
    assert len(found) == len(expected)
    assert [one[1] for one in found] == sorted((one[1] for one in found), reverse=True)
    assert [(one[0], one[1]) for one in fuse(lists[::-1], k=k)] == [(one[0], one[1]) for one in found]
