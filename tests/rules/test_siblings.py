"""Families of near-duplicate titles."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_core.rules.siblings import shape_of, sibling_families


def families(*titles, least=2):
    found = sibling_families(dict(enumerate(titles)), (), least)
    return {name: sorted(ids) for name, ids in found.items()}


def test_a_shape_is_the_words_with_numbers_made_alike():
    assert shape_of("Attack Matrix - AC −7, 3rd level") == ("attack", "matrix", "ac", "#", "#", "level")


def test_titles_that_differ_in_numbers_are_siblings_named_by_their_shape():
    assert families("Saving throws, level 1", "Saving throws, level 12", "The Fighter") == {
        "saving throws level #": [0, 1]
    }


def test_titles_that_differ_in_one_word_of_four_are_siblings():
    assert list(families("Spells of the cleric", "Spells of the druid", "Spells for a monk").values()) == [[0, 1]]


def test_titles_that_differ_in_one_word_of_three_are_not():
    assert families("The Fighter class", "The Cleric class") == {}


@pytest.mark.parametrize("mark", [" - ", " – ", ": "])
def test_titles_that_share_what_stands_before_a_dash_or_colon_are_siblings(mark):
    found = families(f"Random Encounters{mark}Hills", f"Random Encounters{mark}Deep dark forest", "Other things")
    assert found == {"random encounters …": [0, 1]}


def test_titles_of_one_template_are_siblings_however_they_are_worded():
    titles = {"a": "Attack matrix for thieves: armor class 3", "b": "Combat table (thief), opponent AC: 5"}
    assert sibling_families(titles) != {}
    assert sibling_families(titles, ()) == {}


def test_families_come_largest_first_and_small_ones_are_left_out():
    titles = [
        "Level 1 of magic",
        "Level 2 of magic",
        "Tier 1 of psionic art",
        "Tier 2 of psionic art",
        "Tier 3 of psionic art",
    ]
    assert [len(ids) for ids in families(*titles).values()] == [3, 2]
    assert len(families(*titles, least=3)) == 1


def test_titles_without_a_word_have_no_siblings():
    assert families("", "", "...", "!") == {}


@settings(deadline=None)  # a file, or a template, tried on a busy machine
@given(st.dictionaries(st.text(max_size=4), st.text("ab 1-:", max_size=12), max_size=12))
def test_a_chunk_belongs_to_one_family_at_most(titles):
    ids = [identity for family in sibling_families(titles, ()).values() for identity in family]
    assert len(set(ids)) == len(ids)
    assert set(ids) <= set(titles)
