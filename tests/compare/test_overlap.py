import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.compare.overlap import differences, jaccard, moves, rank_biased_overlap, replays, venn
from rag_core.errors import InputError
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cutoff import TopK
from rag_core.measure.experiment import kept_ids, run_all
from rag_core.stage import Pipeline
from rag_core.types import Candidates, Case, Chunk, Hit, Query
from tests import random_pipelines as made

DISTANCES = (0.1, 0.12, 0.15, 0.4, 0.41)


def outcomes(*stages):
    query = Query("q", "question")
    hits = tuple(Hit(Chunk(f"c{at}", f"t{at}"), at, {"distance": one}) for at, one in enumerate(DISTANCES, 1))
    case = Case(query, {"c1": 1, "c4": 0}, Candidates(query, hits, recorded=True))
    return [report.outcomes[0] for report in run_all([case], [Pipeline(one) for one in stages])]


# ---------------------------------------------------------------- rank-biased overlap


def test_rbo_of_equal_lists_is_one():
    assert rank_biased_overlap("abc", "abc") == pytest.approx(1)


def test_rbo_of_disjoint_lists_is_zero():
    assert rank_biased_overlap("abc", "def") == 0


def test_rbo_of_even_lists_by_hand():
    # a b / b a at p = 0.5: agreement 0/1 at depth 1, 2/2 at depth 2. (1−p)/p·(0·p + 1·p²) + 1·p² = 0.25 + 0.25
    assert rank_biased_overlap("ab", "ba", 0.5) == pytest.approx(0.5)


def test_rbo_of_uneven_lists_by_hand():
    # S = a, L = a b, p = 0.5: X = 1, 1; s = 1, l = 2.
    # Sum 1: 1/1·0.5 + 1/2·0.25 = 0.625. Sum 2 (d = 2): 1·(2−1)/(1·2)·0.25 = 0.125. Factor (1−p)/p = 1.
    # Tail ((1−1)/2 + 1/1)·0.25 = 0.25. Together 1: what there is of the shorter list agrees in full.
    assert rank_biased_overlap("a", "ab", 0.5) == pytest.approx(1.0)


def test_rbo_of_uneven_lists_that_disagree_by_hand():
    # S = b, L = a b c, p = 0.8: X = 0, 1, 1; s = 1, l = 3, X_s = 0.
    # Sum 1: 0 + 1/2·0.64 + 1/3·0.512 = 0.490667. Sum 2: 0. Factor 0.25. Tail ((1−0)/3 + 0)·0.512 = 0.170667.
    expected = 0.25 * (0.32 + 0.512 / 3) + 0.512 / 3
    assert rank_biased_overlap("b", "abc", 0.8) == pytest.approx(expected)
    assert rank_biased_overlap("abc", "b", 0.8) == pytest.approx(expected)


def test_rbo_of_empty_lists():
    assert rank_biased_overlap("", "") == 1
    assert rank_biased_overlap("", "a") == 0


def test_rbo_refuses_a_repeated_chunk_and_a_p_out_of_range():
    with pytest.raises(InputError, match="twice"):
        rank_biased_overlap("aa", "b")
    with pytest.raises(InputError, match="between 0 and 1"):
        rank_biased_overlap("a", "b", 1)


rankings = st.lists(st.integers(0, 12), unique=True, max_size=10)


def agreements_plainly(one, two, depth):
    return len(set(one[:depth]) & set(two[:depth]))


@given(rankings, rankings, st.floats(0.05, 0.95))
def test_rbo_is_symmetric_in_range_and_equals_the_formula_written_plainly(one, two, p):
    found = rank_biased_overlap(one, two, p)
    assert found == rank_biased_overlap(two, one, p)
    assert -1e-12 <= found <= 1 + 1e-12
    short, long = sorted((one, two), key=len)
    if short:
        s, deep = len(short), len(long)
        x = [agreements_plainly(one, two, depth) for depth in range(deep + 1)]
        total = sum(x[d] / d * p**d for d in range(1, deep + 1))
        total += sum(x[s] * (d - s) / (s * d) * p**d for d in range(s + 1, deep + 1))
        assert found == pytest.approx((1 - p) / p * total + ((x[deep] - x[s]) / deep + x[s] / s) * p**deep)


