"""Pooling: each content once, blind and repeatable; near-duplicates; Judged@k counted by hand."""

import pytest

from rag_core.errors import InputError
from rag_core.filters.cutoff import TopK
from rag_core.labelling.pooling import near_duplicates, pool
from rag_core.measure.experiment import run_all
from rag_core.stage import Pipeline
from rag_core.types import Candidates, Case, Chunk, Hit, Query

LONG = (
    "the knight of the northern keep rides out at dawn with two squires and returns before the feast of lights begins"
)


def case(query_id, texts, grades=None):
    hits = tuple(Hit(Chunk(f"{query_id}-{i}", text=text), i, {"distance": i / 10}) for i, text in enumerate(texts, 1))
    query = Query(query_id, f"question {query_id}")
    return Case(query, grades or {}, Candidates(query, hits, recorded=True))


def reports(cases, *cuts):
    return run_all(cases, [Pipeline((TopK(k=k),), label=f"top{k}") for k in cuts])


def contents(pairs):
    return [(pair.query.id, pair.chunk.text) for pair in pairs]


def test_the_union_holds_what_any_pipeline_kept_and_says_who_brought_it():
    pairs = pool(reports([case("q", "abcd")], 2, 3))
    assert sorted(contents(pairs)) == [("q", "a"), ("q", "b"), ("q", "c")]
    assert {pair.chunk.text: dict(pair.places) for pair in pairs} == {
        "a": {"top2": 1, "top3": 1}, "b": {"top2": 2, "top3": 2}, "c": {"top3": 3},
    }  # fmt: skip


def test_depth_cuts_each_pipeline():
    assert len(pool(reports([case("q", "abcd")], 4), depth=2)) == 2


def test_equal_content_is_one_pair_with_the_least_distance():
    (pair,) = pool(reports([case("q", ["Armour  Class", "armour class"])], 5))
    assert [chunk.id for chunk in pair.chunks] == ["q-1", "q-2"]
    assert pair.distance == 0.1


def test_chunks_without_text_are_told_apart_by_id():
    assert len(pool(reports([case("q", ["", ""])], 5))) == 2


def test_the_order_depends_on_the_seed_and_not_on_the_pipelines_order():
    cases = [case(f"q{i}", [f"{i} {letter}" for letter in "abcdefgh"]) for i in range(6)]
    first = contents(pool(reports(cases, 5, 8)))
    assert first == contents(pool(reports(cases, 8, 5)))
    assert first != contents(pool(reports(cases, 5, 8), seed=1))


def test_a_querys_pairs_stay_together_and_are_not_in_rank_order():
    cases = [case(f"q{i}", [f"{i} {letter}" for letter in "abcdefgh"]) for i in range(6)]
    pairs = pool(reports(cases, 8))
    runs = [
        pair.query.id for place, pair in enumerate(pairs) if not place or pairs[place - 1].query.id != pair.query.id
    ]
    assert sorted(runs) == [f"q{i}" for i in range(6)]
    assert any(
        [pair.places["top8"] for pair in pairs if pair.query.id == f"q{i}"] != list(range(1, 9)) for i in range(6)
    )


def test_near_duplicates_are_grouped_and_texts_with_another_number_are_not():
    assert near_duplicates([LONG, f"{LONG}!", "something else"]) == [[0, 1], [2]]
    assert near_duplicates([f"{LONG} 6", f"{LONG} 7"]) == [[0], [1]]
    assert near_duplicates(["", ""]) == [[0], [1]]


def test_near_duplicates_become_one_pair_only_on_request():
    cases = [case("q", [LONG, f"{LONG}!", "other words here"])]
    assert len(pool(reports(cases, 5))) == 3
    assert sorted(len(pair.chunks) for pair in pool(reports(cases, 5), near=0.9)) == [1, 2]


def test_nothing_to_pool_is_refused():
    with pytest.raises(InputError, match="expected at least one"):
        pool([])
