import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.errors import SpecError
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cutoff import MinSimilarity, TopK
from rag_core.filters.learned_filter import LearnedFilter
from rag_core.filters.rerank import Rerank
from rag_core.measure.measures import SET_MEASURES
from rag_core.measure.tally import measure_all
from rag_core.records import dump_case, read_case
from rag_core.stage import Pipeline, counterfactuals
from rag_core.tune.grid import Axis
from rag_core.tune.plane import sweep
from rag_core.types import Candidates, Case, Chunk, Hit, Metric, Order, Query


def listed(scores, kind="rerank", metric=Metric.COSINE):
    """A list by distance whose chunks also carry a score; None: that one has none."""
    hits = tuple(
        Hit(Chunk(f"c{at}", text=f"text {at}"), at, {"distance": at / 100} | ({} if one is None else {kind: one}))
        for at, one in enumerate(scores, 1)
    )
    return Candidates(Query("q", "a question"), hits, metric=metric, recorded=True)


def ids(candidates):
    return [hit.chunk.id for hit in candidates.hits]


@given(st.lists(st.floats(-5, 5), max_size=20), st.integers(1, 25))
def test_the_first_are_ordered_by_score_and_the_rest_is_dropped_with_its_place(scores, depth):
    after = Rerank(depth=depth)(listed(scores))
    near = list(enumerate(scores, 1))[:depth]
    assert ids(after) == [f"c{at}" for at, _ in sorted(near, key=lambda pair: (-pair[1], pair[0]))]
    assert [drop.hit.chunk.id for drop in after.drops] == [f"c{at}" for at in range(depth + 1, len(scores) + 1)]
    assert not after.fallbacks


def test_a_score_of_another_name_becomes_the_one_that_cuts_decide_by():
    after = Rerank(recorded="jina")(listed([0.1, 0.9], "jina"))
    assert [hit.scores["rerank"] for hit in after.hits] == [0.9, 0.1]
    assert after.metric is Metric.RERANK


@pytest.mark.parametrize(
    "reranker",
    [None, lambda question, texts: 1 / 0, lambda question, texts: [1.0], lambda question, texts: [float("nan")] * 3],
)
def test_without_scores_the_order_stays_and_that_is_counted(reranker):
    start = listed([0.1, None, 0.9])
    after = Rerank(reranker=reranker)(start)
    assert ids(after) == ids(start)
    assert len(after.fallbacks) == 1
    assert "order kept" in Rerank.said(after.steps[-1])
    cut = AdaptiveGap(gap_threshold=0.01, distance_offset=0.01, min_results=0, score_kind="rerank")
    assert ids(cut(after)) == ids(start)  # no score, no cut


def test_cuts_behind_it_decide_by_its_score():
    start = listed([0.1, 0.95, 0.2, 0.9])
    cut = AdaptiveGap(gap_threshold=0.5, distance_offset=0.3, min_results=1, score_kind="rerank")
    assert ids((Rerank() >> cut)(start)) == ["c2", "c4"]
    assert ids((Rerank() >> TopK(3))(start)) == ["c2", "c4", "c3"]
    assert ids((Rerank() >> MinSimilarity(0.975))(start)) == ["c2", "c1"]  # the cosine similarity is still known


def test_a_floor_of_the_reranker_is_the_worst_score_of_the_cut():
    floor = AdaptiveGap(gap_threshold=9, distance_offset=9, min_results=0, worst_score=0.15, score_kind="rerank")
    assert ids((Rerank() >> floor)(listed([0.1, 0.95, 0.2, 0.9]))) == ["c2", "c4", "c3"]


def test_a_threshold_for_another_kind_is_refused_in_front_and_behind():
    start = listed([0.1, 0.9, 0.2])
    for pipeline in (
        Pipeline((AdaptiveGap(gap_threshold=0.5, distance_offset=0.3, score_kind="rerank"),)),
        Rerank() >> AdaptiveGap(gap_threshold=0.5, distance_offset=0.3, score_kind="distance"),
        Rerank() >> AdaptiveGap(),  # its defaults are for cosine distances
    ):
        with pytest.raises(SpecError, match="expected"):
            pipeline(start)


def test_the_learned_filter_reads_the_reranked_scores():
    near, far = listed([0.9, 0.1, 0.1, 0.1]), listed([0.9, 0.89, 0.88, 0.87])
    expected = [(Rerank() >> LearnedFilter())(one).steps[-1].facts["expected_relevant"] for one in (near, far)]
    assert expected[0] != expected[1]  # the distances are the same in both


def test_a_dropped_chunk_says_which_depth_reaches_it():
    found = counterfactuals(Rerank(depth=2), listed([0.3, 0.2, 0.9]))
    assert [(one.parameter, one.value) for one in found["c3", ""]] == [("depth", 3)]


def test_a_sweep_of_the_cut_equals_the_plain_pipeline():
    dice = random.Random(5)
    cases = []
    for number in range(12):
        scores = [None if number == 3 else dice.random() for _ in range(dice.randint(3, 15))]
        start = listed(scores)
        grades = {hit.chunk.id: int(dice.random() < 0.3) for hit in start.hits} | {"c1": 1}
        cases.append(Case(Query(f"q{number}", "a question"), grades, start))
    cut = AdaptiveGap(gap_threshold=0.2, distance_offset=0.3, min_results=1, score_kind="rerank")
    pipeline = Rerank(depth=10) >> cut
    values = (0.05, 0.12, 0.3, 0.7)
    table = sweep(cases, pipeline, (Axis("gap_threshold", "AdaptiveGap", "gap_threshold", values),))
    for value in values:
        (plain,) = measure_all(cases, [Rerank(depth=10) >> cut.changed(gap_threshold=value)], 1, SET_MEASURES)
        known = [one for one in plain.values("SetF") if one is not None]
        assert table.row_at((value,))["SetF"] == pytest.approx(sum(known) / len(known))


def test_named_scores_are_read_and_written_back():
    record = {
        "query": "q",
        "metric": "rerank",
        "candidates": [
            {"id": "a", "distance": 0.5, "scores": {"rerank": 0.9, "jina": 3.5}},
            {"id": "b", "distance": 0.1, "rerank": 0.2},
        ],
    }
    case = read_case(record, "the line", "q")
    assert [dict(hit.scores) for hit in case.candidates.hits] == [
        {"distance": 0.5, "rerank": 0.9, "jina": 3.5},
        {"distance": 0.1, "rerank": 0.2},
    ]
    assert case.candidates.order is Order.DISTANCE  # by the score that its metric names
    assert read_case(dump_case(case), "the line", "q") == case