# ---------------------------------------------------------------- sets and places


def test_jaccard_by_hand():
    assert jaccard("abc", "bcd") == 0.5
    assert jaccard("", "") == 1
    assert jaccard("a", "") == 0


def test_venn_counts_every_chunk_once():
    found = venn({"a": "xyz", "b": "yz", "c": "zw"})
    assert found == {("a", "b", "c"): 1, ("a", "b"): 1, ("a",): 1, ("c",): 1}
    assert next(iter(found)) == ("a", "b", "c")


def test_moves_give_both_places():
    three, five = outcomes((TopK(3),), (TopK(4),))
    found = moves(three, five)
    assert [(one.chunk_id, one.first, one.second, one.kept_by, one.shift) for one in found][2:] == [
        ("c3", 3, 3, "both", 0),
        ("c4", None, 4, "second", None),
    ]
    assert (found[0].grade, found[1].grade, found[3].grade) == (1, None, 0)


# ---------------------------------------------------------------- reasons


def test_a_difference_has_the_reason_of_the_pipeline_that_lacks_the_chunk():
    gap, top = outcomes((AdaptiveGap(),), (TopK(4),))
    (found,) = differences(gap, top, ("gap", "top"))
    assert (found.chunk_id, found.kept_by, found.missing_from, found.stage) == ("c4", "top", "gap", "AdaptiveGap")
    assert found.reason == "distance 0.4000, cut after rank 3: gap 0.2500 ≥ 0.1000"
    assert found.would_keep[0].parameter == "gap_threshold"
    assert replays(found, gap)


def test_the_second_stage_of_a_name_is_told_apart():
    both, all_ = outcomes((TopK(4), TopK(2)), ())
    found = {one.chunk_id: one.stage for one in differences(both, all_)}
    assert found == {"c3": "TopK#2", "c4": "TopK#2", "c5": "TopK"}


def test_a_chunk_that_never_came_says_so():
    query, other = Query("q", "x"), Chunk("extra")
    short = Case(query, {}, Candidates(query, (Hit(Chunk("c1"), 1, {"distance": 0.1}),), recorded=True))
    long = Case(query, {}, Candidates(query, (*short.candidates.hits, Hit(other, 2, {"distance": 0.2})), recorded=True))
    (one,), (two,) = (run_all([case], [Pipeline(())])[0].outcomes for case in (short, long))
    (found,) = differences(one, two)
    assert found.reason == "not among the 1 candidates it read; rank 2 in the other list"
    assert found.rank is None
    assert replays(found, one)


def test_a_made_up_reason_does_not_replay():
    gap, top = outcomes((AdaptiveGap(),), (TopK(4),))
    (found,) = differences(gap, top)
    from dataclasses import replace

    assert not replays(replace(found, reason="no word of: nothing"), gap)
    assert not replays(replace(found, stage="TopK"), gap)


def test_every_difference_of_200_random_pairs_has_a_reason_that_replays():
    dice, seen = random.Random(20), 0
    for number in range(200):
        cases = [made.random_case(dice, number)]
        one, two = (report.outcomes[0] for report in run_all(cases, [made.random_pipeline(dice) for _ in range(2)]))
        found = differences(one, two, ("one", "two"))
        kept = [set(kept_ids(outcome.result)) for outcome in (one, two)]
        assert {(each.chunk_id, each.kept_by) for each in found} == {
            *((chunk, "one") for chunk in kept[0] - kept[1]),
            *((chunk, "two") for chunk in kept[1] - kept[0]),
        }
        for each in found:
            assert each.reason
            assert replays(each, two if each.missing_from == "two" else one), each
        seen += len(found)
    assert seen > 500
