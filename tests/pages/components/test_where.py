"""Conditions on metadata as typed: pairs, quotes, fields given twice; and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.components.where import read_where, write_where
from rag_core.errors import InputError

words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", {}),
        ("type=spell", {"type": "spell"}),
        ("type=spell, level=3", {"type": "spell", "level": "3"}),
        ('"title=Magic Missile" type=spell', {"title": "Magic Missile", "type": "spell"}),
        ("title='Magic, Missile'", {"title": "Magic, Missile"}),
        ("level=2 level=3", {"level": ["2", "3"]}),
        ("formula=a=b", {"formula": "a=b"}),
    ],
)
def test_pairs_are_read(text, where):
    assert read_where(text) == where


@pytest.mark.parametrize("text", ["spell", "=3", "type=", "'type=spell", "type = spell"])
def test_what_is_no_pair_is_refused(text):
    with pytest.raises(InputError, match="expected field=value"):
        read_where(text)


@given(st.dictionaries(words.filter(lambda field: "=" not in field), st.lists(words, min_size=2, max_size=3)))
def test_what_is_written_reads_the_same(where):
    assert read_where(write_where(where)) == where


def test_numbers_and_truth_are_written_as_the_search_compares_them():
    assert write_where({"page": 74, "errata": True}) == "page=74 errata=true"


def test_a_value_inside_a_value_is_refused():
    with pytest.raises(InputError, match=r"where\.page"):
        write_where({"page": {"$gt": 3}})
