"""Lint: each kind of doubtful name is found, and what is fine is left alone."""

import pytest

from rag_core.entities import parse_structure
from rag_core.entities.lint import lint_structure


def findings(entities, **top):
    found = lint_structure(parse_structure({"entities": entities, **top}))
    return [(finding.kind, finding.name) for finding in found]


def test_a_sound_structure_has_no_findings():
    assert findings({"Aaron": {"members": ["Zorgon Gunner"], "abilities": ["Combat Doctrine"]}}) == []


def test_an_alias_that_is_another_alias_of_other_teams_collides():
    entities = {
        "Aaron": {"members": ["Zorgon"], "aliases": ["gaffer"]},
        "Bertil": {"members": ["Quuxo"], "aliases": ["Gaffers"]},
    }
    assert findings(entities) == [("alias_collision", "Gaffers")]


def test_an_alias_that_is_another_entitys_name_or_item_collides():
    entities = {"Aaron": {"members": ["Zorgon"], "aliases": ["bertil", "quuxo"]}, "Bertil": {"members": ["Quuxo"]}}
    assert findings(entities) == [("alias_collision", "bertil"), ("alias_collision", "quuxo")]


def test_an_alias_that_says_the_same_teams_twice_is_fine():
    assert findings({"Aaron": {"members": ["Zorgon"], "aliases": ["zorgon"]}}) == []


def test_names_so_alike_that_a_misspelling_confuses_them_are_found():
    entities = {"Drakkori": {"members": ["Zorgon"]}, "Drakkoru": {"members": ["Quuxo"]}}
    assert findings(entities) == [("close_names", "drakkori")]


@pytest.mark.parametrize(("owners", "found"), [(3, []), (4, [("too_many", "Blinkk")])])
def test_an_item_of_too_many_entities_tells_little(owners, found):
    names = ["Vorpax", "Zindle", "Quorumten", "Hastrub", "Mellifex", "Oddgar"]
    entities = {
        name: {"members": [f"M{name}"], "abilities": ["Blinkk"] if i < owners else []} for i, name in enumerate(names)
    }
    assert findings(entities) == found


def test_names_of_stop_words_are_found():
    assert findings({"Aaron": {"members": ["The Other"], "abilities": ["Once More"]}}) == [
        ("stop_words_only", "The Other"),
        ("stop_words_only", "Once More"),
    ]


def test_a_member_that_is_a_role_word_is_found():
    assert findings({"Aaron": {"members": ["Gunner"]}}) == [("role_word_only", "Gunner")]


def test_a_name_too_short_to_be_found_is_found():
    assert findings({"Aaron": {"members": ["Nob"]}}) == [("too_short", "Nob")]


def test_an_ordinary_word_that_sets_off_an_item_alone_is_found():
    entities = {"Aaron": {"members": ["Burna Boy", "Window Gunner"], "abilities": ["Window"]}}
    assert findings(entities) == [("ordinary_word", "Burna Boy"), ("ordinary_word", "Window")]


def test_the_demo_has_one_finding(demo):
    assert [(finding.kind, finding.name) for finding in lint_structure(demo)] == [("ordinary_word", "Burna Boy")]


def test_ordinary_words_are_one_finding_where_they_are_many():
    entities = {"Aaron": {"members": ["Nob", "Window", "Garden", "Bottle", "Carpet"]}}
    assert findings(entities) == [("too_short", "Nob"), ("ordinary_word", "Window")]
