"""TeamFilter as a whole: cutting the structure, tokens, memory, log events, hostile queries."""

import json
import logging
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_core.entities import TeamFilter, filter_teams_for_query, load_structure
from rag_core.entities.agreement import read_labelled
from rag_core.entities.tokens import estimate_tokens
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
    assert [estimate_tokens("x" * length) for length in (0, 1, 4, 5, 8)] == [0, 1, 1, 2, 2]


def test_the_saving_counts_the_compact_json_of_both_sides():
    saving = TeamFilter(DATA).saving(["Bertil"])
    assert saving.filtered == estimate_tokens('{"Bertil": {"members": ["Quux"]}}')
    assert saving.full == estimate_tokens(json.dumps(DATA["entities"]))


def test_a_query_that_means_one_team_saves_95_percent_of_the_tokens(demo_filter, labelled):
    single = [row.query for row in labelled if len(row.teams) == 1]
    shares = [demo_filter.saving(demo_filter.extract_relevant_teams(query)).share for query in single]
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


@settings(max_examples=200, deadline=None)
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
