import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.errors import SpecError
from rag_core.filters.learned import FEATURES, LearnedCut, best_length, features
from rag_core.spec import dump_pipeline, parse_pipeline
from rag_core.types import Candidates, Chunk, Hit, Metric, Query

BY_DISTANCE = {  # chance = 1 / (1 + exp(20 · (distance − 0.5)))
    "features": list(FEATURES),
    "mean": [0.5, *[0] * 9],
    "scale": [1] * 10,
    "weights": [-20, *[0] * 9],
    "intercept": 0,
}


def candidates(*distances):
    hits = tuple(Hit(Chunk(f"c{at}"), at, {"distance": one}) for at, one in enumerate(distances, 1))
    return Candidates(Query("q", "owlbear"), hits)


def test_features_by_hand():
    row = features([0.2, 0.3, 0.6], 3)[1]
    assert dict(zip(FEATURES, row, strict=True)) == pytest.approx(
        {
            "distance": 0.3, "behind nearest": 0.1, "behind nearest, of the span": 0.25, "gap before": 0.1,
            "gap after": 0.3, "largest gap before": 0.1, "log rank": math.log(2), "nearest distance": 0.2, "span": 0.4,
            "query words": math.log(4),
        }
    )  # fmt: skip


def test_the_best_length_by_hand():
    # all chances sum to 1.75: expected F is 2·.9/2.75, 2·1.7/3.75, 2·1.75/4.75
    assert best_length([0.9, 0.8, 0.05], 1) == 2
    assert best_length([0.9, 0.8, 0.05], 3) == 3
    assert best_length([], 2) == 0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.integers(0, 12))
def test_the_best_length_is_the_best_of_all(chances, least):
    expected = {
        n: 2 * sum(chances[:n]) / (n + sum(chances)) for n in range(max(1, min(least, len(chances))), len(chances) + 1)
    }
    assert expected[best_length(chances, least)] == pytest.approx(max(expected.values()))


def test_near_chunks_stay_and_far_ones_go_with_a_reason():
    after = LearnedCut(BY_DISTANCE)(candidates(0.2, 0.25, 0.8, 0.85))
    assert [hit.rank for hit in after.hits] == [1, 2]
    assert after.drops[0].reason.text == "position 3, the model ends the list after 2 (chance 0.00)"


def test_hits_without_a_distance_pass():
    extra = Hit(Chunk("x"), 9, {"bm25": 2.0})
    start = candidates(0.2, 0.8)
    after = LearnedCut(BY_DISTANCE)(Candidates(start.query, (*start.hits, extra)))
    assert [hit.rank for hit in after.hits] == [1, 9]


def test_the_parameters_survive_a_spec_file():
    pipeline = parse_pipeline([{"LearnedCut": {"parameters": BY_DISTANCE}}])
    assert parse_pipeline(json.loads(json.dumps(dump_pipeline(pipeline)))).stages == pipeline.stages


def test_a_stage_without_parameters_says_so_when_it_runs():
    with pytest.raises(SpecError, match="has no parameters"):
        LearnedCut()(candidates(0.1))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"features": ["distance"]}, "other features"),
        ({"weights": [1.0]}, "wrong weights"),
        ({"mean": ["x"] * 10}, "wrong mean"),
        ({"scale": [0] * 10}, "scale of 0"),
        ({"intercept": None}, "wrong intercept"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(change, says):
    with pytest.raises(SpecError, match=says):
        LearnedCut({**BY_DISTANCE, **change})


def test_a_list_in_another_metric_than_the_training_is_refused():
    cosine = LearnedCut({**BY_DISTANCE, "metric": "cosine"})
    asked = candidates(0.1, 0.2)
    assert cosine(replace(asked, metric=Metric.COSINE)).hits == cosine(asked).hits  # unknown is taken for it
    with pytest.raises(SpecError, match="trained on cosine distances, expected a list of them, got l2"):
        cosine(replace(asked, metric=Metric.L2))
    assert LearnedCut({**BY_DISTANCE, "metric": "l2"})(replace(asked, metric=Metric.L2)).hits
    with pytest.raises(SpecError, match="wrong metric"):
        LearnedCut({**BY_DISTANCE, "metric": "miles"})
