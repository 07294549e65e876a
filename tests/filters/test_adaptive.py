import math
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_core.errors import InputError, SpecError
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cut import POLICIES
from rag_core.filters.cutoff import MinSimilarity, TopK, is_weak
from rag_core.stage import counterfactuals
from rag_core.types import Candidates, Chunk, Hit, Metric, Order, Query


def listed(distances, **more):
    hits = tuple(Hit(Chunk(f"c{rank}"), rank, {"distance": d}) for rank, d in enumerate(distances, 1))
    return Candidates(Query("q", "a question"), hits, recorded=True, **more)


def test_a_gap_cut_names_distance_rank_gap_and_threshold():
    after = AdaptiveGap()(listed([0.5, 0.55, 0.7922, 0.8]))
    assert after.drops[0].reason.text == "distance 0.7922, cut after rank 2: gap 0.2422 ≥ 0.1000"
    assert (after.drops[0].reason.value, after.drops[0].reason.threshold) == (pytest.approx(0.2422), 0.1)


def test_an_offset_cut_names_the_reach():
    after = AdaptiveGap(gap_threshold=1, distance_offset=0.1)(listed([0.5, 0.55, 0.7]))
    assert after.drops[0].reason.text == "distance 0.7000 > 0.6000 (nearest 0.5000 + offset 0.1000)"


def test_behind_max_results_the_reason_says_so():
    after = AdaptiveGap(max_results=2)(listed([0.5, 0.55, 0.6]))
    assert after.drops[0].reason.text == "position 3, only the first 2 are looked at"


def test_counterfactuals_of_a_gap_cut_hold_when_tried():
    before = listed([0.5, 0.55, 0.7922, 0.8])
    found = counterfactuals(AdaptiveGap(), before)["c3", ""]
    by_name = {one.parameter: one.value for one in found}
    assert by_name["gap_threshold"] == pytest.approx(0.2422, abs=1e-8)
    assert by_name["min_results"] == 3
    assert by_name["max_results"] is None  # looking at fewer never keeps more here
    assert by_name["distance_offset"] is None
    assert len(AdaptiveGap(gap_threshold=by_name["gap_threshold"])(before).hits) >= 3


def test_of_policies_that_keep_a_chunk_the_first_in_their_order_is_named():
    before, named = listed([0.1, 0.2, 0.35, 0.4, 0.8, 0.81]), AdaptiveGap(0.05, gap_policy="first")
    kept = {policy: len(replace(named, gap_policy=policy)(before).hits) for policy in POLICIES}
    found = {key[0]: {one.parameter: one.value for one in all_} for key, all_ in counterfactuals(named, before).items()}
    assert len({policy for policy in POLICIES if kept[policy] > kept["first"]}) > 1  # else any order would do
    for place in range(kept["first"] + 1, 7):
        expected = next((policy for policy in POLICIES if kept[policy] >= place), None)
        assert found[f"c{place}"]["gap_policy"] == expected


def test_counterfactuals_of_a_list_longer_than_any_setting_reaches():
    found = counterfactuals(AdaptiveGap(distance_offset=5), listed([n / 1000 for n in range(1, 1011)]))
    by_place = [{one.parameter: one.value for one in found[f"c{place}", ""]} for place in (1000, 1001)]
    assert [one["max_results"] for one in by_place] == [1000, None]


@given(
    st.lists(st.integers(0, 300).map(lambda n: n / 100), min_size=1, max_size=12).map(sorted),
    st.integers(0, 100).map(lambda n: n / 100),
    st.integers(0, 100).map(lambda n: n / 100),
    st.sampled_from(POLICIES),
    st.none() | st.integers(0, 300).map(lambda n: n / 100),
    st.none() | st.integers(0, 300).map(lambda n: n / 100),
)
def test_every_counterfactual_value_really_keeps_the_chunk(distances, threshold, offset, policy, worst, weak):
    stage = AdaptiveGap(threshold, offset, gap_policy=policy, max_results=10, worst_score=worst, weak_top=weak, jumps=2)
    before = listed(distances)
    for (chunk, _), found in counterfactuals(stage, before).items():
        for one in found:
            if one.value is not None:
                changed = AdaptiveGap(**{**stage.settings(), one.parameter: one.value})
                assert chunk in [hit.chunk.id for hit in changed(before).hits], one


@example([0.0, 0.0, 0.0, 0.52, 0.7], 0.3, 0.0, "knee", 0)
@given(
    st.lists(st.integers(0, 40).map(lambda n: n / 50), min_size=1, max_size=9).map(sorted),
    st.sampled_from([0.0, 0.04, 0.1, 0.3]),
    st.sampled_from([0.0, 0.1, 0.4]),
    st.sampled_from(POLICIES),
    st.integers(0, 3),
)
def test_no_value_nearer_than_the_counterfactual_keeps_the_chunk(distances, threshold, offset, policy, least):
    stage = AdaptiveGap(threshold, offset, min_results=least, max_results=7, gap_policy=policy)
    before, steps = listed(distances), [n / 200 for n in range(180)]
    tried = {"gap_threshold": steps, "distance_offset": steps, "min_results": range(8), "max_results": range(1, 12)}
    for (chunk, _), found in counterfactuals(stage, before).items():
        for one in found:
            current = stage.settings()[one.parameter]
            far = math.inf if one.value is None or isinstance(one.value, str) else abs(one.value - current)
            for value in tried.get(one.parameter, ()):
                if (one.parameter == "max_results" and value < least) or abs(value - current) >= far - 2e-9:
                    continue
                changed = AdaptiveGap(**{**stage.settings(), one.parameter: value})
                assert chunk not in [hit.chunk.id for hit in changed(before).hits], (one, value)


