"""TeamFilter as a whole: cutting the structure, tokens, memory, log events, hostile queries."""

import logging
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.entities import TeamFilter, filter_teams_for_query, load_structure
from rag_core.entities.agreement import read_labelled
from rag_core.entities.filter import structure_tokens
from rag_core.entities.structure import structure_from_text, structure_text
from rag_core.errors import InputError

DATA = {
    "entities": {"Aaron": {"members": ["Zorg"], "abilities": {"rules": ["Blink"]}}, "Bertil": {"members": ["Quux"]}}
}


def test_the_filtered_structure_is_the_entities_as_given():
    assert filter_teams_for_query("what can zorg do", DATA) == {"Aaron": DATA["entities"]["Aaron"]}


def test_the_full_structure_is_kept_for_a_query_that_names_nothing():
    assert filter_teams_for_query("hello", DATA) == DATA["entities"]


def test_changing_the_filtered_structure_leaves_the_filter_alone():
    team_filter = TeamFilter(DATA)
    team_filter.filter_structure(["Aaron"])["Aaron"]["members"].append("Ghost")
    assert team_filter.filter_structure(["Aaron"])["Aaron"]["members"] == ["Zorg"]


def test_filtering_for_an_unknown_team_is_refused():
    with pytest.raises(InputError, match="there is no entity 'Nobody' in the structure"):
        TeamFilter(DATA).filter_structure(["Nobody"])


def test_the_teams_are_sorted(demo_filter):
    found = demo_filter.extract_relevant_teams("thornpack, skytalons and capwalkers")
    assert found == ["Capwalkers", "Skytalons", "Thornpack"]


def test_tokens_are_characters_by_four_rounded_up():
    assert [structure_tokens({"x" * length: 1}) for length in (0, 1, 2, 6)] == [2, 2, 3, 4]


def test_the_saving_counts_the_compact_json_of_both_sides():
    saving = TeamFilter(DATA).part(["Bertil"])
    assert saving.tokens == structure_tokens({"Bertil": {"members": ["Quux"]}})
    assert saving.full == structure_tokens(DATA["entities"])


def test_a_query_that_means_one_team_saves_95_percent_of_the_tokens(demo_filter, labelled):
    single = [row.query for row in labelled if len(row.teams) == 1]
    shares = [demo_filter.part(demo_filter.extract_relevant_teams(query)).share for query in single]
    assert len(single) >= 30
    assert median(shares) >= 0.95


def test_a_query_asked_again_is_remembered(demo_filter):
    assert demo_filter.explain("deathwach again") is demo_filter.explain("deathwach again")


def test_building_and_asking_are_logged_without_the_query(caplog):
    with caplog.at_level(logging.INFO, logger="rag_core.entities"):
        TeamFilter(DATA).extract_relevant_teams("secret zorg")
    built, asked = caplog.records
    assert (built.message, built.entities, built.items) == ("team_filter_initialized", 2, 3)
    assert (asked.message, asked.teams, asked.matches) == ("teams_extracted", ("Aaron",), 1)
    assert "secret" not in str([vars(record) for record in caplog.records])


HOSTILE = [
    "",
    " \t\n",
    "x" * 10_000,
    "orkz " * 2_000,
    "deathwach kasrkinz " * 500,
    "\x00kommandos\x00",
    "🦑🔥👩‍👩‍👧‍👦",
    "\u202ekommandos\u202c",
    "שלום עולם orks",
    "مرحبا",
    "\ud800 lone",
    "ﬁ ﬀ Ω ﷺ",
    "e\u0301" * 500,
    "'; DROP TABLE teams; --",
    "{{7*7}} ${x} <script>",
    "(a+)+$" * 100,
    "....----,,,,;;;;",
    "1234567890 " * 100,
    "ere\u00a0we\u2003go",
]


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_query_gives_a_sorted_list_of_teams(demo_filter, query):
    found = demo_filter.extract_relevant_teams(query)
    assert found == sorted(set(found) & set(demo_filter.teams))


