"""ExpandReferences: what the list refers to is added once, with its origin; the walk itself is tested with the filter."""

import dataclasses

import pytest

from rag_core.errors import SpecError
from rag_core.filters.cutoff import TopK
from rag_core.retrieve.expand import ExpandReferences
from rag_core.spec import make_stage, parse_pipeline
from rag_core.types import Candidates, Chunk, Hit, Query

CHUNKS = {
    "a": Chunk("a", ref_ids=("b", "c")),
    "b": Chunk("b", ref_ids=("d",)),
    "c": Chunk("c", ref_ids=("a", "gone")),
    "d": Chunk("d", ref_ids=("a",)),
}


def a_list(*names):
    hits = tuple(Hit(CHUNKS[name], rank, {"distance": rank / 10}) for rank, name in enumerate(names, 1))
    return Candidates(Query("q", "?"), hits)


def expanded(candidates, **settings):
    return dataclasses.replace(ExpandReferences(**settings), chunks=CHUNKS)(candidates)


def told(after):
    return [(hit.chunk.id, hit.origin) for hit in after.hits]


def test_direct_references_come_behind_the_hits_with_their_origin():
    after = expanded(a_list("a"))
    assert told(after) == [("a", ""), ("b", "expanded from a, 1 step"), ("c", "expanded from a, 1 step")]
    assert after.steps[-1].facts == {"added": 2, "references_missing": 0}


def test_further_steps_go_on_from_what_was_found_and_cycles_end():
    after = expanded(a_list("a"), depth=5)
    assert told(after)[3:] == [("d", "expanded from a, 2 steps")]
    assert "1 referenced chunks were not found" in after.notices[0].text


def test_a_hit_is_never_brought_a_second_time():
    assert [hit.chunk.id for hit in expanded(a_list("a", "b"), depth=1).hits] == ["a", "b", "c", "d"]


def test_the_cap_holds_and_depth_0_adds_nothing():
    assert [hit.chunk.id for hit in expanded(a_list("a"), depth=5, max_added=1).hits] == ["a", "b"]
    assert len(expanded(a_list("a"), depth=0).hits) == 1


def test_a_chunk_that_was_dropped_before_comes_back_with_its_rank_and_scores():
    after = expanded(TopK(k=1)(a_list("a", "b")))
    back = next(hit for hit in after.hits if hit.chunk.id == "b")
    assert (back.rank, back.distance, back.origin) == (2, 0.2, "expanded from a, 1 step")
    assert [drop.hit.key for drop in after.drops] == [("b", "")]


def test_without_a_look_up_the_list_itself_is_one():
    after = ExpandReferences()(TopK(k=1)(a_list("a", "b")))
    assert [hit.chunk.id for hit in after.hits] == ["a", "b"]


def test_it_stands_in_a_pipeline_spec():
    pipeline = parse_pipeline([{"TopK": {"k": 1}}, {"ExpandReferences": {"depth": 3}}])
    assert pipeline.stages[1] == ExpandReferences(depth=3)


@pytest.mark.parametrize("settings", [{"depth": -1}, {"max_added": -1}, {"depth": 1.5}])
def test_a_setting_out_of_range_is_refused(settings):
    with pytest.raises(SpecError):
        make_stage("ExpandReferences", settings)
