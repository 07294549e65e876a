"""Lists that have only a score go through every cut and everything that tunes one, as lists of distances do."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_core.errors import InputError, SpecError
from rag_core.export import export_filter
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cut import POLICIES
from rag_core.filters.cutoff import TopK
from rag_core.project.choosing import best_of_family
from rag_core.stage import Pipeline
from rag_core.tune.grid import parse_grid
from rag_core.tune.learned import train
from rag_core.tune.plane import sweep
from rag_core.tune.promise import promise
from rag_core.tune.tune import mean_of, values_of
from rag_core.types import Candidates, Case, Chunk, Hit, Metric, Query

TOP = 8.0  # scores are this minus the distance: exact for eighths
LISTS = st.lists(
    st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=1, max_size=9).filter(
        lambda rows: any(flag for _, flag in rows)
    ),
    min_size=2,
    max_size=5,
)


def case(number, rows, kind):
    hits = [
        Hit(Chunk(f"c{at}"), at, {kind: TOP - step / 8 if kind != "distance" else step / 8})
        for at, (step, _) in enumerate(sorted(rows, key=lambda row: row[0]), 1)
    ]
    grades = {f"c{at}": int(flag) for at, (_, flag) in enumerate(sorted(rows, key=lambda row: row[0]), 1)}
    query = Query(f"q{number}", "a question")
    metric = Metric.COSINE if kind == "distance" else Metric.UNKNOWN
    return Case(query, grades, Candidates(query, tuple(hits), metric=metric, recorded=True))


def both(lists, kind="score"):
    return [[case(at, rows, name) for at, rows in enumerate(lists)] for name in ("distance", kind)]


@given(
    LISTS,
    st.sampled_from(["score", "bm25", "rrf"]),
    st.sampled_from([policy for policy in POLICIES if policy != "ratio"]),  # a share of the top is not that of another
    st.none() | st.integers(0, 40).map(lambda step: step / 8),
    st.none() | st.integers(0, 10).map(lambda step: step / 8),
)
@settings(max_examples=12)
def test_a_score_is_cut_and_swept_as_its_distance_is(lists, kind, policy, worst, weak):
    near = AdaptiveGap(0.375, 0.75, 0, 6, policy, worst_score=worst, weak_top=weak)
    bounds = {"worst_score": worst, "weak_top": weak}
    high = near.changed(**{name: TOP - value for name, value in bounds.items() if value is not None})
    pairs = list(zip((near, high), both(lists, kind), strict=True))
    kept = [[[hit.chunk.id for hit in stage(one.candidates).hits] for one in cases] for stage, cases in pairs]
    assert kept[0] == kept[1]
    axes = parse_grid(f"gap_threshold=0.125:1:4,distance_offset=0.25:2:3,gap_policy={policy}", "AdaptiveGap")
    tables = [sweep(cases, Pipeline((stage,)), axes).means for stage, cases in pairs]
    assert (tables[0] == tables[1]).all()


@given(LISTS, st.sampled_from(["distance", "score", "bm25"]))
@settings(max_examples=12)
def test_the_tuned_cut_is_never_worse_than_the_best_fixed_k_on_its_own_questions(lists, kind):
    cases = both(lists, kind)[kind != "distance"]
    choice = best_of_family(cases, Pipeline((AdaptiveGap(),)), 0)
    taken = mean_of(values_of(cases, choice.taken, "SetF"))
    fixed = [mean_of(values_of(cases, Pipeline((TopK(k),)), "SetF")) for k in range(1, 10)]
    assert taken >= max(fixed) - 1e-12
    assert choice.pipeline.stages[0].score_kind == kind


PLAIN = [[(1, True), (2, True), (20, False), (21, False)], [(3, True), (18, False), (30, False)]] * 4


def test_a_threshold_chosen_on_one_kind_refuses_another_and_the_defaults_any_but_cosine():
    near, scored = both(PLAIN, "bm25")
    tuned = best_of_family(scored, Pipeline((AdaptiveGap(),)), 0).pipeline
    assert mean_of(values_of(scored, tuned, "SetF")) == 1
    with pytest.raises(SpecError, match="thresholds for bm25 on a list by distance"):
        tuned(near[0].candidates)
    with pytest.raises(SpecError, match="default thresholds, made for cosine distances, on a list of bm25 scores"):
        AdaptiveGap()(scored[0].candidates)
    assert AdaptiveGap(gap_policy="relative", relative_offset=0.5, min_results=1)(scored[0].candidates).hits
    cut = train(scored)
    assert cut.parameters["metric"] == "bm25"
    with pytest.raises(SpecError, match="trained on bm25 distances"):
        cut(near[0].candidates)
    assert mean_of(values_of(scored, Pipeline((cut,)), "SetF")) > 0.9


def test_a_promise_holds_for_scores_as_for_distances():
    near, scored = both(PLAIN * 5)
    made = [promise(cases, (), "distance_offset", 0.1).value for cases in (near, scored)]
    assert made[0] == made[1] is not None


def test_an_exported_cut_takes_scores_and_refuses_distances():
    _, scored = both(PLAIN)
    tuned = best_of_family(scored, Pipeline((AdaptiveGap(),)), 0).pipeline
    names = {"__name__": "exported", "__file__": "filter.py"}
    exec(compile(export_filter(replace(tuned, label="mine"), score="score"), "filter.py", "exec"), names)
    chunks = [{"id": hit.chunk.id, "score": hit.scores["score"]} for hit in scored[0].candidates.hits]
    kept = [hit.chunk.id for hit in tuned(scored[0].candidates).hits]
    assert [one["id"] for one in names["filter_chunks"]("a question", chunks)] == kept
    with pytest.raises((InputError, ValueError), match="expected"):
        names["filter_chunks"]("a question", [{"id": "c1", "distance": 0.1}])