def test_a_name_is_found_between_hostile_characters(demo_filter):
    assert demo_filter.extract_relevant_teams("\x00kommandos\x00 🔥") == ["Kommandos"]
    assert demo_filter.extract_relevant_teams("\u202ekommandos\u202c") == ["Kommandos"]
    assert demo_filter.extract_relevant_teams("ＫＯＭＭＡＮＤＯＳ") == ["Kommandos"]


@given(query=st.text(max_size=200))
def test_no_text_makes_a_query_fail(demo_filter, query):
    assert set(demo_filter.extract_relevant_teams(query)) <= set(demo_filter.teams)


@pytest.mark.parametrize("query", [None, 7, b"orks", ["orks"]])
def test_a_query_that_is_no_text_is_refused(demo_filter, query):
    with pytest.raises(InputError, match="expected text"):
        demo_filter.explain(query)


@pytest.fixture(scope="module")
def labelled():
    from pathlib import Path

    return read_labelled(Path(__file__).parents[2] / "eval_sets/skirmish-entities/queries.jsonl")


def test_the_demo_is_loaded_when_no_file_is_named():
    assert load_structure().name == "skirmish demo"


def test_a_budget_sends_whole_entities_and_says_how_many(demo_filter):
    part = demo_filter.part([], budget=1_000)
    assert part.tokens <= 1_000 < part.full
    assert 0 < len(part.entities) < 48
    assert all(demo_filter.filter_structure([name])[name] == data for name, data in part.entities.items())
    assert part.to_text().startswith(f"{len(part.entities)} of 48 entities sent")
    assert "names none" in part.to_text()
    assert "names none" not in demo_filter.part(["Kasrkin"], budget=1_000).to_text()
    assert demo_filter.part(["Kasrkin"], budget=1).entities == {}


def test_a_longer_name_takes_the_words_inside_it_from_other_teams_only():
    found = TeamFilter(
        {
            "entities": {"Angels Of Death": {"members": ["Zorg"]}, "Death Korps": {"members": ["Quux"]}},
            "aliases": {"death": ["Death Korps"]},
        }
    )
    explained = found.explain("angels of death in cover")
    assert explained.teams == ("Angels Of Death",)
    assert [match.team for match in explained.inside] == ["Death Korps"]
    assert found.extract_relevant_teams("angels of death, then death again") == ["Angels Of Death", "Death Korps"]


def test_a_role_is_found_by_its_synonym_where_the_rest_of_the_name_stands_beside_it():
    entities = {"Aaron": {"members": ["Zorgon Medic", "Mirax Gunner"]}, "Bertil": {"members": ["Mirax Healer"]}}
    found = TeamFilter({"entities": entities, "synonyms": {"cannoneer": "gunner"}})
    assert found.extract_relevant_teams("the Zorgon healers") == ["Aaron"]
    assert found.extract_relevant_teams("a mirax cannoneer") == ["Aaron"]
    assert found.extract_relevant_teams("a mirax healer") == ["Bertil"]
    assert found.extract_relevant_teams("healer or cannoneer") == []


def test_the_designs_own_form_is_read_and_sent_as_it_was_given():
    bare = {
        "Kommandos": {
            "operatives": ["Boy", {"name": "Burna Boy", "wounds": 10}],
            "ploys": [{"name": "Ere We Go", "text": "…"}],
            "equipment": {"Stikkbombs": {"cost": 2}},
            "faction": "green",
            "sizes": [32, 40],
        },
        "Kasrkin": {"operatives": {"Kasrkin Trooper": {"wounds": 8}}},
    }
    found = TeamFilter(bare)
    assert found.extract_relevant_teams("who throws stikkbombs?") == ["Kommandos"]
    assert found.extract_relevant_teams("a burna boy, ere we go") == ["Kommandos"]
    assert found.filter_structure(["Kommandos"]) == {"Kommandos": bare["Kommandos"]}
    assert structure_from_text(structure_text(found.structure)) == found.structure
