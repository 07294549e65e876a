import random

import pytest

from rag_core.compare.attribution import attribute, waterfall
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cutoff import MinSimilarity, TopK
from rag_core.filters.query_must import QueryMust
from rag_core.measure.experiment import run
from rag_core.measure.tally import measure_all
from rag_core.spec import make_stage
from rag_core.stage import Pipeline
from rag_core.types import Candidates, Case, Chunk, Hit, Metric, Query
from tests import random_pipelines as made


def case_of(distances, grades, rules=(), total=None, text="wolf"):
    query = Query("q", text)
    rules = [*rules, *[None] * len(distances)]
    hits = tuple(
        Hit(Chunk(f"c{at}", query_must=rules[at - 1]), at, {"distance": one}) for at, one in enumerate(distances, 1)
    )
    return Case(query, grades, Candidates(query, hits, metric=Metric.COSINE, recorded=True), total)


TIGER = {"contain_one_of": [["tiger"]]}

# Five candidates; c1 and c4 are relevant, a third relevant chunk was never retrieved.
#   c1 0.10 relevant · c2 0.15 irrelevant, rule · c3 0.60 irrelevant, rule · c4 0.65 relevant · c5 0.90 irrelevant
# QueryMust drops c2 and c3. TopK 3 then keeps c1, c4, c5. MinSimilarity 0.3 (distance ≤ 0.7) drops c5.
# Kept: c1 c4. SetF = 2·2/(2+3) = 0.8.
WORKED = case_of((0.10, 0.15, 0.60, 0.65, 0.90), {"c1": 1, "c2": 0, "c3": 0, "c4": 1}, (None, TIGER, TIGER), 3)
PIPELINE = Pipeline((QueryMust(), TopK(3), MinSimilarity(0.3)))


def test_the_worked_waterfall():
    found = attribute([WORKED], PIPELINE).waterfall
    assert found.steps() == [
        ("relevant", 3),
        ("retrieval", -1),
        ("QueryMust", 0),
        ("TopK", 0),
        ("MinSimilarity", 0),
        ("kept", 2),
    ]


def test_the_worked_ablations():
    rules, top, floor = attribute([WORKED], PIPELINE).stages
    # Without QueryMust: TopK keeps c1 c2 c3 (c4 falls out): SetF = 2·1/(3+3) = 1/3; the two irrelevant come back.
    assert rules.gain == pytest.approx(0.8 - 1 / 3)
    assert (rules.dropped.irrelevant, rules.unique.irrelevant, rules.unique.relevant) == (2, 2, 0)
    # Without TopK: c1 c4 c5 reach the floor, c5 falls: nothing changes; TopK dropped nothing.
    assert (top.gain, top.dropped.irrelevant) == (0, 0)
    # Without MinSimilarity: c1 c4 c5, SetF = 2·2/(3+3) = 2/3; the unjudged c5 comes back.
    assert floor.gain == pytest.approx(0.8 - 2 / 3)
    assert (floor.dropped.unjudged, floor.unique.unjudged) == (1, 1)


def test_the_worked_sum_and_what_it_leaves():
    found = attribute([WORKED], PIPELINE)
    # Unfiltered keeps all five: SetF = 2·2/(5+3) = 0.5. Together 0.8 − 0.5 = 0.3.
    assert found.unfiltered == pytest.approx(0.5)
    assert found.together == pytest.approx(0.3)
    # The ablations sum to 7/15 + 0 + 2/15 = 0.6, twice as much: leaving QueryMust out also makes TopK cut c4 off.
    # TopK harms alone and is harmless behind QueryMust; the −0.3 says so instead of hiding it.
    assert sum(stage.gain for stage in found.stages) == pytest.approx(0.6)
    assert found.shared == pytest.approx(-0.3)


def test_stages_that_do_the_same_have_no_contribution_of_their_own():
    both = Pipeline((MinSimilarity(0.3), MinSimilarity(0.31)))
    found = attribute([WORKED], both)
    assert [stage.gain for stage in found.stages] == [0, 0]
    assert found.shared == pytest.approx(found.together)
    assert [stage.stage for stage in found.stages] == ["MinSimilarity", "MinSimilarity#2"]


def test_no_scored_query_says_so():
    assert "over 0 scored queries" in attribute([case_of((0.1,), {})], Pipeline((TopK(1),))).to_text()


def test_a_waterfall_adds_up_on_random_lists():
    dice = random.Random(4)
    for seed in range(40):
        cases = made.random_cases(seed, 5)
        (tally,) = measure_all(cases, [made.random_pipeline(dice)])
        found = waterfall(tally)
        assert found.relevant - found.lost_in_retrieval - sum(found.lost.values()) == found.kept


def test_gains_are_differences_of_separate_runs():
    cases = made.random_cases(8, 12)
    stages = (QueryMust(), AdaptiveGap(min_results=0), TopK(4))
    found = attribute(cases, Pipeline(stages))
    mean = run(cases, Pipeline(stages)).summary.means["SetF"]
    for at, share in enumerate(found.stages):
        rest = Pipeline(tuple(stage for place, stage in enumerate(stages) if place != at))
        assert share.gain == pytest.approx(mean - run(cases, rest).summary.means["SetF"], abs=1e-12)


@pytest.mark.parametrize("costly", ["LLMFilter", "MultiHop"])
def test_what_stands_before_a_model_is_not_left_out(costly):
    found = attribute([WORKED], Pipeline((TopK(3), make_stage(costly, {}))))
    assert found.stages[0].gain is None
    assert "ask anew" in found.stages[0].not_tried
    assert found.stages[1].gain is not None
    assert found.shared is None
