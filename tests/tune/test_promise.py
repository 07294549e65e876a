"""A promised recall as a pipeline: the stage keeps the promise on its own queries, and is judged on others."""

import pytest

from rag_core.errors import InputError
from rag_core.spec import parse_pipeline
from rag_core.tune.promise import KNOBS, promise, promises, realised, sentence
from tests import planted

DEV, TEST = planted.planted_gap(1, 60, noise=0.2), planted.planted_gap(2, 40, noise=0.2)


@pytest.mark.parametrize("knob", list(KNOBS))
def test_the_pipeline_misses_on_its_own_queries_what_the_calibration_says(knob):
    made = promise(DEV, (), knob, 0.15)
    again = realised(DEV, (), made)
    assert again.miss_share == pytest.approx(made.miss_share)
    assert again.kept_mean == made.kept_mean < made.list_mean == 15
    assert made.miss_share <= 0.15


def test_other_queries_are_judged_with_an_interval():
    made = promise(DEV, (), "k", 0.2)
    found = realised(TEST, (), made)
    assert found.queries == 40
    assert found.interval[0] <= found.miss_share <= found.interval[1]


def test_stages_in_front_come_first_and_only_what_they_leave_counts():
    front = parse_pipeline([{"TopK": {"k": 4}}]).stages
    made = promise(DEV, front, "distance_offset", 0.1)
    assert [stage.name for stage in made.pipeline.stages] == ["TopK", "AdaptiveGap"]
    assert made.list_mean == 4


def test_too_few_queries_promise_nothing_and_say_how_many_it_takes():
    made = promise(DEV[:5], (), "k", 0.1)
    assert made.pipeline is None
    assert made.queries_needed == 9
    assert made.kept_mean == 15
    assert "expected at least 9" in sentence(made)
    with pytest.raises(InputError, match="no setting to judge"):
        realised(TEST, (), made)


def test_a_queries_count_that_is_just_enough_is_enough():
    # (0 + 1) / (9 + 1) = 0.1
    assert promise(DEV[:9], (), "k", 0.1).pipeline is not None


def test_a_promise_with_a_chance_is_tighter_says_so_and_needs_more_queries():
    average, sure = promise(DEV, (), "k", 0.2), promise(DEV, (), "k", 0.2, sure=0.9)
    assert sure.value >= average.value
    assert "with a chance of 90% at most 20.0%" in sentence(sure)
    assert "on average" not in sentence(sure)
    # without any miss (1 − α)^n ≤ 1 − .9: 22 queries at α = .1
    assert promise(DEV[:21], (), "k", 0.1, sure=0.9).queries_needed == 22
    assert promise(DEV[:21], (), "k", 0.1, sure=0.9).pipeline is None
    assert promise(DEV[:22], (), "k", 0.1, sure=0.9).value is not None
    with pytest.raises(InputError, match="sure is 1"):
        promise(DEV, (), "k", 0.2, sure=1.0)


def test_the_sentence_states_the_assumption_and_the_looks():
    made = promise(DEV, (), "k", 0.2)
    told = sentence(made, realised(TEST, (), made), 2)
    assert made.assumption in told
    assert "on average over draws" in told
    assert "at most 20.0%" in told
    assert told.endswith("Looked at the held-out set 2 times.")


def test_every_knob_is_shown_or_says_why_not():
    bare = [planted.case_of(number, [0.1, 0.2], [1, 0]) for number in range(20)]
    from dataclasses import replace

    from rag_core.types import Metric

    unknown = [replace(one, candidates=replace(one.candidates, metric=Metric.UNKNOWN)) for one in bare]
    found = promises(unknown, (), 0.2)
    assert list(found) == list(KNOBS)
    assert "without a cosine similarity" in found["min_relevance"]
    assert found["k"].value == 1
