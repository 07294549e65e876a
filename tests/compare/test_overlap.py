import random
from dataclasses import replace

from rag_core.compare.overlap import differences, jaccard
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cutoff import TopK
from rag_core.measure.experiment import kept_ids, run_all
from rag_core.measure.tally import labels_of
from rag_core.stage import Pipeline, flatten
from rag_core.types import Candidates, Case, Chunk, Hit, Query
from tests import random_pipelines as made

DISTANCES = (0.1, 0.12, 0.15, 0.4, 0.41)


def outcomes(*stages):
    query = Query("q", "question")
    hits = tuple(Hit(Chunk(f"c{at}", f"t{at}"), at, {"distance": one}) for at, one in enumerate(DISTANCES, 1))
    case = Case(query, {"c1": 1, "c4": 0}, Candidates(query, hits, recorded=True))
    return [report.outcomes[0] for report in run_all([case], [Pipeline(one) for one in stages])]


def replays(found, lacks):
    """Whether running the lacking pipeline again takes the chunk out at that stage for that reason.

    Where a setting of that stage would have kept it, the stage with that setting must keep it too. A chunk that was not
    brought must be in no list of that pipeline.
    """
    before = lacks.start
    for label, stage in zip(labels_of(lacks.pipeline), flatten(lacks.pipeline), strict=True):
        after = stage.again(before)
        gone = [drop for drop in after.drops[len(before.drops) :] if drop.hit.chunk.id == found.chunk_id]
        if gone and label == found.stage and gone[-1].reason.text == found.reason:
            settings = stage.settings()
            tried = [one for one in found.would_keep if one.parameter in settings and one.value is not None]
            return all(
                found.chunk_id in kept_ids(replace(stage, **{one.parameter: one.value}).again(before)) for one in tried
            )
        before = after
    seen = {hit.chunk.id for hit in before.hits} | {drop.hit.chunk.id for drop in before.drops}
    return found.rank is None and found.chunk_id not in seen


# ---------------------------------------------------------------- sets and places


def test_jaccard_by_hand():
    assert jaccard("abc", "bcd") == 0.5
    assert jaccard("", "") == 1
    assert jaccard("a", "") == 0


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
