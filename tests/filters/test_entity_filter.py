from functools import cache

import pytest

from rag_core.entities import TeamFilter, load_structure
from rag_core.errors import SpecError
from rag_core.filters.entity import EntityFilter
from rag_core.spec import build, dump_stages, parse_pipeline
from rag_core.stage import counterfactuals
from rag_core.types import Candidates, Chunk, Hit, Query


@cache
def demo():
    return TeamFilter(load_structure())


def listed(query, *teams):
    """A list with one hit per value of the metadata key team; None has no such key."""
    hits = tuple(
        Hit(Chunk(f"c{rank}", metadata={} if team is None else {"team": team}), rank, {"distance": rank / 10})
        for rank, team in enumerate(teams, 1)
    )
    return Candidates(Query("q", query), hits, recorded=True)


def stage(**settings):
    return EntityFilter(**settings, entities=demo())


def kept(after):
    return [hit.chunk.id for hit in after.hits]


def test_chunks_of_entities_the_query_does_not_name_are_dropped_with_the_reason():
    after = stage()(listed("deathwach kill zone", "Deathwatch", "Kasrkin"))
    assert kept(after) == ["c1"]
    assert after.drops[0].reason.text == "belongs to Kasrkin, which the query does not name: it means Deathwatch"


def test_the_step_says_which_teams_were_meant():
    step = stage()(listed("orks", "Kommandos", "Kasrkin")).steps[0]
    assert (step.facts["teams"], step.facts["would_drop"]) == (("Kommandos", "Wrecka Krew"), 1)


def test_chunks_of_no_entity_stay():
    assert kept(stage()(listed("deathwatch", None, "", 7))) == ["c1", "c2", "c3"]


def test_a_chunk_of_several_entities_stays_for_one_that_is_meant():
    assert kept(stage()(listed("deathwatch", ["Kasrkin", "Deathwatch"], ["Kasrkin", "Kommandos"]))) == ["c1"]


def test_a_value_the_structure_does_not_have_stays_with_a_warning():
    after = stage()(listed("deathwatch", "Nobody"))
    assert kept(after) == ["c1"]
    assert [(notice.chunk_id, "'nobody'" in notice.text) for notice in after.notices] == [("c1", True)]


def test_values_compare_without_case():
    assert kept(stage()(listed("deathwatch", "DEATHWATCH", "kasrkin"))) == ["c1"]


def test_another_metadata_key_can_name_the_entity():
    chunk = Chunk("c1", metadata={"faction": "Kasrkin"})
    before = Candidates(Query("q", "deathwatch"), (Hit(chunk, 1, {"distance": 0.1}),))
    assert kept(stage()(before)) == ["c1"]
    assert kept(stage(field="faction")(before)) == []


@pytest.mark.parametrize(("on_none", "left"), [("keep", ["c1", "c2"]), ("drop", ["c2"])])
def test_on_none_says_what_becomes_of_entities_chunks_where_the_query_names_none(on_none, left):
    assert kept(stage(on_none=on_none)(listed("how overwatch works", "Kasrkin", None))) == left


def test_marking_keeps_the_chunk_and_writes_the_reason_on_it():
    after = stage(action="mark")(listed("deathwatch", "Deathwatch", "Kasrkin"))
    assert kept(after) == ["c1", "c2"]
    assert [dict(hit.notes) for hit in after.hits] == [
        {},
        {"EntityFilter": "belongs to Kasrkin, which the query does not name: it means Deathwatch"},
    ]
    assert after.steps[0].facts["would_drop"] == 1


def test_the_threshold_is_a_setting_of_the_stage():
    before = listed("deathwach or kasrkin", "Deathwatch")
    assert kept(stage(threshold=80)(before)) == ["c1"]
    assert kept(stage(threshold=96)(before)) == []


def by_name(found):
    return {one.parameter: one.value for one in found}


def test_counterfactuals_name_marking_and_the_threshold_that_would_find_the_team():
    before = listed("deathwach or kasrkin", "Deathwatch", "Kommandos")
    found = counterfactuals(stage(threshold=96), before)
    assert by_name(found["c1", ""]) == {"action": "mark", "threshold": 94.7}
    assert by_name(found["c2", ""]) == {"action": "mark", "threshold": None}


def test_on_none_is_a_counterfactual_where_the_query_names_no_entity():
    found = counterfactuals(stage(on_none="drop"), listed("how overwatch works", "Kasrkin"))
    assert by_name(found["c1", ""])["on_none"] == "keep"


@pytest.mark.parametrize(
    "query", ["deathwach", "nemisis klaw", "stormlnce brothrs", "kommandz", "orks and kasrkinz", "hello"]
)
def test_every_counterfactual_value_really_keeps_the_chunk(query):
    strict = stage(threshold=99, on_none="drop")
    before = listed(query, *demo().teams)
    for (chunk, _), found in counterfactuals(strict, before).items():
        for one in found:
            if one.value is not None:
                changed = EntityFilter(**{**strict.settings(), one.parameter: one.value}, entities=demo())
                assert chunk in kept(changed(before)), one


def test_the_nearest_threshold_is_the_highest_that_works():
    before = listed("nemisis klaw", "Nemesis Claw")
    (found,) = counterfactuals(stage(threshold=99, on_none="drop"), before).values()
    value = by_name(found)["threshold"]
    assert kept(stage(threshold=round(value + 0.1, 1), on_none="drop")(before)) == []


def test_every_hit_is_kept_or_dropped_once():
    before = listed("orks", *demo().teams, None, "Nobody")
    after = stage()(before)
    assert sorted([*kept(after), *(drop.hit.chunk.id for drop in after.drops)]) == sorted(kept(before))


def test_the_structure_is_injected_by_name_and_is_no_part_of_the_spec():
    pipeline = build(parse_pipeline([{"EntityFilter": {"field": "team", "on_none": "keep"}}]), {"entities": demo()})
    assert kept(pipeline(listed("deathwatch", "Kasrkin"))) == []
    assert dump_stages(pipeline) == [
        {"EntityFilter": {"field": "team", "on_none": "keep", "action": "drop", "threshold": 80.0}}
    ]


def test_without_a_structure_the_stage_says_what_it_needs():
    with pytest.raises(SpecError, match="EntityFilter has no structure"):
        EntityFilter()(listed("deathwatch", "Kasrkin"))


@pytest.mark.parametrize("settings", [{"on_none": "maybe"}, {"action": "hide"}, {"threshold": 101}, {"field": 3}])
def test_a_setting_out_of_range_is_refused(settings):
    with pytest.raises(SpecError):
        EntityFilter(**settings)
