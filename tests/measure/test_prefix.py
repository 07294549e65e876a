import gc
import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.errors import SpecError
from rag_core.filters.cutoff import TopK
from rag_core.filters.query_must import QueryMust
from rag_core.measure.experiment import run, run_all, same_step, stream, tree_of
from rag_core.measure.tally import measure_all
from rag_core.retrieve.dense import Dense
from rag_core.stage import Filter, Judgement, Pipeline, resource
from rag_core.types import Candidates, Case, Chunk, Drop, Hit, Metric, Query
from tests import random_pipelines as made


@dataclass
class CountingReader:
    hits: tuple
    fingerprint: str = "counting"
    store_queries: int = 1

    @property
    def matching(self):
        return len(self.hits)

    def read(self, start, stop):
        return self.hits[start:stop]


@dataclass
class CountingIndex:
    """An index that counts how often it is asked."""

    asked: list = field(default_factory=list)
    metric: Metric = Metric.COSINE
    exact: bool = True
    fingerprint: str = "counting"

    def reader(self, text, where=None, file_filter=None):
        self.asked.append(text)
        return CountingReader(tuple(Hit(Chunk(f"c{at}"), at + 1, {"distance": at / 10}) for at in range(20)))


CASES = [Case(Query(f"q{number}", f"question {number}"), {"c1": 1}) for number in range(7)]


def test_twenty_pipelines_that_share_a_source_ask_it_once_per_query():
    index = CountingIndex()
    run_all(CASES, [Pipeline((Dense(depth=20, index=index), TopK(k))) for k in range(1, 21)])
    assert index.asked == [case.query.text for case in CASES]


def test_two_handles_are_asked_both_even_with_equal_settings():
    one, two = CountingIndex(), CountingIndex()
    run_all(CASES, [Pipeline((Dense(depth=20, index=one),)), Pipeline((Dense(depth=20, index=two),))])
    assert (len(one.asked), len(two.asked)) == (7, 7)


def test_another_depth_is_another_source():
    index = CountingIndex()
    run_all(CASES, [Pipeline((Dense(depth=5, index=index),)), Pipeline((Dense(depth=6, index=index),))])
    assert len(index.asked) == 14


def test_the_tree_holds_every_shared_step_once():
    pipelines = [Pipeline((QueryMust(), TopK(k))) for k in range(1, 11)] + [Pipeline((QueryMust(),)), Pipeline(())]

    def steps(node):
        return sum(1 + steps(child) for child in node.next)

    assert steps(tree_of(pipelines).root) == 11


@dataclass(frozen=True)
class Held(Filter):
    handle: object = resource()

    def judge(self, candidates):
        return Judgement([None] * len(candidates.hits))


def test_a_step_is_the_same_only_with_the_same_handle():
    handle = object()
    assert same_step(Held(handle), Held(handle))
    assert not same_step(Held(handle), Held(object()))
    assert not same_step(TopK(3), TopK(4))


def facts(outcome):
    result, scores = outcome.result, outcome.scores
    steps = [(step.stage, step.entered, step.left) for step in result.steps]
    return result.hits, result.drops, result.notices, result.fallbacks, steps, scores


@given(st.integers(0, 2**32))
def test_together_gives_what_separate_runs_give(seed):
    dice = random.Random(seed)
    cases = made.random_cases(seed, 3, 15)
    shared = made.random_pipeline(dice, 2)
    pipelines = [
        Pipeline((*(shared.stages if dice.random() < 0.6 else ()), *made.random_pipeline(dice, 3).stages))
        for _ in range(5)
    ]
    together = run_all(cases, pipelines)
    for pipeline, report in zip(pipelines, together, strict=True):
        alone = run(cases, pipeline)
        assert list(map(facts, report.outcomes)) == list(map(facts, alone.outcomes))


def test_repeated_names_get_a_number_and_keep_their_order():
    reports = run_all(CASES[:1], [Pipeline((), label="a"), Pipeline((), label="b"), Pipeline((), label="a")])
    assert [report.name for report in reports] == ["a", "b", "a#2"]


def test_cases_are_read_one_at_a_time():
    read = []

    def cases():
        for case in CASES:
            read.append(case.query.id)
            yield case

    rows = stream(cases(), [Pipeline((TopK(1),))])
    next(rows)
    assert read == ["q0"]


@pytest.mark.slow
def test_no_trace_is_held_once_its_query_is_counted():
    cases, alive = made.random_cases(3, 30), []

    def watch(done):
        alive.append(sum(isinstance(one, Drop) for one in gc.get_objects()))

    measure_all(cases, [Pipeline((TopK(k),)) for k in (1, 2, 3)], progress=watch)
    most = 3 * max(len(case.candidates.hits) for case in cases)  # what one query can drop in three pipelines
    before = min(alive)
    assert max(alive) - before <= 2 * most


def test_an_error_of_a_stage_names_its_query():
    list_of_l2 = Candidates(
        Query("far", "x"), (Hit(Chunk("c"), 1, {"distance": 1.0}),), metric=Metric.L2, recorded=True
    )
    from rag_core.filters.adaptive import AdaptiveGap

    with pytest.raises(SpecError, match=r"^query far: "):
        run_all([Case(list_of_l2.query, {}, list_of_l2)], [Pipeline((TopK(3),)), Pipeline((TopK(3), AdaptiveGap()))])
