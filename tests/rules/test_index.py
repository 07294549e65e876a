"""The compiled index gives the answers of the plain evaluation, on random rules and queries and on known ones."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.rules.index import RuleIndex
from rag_core.rules.match import decide, forms
from rag_core.rules.rule import Rule, parse_rule
from rag_core.rules.templates import propose

VOCABULARY = "cleric clerics druid armor class classes ac acs a.c. level levels of the is 3 6 -6 16 7th and or , / . -"
QUERY_WORDS = VOCABULARY.split()
TERMS = [
    "cleric",
    "druid",
    "armor class 6",
    "armor class 3",
    "ac 6",
    "ac -6",
    "a.c. 16",
    "6",
    "level",
    "7th level",
    "of",
]
TERMS += ["class of the", "armor. class", "ac 3 6", "armor class", "levels", "level 3 cleric", "classes 3"]


def plain(rules, query):
    return [at for at, rule in enumerate(rules) if rule is None or decide(rule, query).satisfied]


def random_rule(draw):
    def terms(most):
        return [draw.choice(TERMS) for _ in range(draw.randint(1, most))]

    raw = {}
    if draw.random() < 0.7:
        raw["contain_one_of"] = [terms(3) for _ in range(draw.randint(1, 3))]
    if draw.random() < 0.2:
        raw["contain_all_of"] = terms(2)
    if draw.random() < 0.2 or not raw:
        raw["contain"] = draw.choice(TERMS)
    if draw.random() < 0.4:
        low = draw.randint(-6, 10)
        label = {"label": ["level", "armor class"]}
        total = {"sum_of": [["level"], ["ac", "armor class"]]}
        raw["number_in"] = [{**draw.choice([label, total]), "min": low, "max": low + draw.randint(0, 12)}]
    if draw.random() < 0.3:
        raw["when_named"] = [{"one_of": terms(2), "among": terms(4)} for _ in range(draw.randint(1, 2))]
        if draw.random() < 0.3:
            raw = {"when_named": raw["when_named"]}
    return parse_rule(raw, "c")


def test_index_and_plain_evaluation_agree_on_two_thousand_pairs():
    draw = random.Random(7)
    admitted = 0
    for _ in range(100):
        rules = [random_rule(draw) if draw.random() < 0.9 else None for _ in range(20)]
        query = " ".join(draw.choice(QUERY_WORDS) for _ in range(draw.randint(0, 25)))
        expected = plain(rules, query)
        index = RuleIndex(rules)
        assert np.flatnonzero(index.mask(query)).tolist() == expected, query
        admitted += len(expected)
    assert 300 < admitted < 1700  # neither answer is the rule


RULES = st.integers(0, 2**32).map(lambda seed: random_rule(random.Random(seed)))
TEXTS = st.lists(st.sampled_from(QUERY_WORDS), max_size=16).map(" ".join) | st.text(max_size=40)


@given(st.lists(st.none() | RULES, max_size=6), TEXTS)
def test_index_and_plain_evaluation_agree(rules, query):
    assert np.flatnonzero(RuleIndex(rules).mask(query)).tolist() == plain(rules, query)
    written = [rule is None or decide(rule, query, plurals=False).satisfied for rule in rules]
    assert RuleIndex(rules).mask(query, plurals=False).tolist() == written


@pytest.mark.parametrize("asked", [-10, -6, 0, 6, 10])
def test_a_query_admits_one_matrix_of_eighty_four(asked):
    titles = [f"ATTACK MATRIX FOR {name} - Armor Class {n}" for name in ("CLERICS", "THIEVES") for n in range(-10, 11)]
    rules = [propose(title).rule for title in titles]
    admitted = np.flatnonzero(RuleIndex([*rules, None]).mask(f"a cleric to hit armor class of {asked}"))
    assert admitted.tolist() == [titles.index(f"ATTACK MATRIX FOR CLERICS - Armor Class {asked}"), len(rules)]


def test_equal_rules_are_decided_once_and_chunks_without_one_admitted():
    index = RuleIndex([None, Rule(contain="x"), Rule(contain="y"), Rule(contain="x")])
    assert [index.rules[number] for number in index.satisfied_rules("x")] == [Rule(contain="x")]
    assert index.mask("x").tolist() == [True, True, False, True]


def test_an_index_of_nothing_admits_nothing():
    assert RuleIndex([]).mask("x").tolist() == []
    assert RuleIndex([None]).mask("").tolist() == [True]


@given(st.text(alphabet="aesiyxohc", min_size=1, max_size=7))
def test_two_words_are_forms_of_each_other_or_neither_is(word):
    assert forms(word)[0] == word
    assert all(word in forms(other) for other in forms(word))


@given(st.lists(st.none() | RULES, max_size=6), TEXTS)
def test_in_substring_mode_the_mask_is_the_plain_answer(rules, query):
    expected = [rule is None or decide(rule, query, "substring").satisfied for rule in rules]
    assert RuleIndex(rules).mask(query, "substring").tolist() == expected
