import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.errors import SpecError
from rag_core.filters.chances import SIGNALS, chances_of, keep_by, signals
from rag_core.filters.learned_filter import LearnedFilter, asked_for, prior
from rag_core.filters.query_must import QueryMust
from rag_core.spec import dump_pipeline, parse_pipeline
from rag_core.types import Candidates, Chunk, Hit, Query

CHUNKS = [
    ("Grinders", "Clean the burrs of the E20 every month."),
    ("Boilers", "The boiler of the E10 holds one litre."),
    ("Boilers", "The boiler of the E20 holds two litres."),
    ("Water", "Use soft water."),
]
FALLS = [0.2, 0.25, 0.3, 0.6]


def model(**weights):
    """Signals as they come, with these weights and no others."""
    return {"labels": 1, "intercept": 0, "signals": {name: [0, 1, weights.get(name, 0)] for name in SIGNALS}}


def candidates(scores=FALLS, kind="distance", text="boiler of the E20"):
    hits = (
        Hit(Chunk(f"c{at}", title, body), at, {kind: score})
        for at, ((title, body), score) in enumerate(zip(CHUNKS, scores, strict=True), 1)
    )
    return Candidates(Query("q", text), tuple(hits))


def test_signals_by_hand():
    rows = [dict(zip(SIGNALS, row, strict=True)) for row in signals("boiler of the E20", CHUNKS, FALLS)]
    assert [row["words of the question"] for row in rows] == [2 / 3, 2 / 3, 1, 0]  # boiler, e, 20
    assert [row["numbers of the question"] for row in rows] == [1, 0, 1, 0]
    assert [row["title in the question"] for row in rows] == [0, 1, 1, 0]  # words are compared by six letters
    assert rows[0]["rank"] == 0
    assert rows[3]["rank"] == pytest.approx(math.log(4))
    spread = math.sqrt(sum((fall - 0.3375) ** 2 for fall in FALLS) / 4)
    assert rows[3]["score behind the first"] == pytest.approx(0.4 / spread)
    assert rows[2]["BM25 rank"] == 0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.integers(0, 8))
def test_what_is_kept_has_the_best_expected_f_of_all_sets(chances, least):
    kept, lowest = keep_by(chances, least)
    total = sum(chances)
    by_size = [sum(sorted(chances, reverse=True)[:n]) for n in range(len(chances) + 1)]
    allowed = range(max(1, min(least, len(chances))), len(chances) + 1)
    assert 2 * by_size[len(kept)] / (len(kept) + total) >= max(2 * by_size[n] / (n + total) for n in allowed) - 1e-9
    assert lowest == min(chances[at] for at in kept)


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=8), st.floats(0, 1))
def test_a_wished_recall_is_expected_to_be_reached_by_the_fewest(chances, recall):
    kept, _ = keep_by(chances, 0, recall)
    reached = sum(chances[at] for at in kept)
    assert reached >= recall * sum(chances) - 1e-9
    assert len(kept) <= 1 or reached - min(chances[at] for at in kept) < recall * sum(chances) + 1e-9


def test_a_chunk_stays_wherever_it_stands_and_the_reason_names_the_signal():
    after = LearnedFilter(model(**{"words of the question": 20, "rank": -1}))(candidates())
    assert [hit.chunk.id for hit in after.hits] == ["c1", "c2", "c3"]
    assert after.drops[0].reason.text.endswith(": words of the question -20.0, rank -0.3 behind the likeliest")


def test_scores_count_by_their_spread_so_that_the_unit_does_not_matter():
    by_score = model(score=-1)
    near = [row for row in signals("x", CHUNKS, FALLS)]
    far = [row for row in signals("x", CHUNKS, [10 * fall + 3 for fall in FALLS])]
    chances = [chances_of(rows, by_score["signals"], 0) for rows in (near, far)]
    assert chances[0] == pytest.approx(chances[1])
    stage = LearnedFilter(by_score)
    kept = [[hit.chunk.id for hit in stage(start).hits] for start in (
        candidates(), candidates([1 - fall for fall in FALLS], "score"), candidates([9 - fall for fall in FALLS], "bm25"),
    )]  # fmt: skip
    assert kept[0] == kept[1] == kept[2]


def test_expansions_pass_and_every_hit_is_accounted_for():
    start = candidates()
    extra = Hit(Chunk("x"), 9, {}, "expanded from c1")
    after = LearnedFilter(max_results=2)(Candidates(start.query, (*start.hits, extra)))
    assert {hit.chunk.id for hit in after.hits} >= {"x"}
    assert len(after.hits) + len(after.drops) == 5
    assert LearnedFilter()(Candidates(start.query)).hits == ()


RULES = [None, {"contain_one_of": [["E10"]]}, {"contain_one_of": [["E20"]]}, None]


def ruled(text="boiler of the E20"):
    start = candidates(text=text)
    hits = (
        replace(hit, chunk=replace(hit.chunk, query_must=rule)) for hit, rule in zip(start.hits, RULES, strict=True)
    )
    return QueryMust()(replace(start, hits=tuple(hits)))


@pytest.mark.parametrize(("beside", "kept"), [(0.5, ["c1", "c3"]), (0.99, ["c3"]), (None, ["c1"])])
def test_what_was_asked_for_by_name_stays_and_others_only_beside_it(beside, kept):
    stage = LearnedFilter(model(rank=-4) | {"intercept": 2.0}, beside=beside)
    after = stage(ruled())
    assert [hit.chunk.id for hit in after.hits] == kept
    for drop in after.drops[1:]:  # the first fell to its rule
        (way,) = stage.would_keep(ruled(), drop)
        assert drop.hit.key in [hit.key for hit in replace(stage, min_results=way.value)(ruled()).hits]


def test_a_rule_that_asks_nothing_of_this_question_names_nothing():
    (hit, *_) = candidates().hits
    family = {"when_named": [{"one_of": ["E10"], "among": ["E10", "E20"]}]}
    start = Candidates(Query("q", "boilers"), (replace(hit, chunk=replace(hit.chunk, query_must=family)),))
    (stays,) = QueryMust()(start).hits
    assert not asked_for(stays)
    (named,) = QueryMust()(replace(start, query=Query("q", "the E10"))).hits
    assert asked_for(named)


def test_what_would_keep_a_dropped_chunk_keeps_it():
    stage, start = LearnedFilter(), candidates()
    for drop in stage(start).drops:
        (way,) = stage.would_keep(start, drop)
        wider = LearnedFilter(min_results=way.value)
        assert drop.hit.key in [hit.key for hit in wider(start).hits]


def test_the_prior_is_of_these_signals_and_stands_in():
    assert tuple(prior()["signals"]) == SIGNALS
    assert prior()["labels"] == 0
    assert LearnedFilter()(candidates()).hits == LearnedFilter(prior())(candidates()).hits


def test_a_spec_is_plain_numbers_and_comes_back():
    pipeline = parse_pipeline([{"LearnedFilter": {"parameters": model(rank=-1.5), "recall": 0.9}}])
    assert parse_pipeline(json.loads(json.dumps(dump_pipeline(pipeline)))).stages == pipeline.stages


@pytest.mark.parametrize(
    "wrong",
    [{}, {**model(), "signals": {"rank": [0, 1, 0]}}, {**model(), "intercept": None}, {**model(), "more": 1},
     {**model(), "signals": {name: [0, 0, 1] for name in SIGNALS}}],
)  # fmt: skip
def test_parameters_that_do_not_fit_are_refused(wrong):
    with pytest.raises(SpecError, match=r"LearnedFilter\.parameters"):
        LearnedFilter(wrong)
