"""Aliases suggested from past queries."""

from rag_core.entities import TeamFilter
from rag_core.entities.agreement import Suggestion, suggest_aliases

FILTER = TeamFilter({"entities": {"Aaron": {"members": ["Zorgon"]}, "Bertil": {"members": ["Quuxo"]}}})


def test_an_unknown_word_that_keeps_meaning_the_same_team_is_suggested():
    past = [("the gaffa shoots", ["Bertil"]), ("Gaffa again", ["Bertil"]), ("weather", [])]
    assert suggest_aliases(FILTER, past) == [Suggestion("gaffa", ("Bertil",), 2, 1.0)]


def test_a_word_seen_once_is_not_suggested():
    assert suggest_aliases(FILTER, [("the gaffa shoots", ["Bertil"])]) == []


def test_ordinary_and_known_words_are_not_suggested():
    assert suggest_aliases(FILTER, [("zorgon shoots windows", ["Bertil"])] * 3) == []


def test_a_word_that_means_now_this_now_that_is_not_suggested():
    past = [("gaffa", ["Aaron"]), ("gaffa", ["Bertil"]), ("gaffa", ["Aaron"]), ("gaffa", [])]
    assert suggest_aliases(FILTER, past) == []
    assert suggest_aliases(FILTER, past, least_share=0.5) == [Suggestion("gaffa", ("Aaron",), 2, 0.5)]


def test_a_word_said_twice_in_a_query_counts_once():
    assert suggest_aliases(FILTER, [("gaffa gaffa", ["Bertil"])]) == []
