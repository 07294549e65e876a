from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.errors import InputError
from rag_core.measure.measures import DEFAULT_MEASURES, FAMILIES, parse_measure

GOOD = [
    "SetP",
    "SetR",
    "SetF",
    "SetF2",
    "SetF0.5",
    "P@1",
    "P@15",
    "R@10",
    "RR",
    "RR@5",
    "AP",
    "AP@100",
    "nDCG",
    "nDCG@10",
]

BAD = """f1 setp P R P@ P@0 P@-1 P@1.5 P@five P@5@5 P@٣ SetP@5 SetF@5 SetF0 SetF-1 SetFx SetF1e3 SetF. SetF1.2.3 SetFinf SetFnan
SetF² nDCG@ NDCG@10"""


@pytest.mark.parametrize("name", GOOD)
def test_a_measure_shows_the_name_that_was_typed(name):
    assert repr(parse_measure(name)) == name


def test_measures_of_one_name_are_equal_and_hash_alike():
    assert {parse_measure("nDCG@10"), parse_measure("nDCG@10")} == {parse_measure("nDCG@10")}


def test_cutoff_and_beta_are_read_from_the_name():
    assert (parse_measure("P@5").cutoff, parse_measure("SetF0.5").beta, parse_measure("SetF").beta) == (5, 0.5, 1.0)


@pytest.mark.parametrize(
    "name",
    ["", " SetP", *BAD.split()],
)
def test_an_unknown_name_is_refused_with_a_list_of_what_exists(name):
    with pytest.raises(InputError) as caught:
        parse_measure(name)
    assert all(family in str(caught.value) for family in FAMILIES)
    assert repr(name) in str(caught.value)


@given(st.text(max_size=12))
def test_any_text_is_a_measure_or_an_input_error(name):
    with suppress(InputError):
        assert repr(parse_measure(name)) == name


def test_the_default_measures_lead_with_the_set_measures():
    assert [measure.name for measure in DEFAULT_MEASURES[:3]] == ["SetP", "SetR", "SetF"]


def test_denominators_say_what_a_value_is_a_share_of():
    names = ["SetP", "SetR", "P@5", "R@5", "SetF", "RR"]
    assert [parse_measure(name).denominator(3, 8) for name in names] == [3, 8, 5, 8, None, None]