def test_a_fused_list_is_cut_by_distance_and_hits_without_one_pass_and_are_counted():
    hits = (
        Hit(Chunk("far"), 1, {"distance": 0.9, "rrf": 0.03}),
        Hit(Chunk("bm25"), 2, {"rrf": 0.02}),
        Hit(Chunk("near"), 3, {"distance": 0.1, "rrf": 0.01}),
        Hit(Chunk("close"), 4, {"distance": 0.15, "rrf": 0.01}),
    )
    after = AdaptiveGap()(Candidates(Query("q", "x"), hits, order=Order.FUSED, recorded=True))
    assert [hit.chunk.id for hit in after.hits] == ["near", "close", "bm25"]
    assert after.steps[0].facts["passed_without_distance"] == 1


def test_expanded_chunks_are_not_cut():
    hits = (
        *listed([0.1, 0.15, 0.9]).hits,
        Hit(Chunk("x"), 4, {"distance": 1.5}, origin="expanded from c1, 1 step"),
    )
    after = AdaptiveGap()(Candidates(Query("q", "x"), hits, recorded=True))
    assert [hit.chunk.id for hit in after.hits] == ["c1", "c2", "x"]


def test_a_missing_distance_in_a_distance_list_is_named():
    hits = (Hit(Chunk("b"), 1, {"distance": 0.2}), Hit(Chunk("a"), 2, {"bm25": 3.0}))
    with pytest.raises(InputError, match="needs a distance on every candidate, rank 2 has bm25"):
        AdaptiveGap()(Candidates(Query("q", "x"), hits, recorded=True))


@pytest.mark.parametrize("metric", [Metric.L2, Metric.IP])
def test_default_thresholds_refuse_distances_that_are_not_cosine(metric):
    with pytest.raises(SpecError, match="made for cosine distances"):
        AdaptiveGap()(listed([0.1, 0.2], metric=metric))


def test_relative_settings_take_any_metric():
    stage = AdaptiveGap(gap_policy="relative", relative_offset=0.5)
    assert len(stage(listed([10.0, 11.0, 30.0], metric=Metric.L2)).hits) == 2


def test_top_k_reason_and_counterfactual():
    before = listed([0.1, 0.2, 0.3])
    assert TopK(k=2)(before).drops[0].reason.text == "position 3 > k 2"
    assert counterfactuals(TopK(k=2), before)["c3", ""][0].value == 3


def test_min_similarity_uses_one_minus_a_cosine_distance():
    after = MinSimilarity(min_relevance=0.45)(listed([0.5, 0.55, 0.56], metric=Metric.COSINE))
    assert [drop.reason.text for drop in after.drops] == ["cosine similarity 0.4400 < 0.4500"]


def test_min_similarity_is_skipped_and_said_where_the_metric_is_unknown():
    after = MinSimilarity()(listed([0.5, 0.9]))
    assert len(after.hits) == 2
    assert "similarity floor skipped for 2 of 2 candidates" in after.notices[0].text


@pytest.mark.parametrize(
    ("distance", "metric", "weak"),
    [
        (0.7, Metric.COSINE, False),
        (0.7001, Metric.COSINE, True),
        (0.9, Metric.UNKNOWN, False),
        (0.9, Metric.L2, False),
    ],
)
def test_a_match_is_weak_below_a_cosine_similarity_of_0_3(distance, metric, weak):
    (hit,) = listed([distance], metric=metric).hits
    assert is_weak(hit, metric) is weak


def test_a_minimum_score_counts_in_the_lists_own_score():
    hits = tuple(Hit(Chunk(f"c{rank}"), rank, {"bm25": score}) for rank, score in enumerate([9.0, 7.5, 2.0], 1))
    before = Candidates(Query("q", "x"), hits, recorded=True)
    stage = AdaptiveGap(gap_policy="ratio", distance_offset=1, worst_score=7.5)
    after = stage(before)
    assert [hit.chunk.id for hit in after.hits] == ["c1", "c2"]
    assert after.drops[0].reason.text == "score 2.0000 is worse than worst_score 7.5000"
    assert {one.parameter: one.value for one in counterfactuals(stage, before)["c3", ""]}["worst_score"] == 2.0


def test_a_weak_top_drops_all_and_says_which_top_would_do():
    before, stage = listed([0.5, 0.55]), AdaptiveGap(weak_top=0.45)
    after = stage(before)
    assert [drop.reason.text for drop in after.drops] == ["best distance 0.5000 is worse than weak_top 0.4500"] * 2
    assert {one.parameter: one.value for one in counterfactuals(stage, before)["c2", ""]}["weak_top"] == 0.5
    assert AdaptiveGap.said(after.steps[-1]) == "even the best is worse than weak_top: 0 of 2 left"
