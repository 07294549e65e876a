from dataclasses import dataclass, fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.errors import SpecError
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cutoff import MinSimilarity, TopK
from rag_core.spec import STAGES, dump_pipeline, parse_pipeline, stage_class
from rag_core.stage import Filter, Judgement, Pipeline, Source, made_by_cut
from rag_core.types import Candidates, Chunk, Hit, Metric, Query, Reason, Step

stages = st.one_of(
    st.builds(TopK, k=st.integers(1, 20)),
    st.builds(MinSimilarity, min_relevance=st.floats(-1, 1)),
    st.builds(
        AdaptiveGap,
        gap_threshold=st.floats(0, 1),
        distance_offset=st.floats(0, 1),
        min_results=st.integers(0, 3),
        max_results=st.integers(3, 20),
        gap_policy=st.sampled_from(["largest", "first", "relative"]),
    ),
)
pipelines = st.lists(stages, max_size=4).map(lambda made: Pipeline(tuple(made)))


@st.composite
def lists(draw):
    distances = sorted(draw(st.lists(st.floats(0, 2), max_size=25)))
    hits = tuple(Hit(Chunk(f"c{rank}"), rank, {"distance": d}) for rank, d in enumerate(distances, 1))
    metric = draw(st.sampled_from([Metric.COSINE, Metric.UNKNOWN]))
    return Candidates(Query("q", "a question"), hits, metric=metric, recorded=True)


@given(pipelines, lists())
def test_every_hit_that_entered_is_kept_or_dropped_exactly_once(pipeline, before):
    after = pipeline(before)
    assert sorted([hit.key for hit in after.hits] + [drop.hit.key for drop in after.drops]) == sorted(
        hit.key for hit in before.hits
    )


@given(pipelines, lists())
def test_filters_keep_the_order(pipeline, before):
    ranks = [hit.rank for hit in pipeline(before).hits]
    assert ranks == sorted(ranks)


@given(stages, stages, stages, lists())
def test_composition_is_associative(a, b, c, before):
    assert (a >> b) >> c == a >> (b >> c)
    assert ((a >> b) >> c)(before) == (a >> (b >> c))(before) == c(b(a(before)))


@given(pipelines)
def test_a_spec_written_and_read_is_the_same_pipeline(pipeline):
    assert parse_pipeline(dump_pipeline(pipeline)) == pipeline


@given(lists())
def test_an_empty_pipeline_returns_the_list_as_it_came(before):
    assert Pipeline()(before) == before


def test_every_drop_has_a_reason_and_its_stage():
    hits = tuple(Hit(Chunk(f"c{n}"), n, {"distance": n / 10}) for n in range(1, 6))
    after = (TopK(k=3) >> TopK(k=2))(Candidates(Query("q", "x"), hits))
    assert [(drop.stage, drop.reason.text) for drop in after.drops] == [
        ("TopK", "position 4 > k 3"),
        ("TopK", "position 5 > k 3"),
        ("TopK", "position 3 > k 2"),
    ]
    assert [(step.entered, step.left) for step in after.steps] == [(5, 3), (3, 2)]


def test_a_filter_that_forgets_a_hit_is_an_error_not_a_loss():
    @dataclass(frozen=True)
    class Forgetful(Filter):
        def judge(self, candidates):
            return Judgement([Reason("x")])

    hits = tuple(Hit(Chunk(f"c{n}"), n) for n in range(3))
    with pytest.raises(ValueError, match="argument"):
        Forgetful()(Candidates(Query("q", "x"), hits))


def test_a_source_is_skipped_on_a_recorded_list_and_the_trace_says_so():
    @dataclass(frozen=True)
    class Never(Source):
        def fetch(self, candidates):
            raise AssertionError("asked")

    after = Never()(Candidates(Query("q", "x"), recorded=True))
    assert "recorded list" in after.steps[0].facts["skipped"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TopK(k=0), r"TopK\.k is 0, expected 1 to 1000"),
        (lambda: TopK(k=2.5), r"TopK\.k is 2\.5, expected a whole number"),
        (lambda: TopK(k=True), r"TopK\.k is True, expected a whole number"),
        (lambda: MinSimilarity(min_relevance=float("nan")), "min_relevance is nan, expected a number"),
        (lambda: AdaptiveGap(gap_policy="x"), "gap_policy is 'x', expected one of largest, first, relative"),
        (lambda: AdaptiveGap(gap_threshold=-1), "gap_threshold is -1, expected at least 0"),
    ],
)
def test_a_setting_out_of_range_names_stage_setting_value_and_range(make, message):
    with pytest.raises(SpecError, match=message):
        make()


@pytest.mark.parametrize("name", sorted(STAGES))
def test_a_stage_answers_for_itself(name):
    cls = stage_class(name)
    stage = cls()
    assert cls.title
    assert cls.title != name
    assert cls.meaning.endswith(".")
    assert {row.name for row in cls.declared()} == set(stage.settings())
    priorities = [row.priority for row in cls.declared() if row.priority]
    assert priorities == sorted(set(priorities)) == list(range(1, len(priorities) + 1))
    assert cls.needs() <= {f.name for f in fields(cls)} - set(stage.settings())
    assert cls.said(Step(name, 7, 3))
    assert cls.details(Step(name, 7, 3)) == ()
    for row in cls.declared():
        assert row.help
        if row.numeric:
            assert row.step or not row.priority, f"{row.name} can be turned and has no step"
            ends = [*(row.usual or ()), *(row.grid or ())[:2]]
            assert all((row.low is None or end >= row.low) and (row.high is None or end <= row.high) for end in ends)


def test_no_two_stages_have_one_title():
    titles = [stage_class(name).title for name in STAGES]
    assert len(set(titles)) == len(titles)


@given(stages, lists())
def test_a_step_is_said_in_one_line(stage, before):
    (step,) = stage(before).steps
    assert "\n" not in stage.said(step)
    assert f"{step.left}" in stage.said(step)
    assert stage.change(step) == f"−{step.entered - step.left}"


@given(pipelines, lists())
def test_a_drop_of_a_cut_is_known_as_one(pipeline, before):
    assert all(made_by_cut(drop) == stage_class(drop.stage).is_cut for drop in pipeline(before).drops)
