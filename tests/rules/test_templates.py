"""Templates: the shipped families write the known rules; a template file that cannot work is refused when read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.errors import InputError, RuleError
from rag_core.rules.match import decide
from rag_core.rules.rule import parse_rule
from rag_core.rules.templates import parse_families, propose, shipped_families

CLERICS = ["cleric", "clerics", "druid", "druids", "monk", "monks"]
MAGIC_USERS = ["magic-user", "magic-users", "magic user", "magic users", "illusionist", "illusionists"]
PEOPLE = "fighter paladin ranger bard halfling human"
FIGHTERS = [word for name in PEOPLE.split() for word in (name, name + "s")]
THIEVES = ["thief", "thieves", "assassin", "assassins"]


def armor_class(n):
    return [f"armor class {n}", f"ac {n}", f"a.c. {n}"]


@pytest.mark.parametrize(
    ("title", "groups"),
    [
        ("I.A. ATTACK MATRIX FOR CLERICS, DRUIDS AND MONKS - Opponent Armor 7", [CLERICS, armor_class(7)]),
        ("I.A. ATTACK MATRIX FOR CLERICS, DRUIDS AND MONKS - Opponent Armor -7", [CLERICS, armor_class(-7)]),
        ("I.A. ATTACK MATRIX FOR CLERICS, DRUIDS AND MONKS - Opponent Armor −10", [CLERICS, armor_class(-10)]),
        (
            "I.C. ATTACK MATRIX FOR MAGIC-USERS AND ILLUSIONISTS - Opponent Armor Class 4",
            [MAGIC_USERS, armor_class(4)],
        ),
        ("I.B. ATTACK MATRIX FOR FIGHTERS, PALADINS, RANGERS, BARDS, AND 0 LEVEL HALFLINGS AND HUMANS*", [FIGHTERS]),
        ("I.D. ATTACK MATRIX FOR THIEVES AND ASSASSINS - Opponent Armor Class 0", [THIEVES, armor_class(0)]),
    ],
)
def test_combat_matrices_write_their_rule(title, groups):
    assert propose(title).rule == parse_rule({"contain_one_of": groups}, title)


@pytest.mark.parametrize(
    "title",
    [
        "Opponent Armor Class Description (If Armor is Worn):",
        "FIGHTERS', PALADINS', & RANGERS' ATTACKS PER MELEE ROUND TABLE",
        "Using The Combat Tables:",
        "PROTECTIVE ITEMS TABLE Character Class Paladin",
        "The Fighter",
        "Psionic Combat",
        "Psionic Attacks on Ordinary Minds",
        "Encounter Distance",
        "Using the Encounter Tables",
        "",
    ],
)
def test_other_titles_get_no_rule(title):
    assert propose(title) is None


@pytest.mark.parametrize(
    ("title", "number"),
    [
        ("Total Intelligence and Wisdom 10-13", {"min": 10, "max": 13}),
        ("Total Intelligence and Wisdom 10–13", {"min": 10, "max": 13}),
        ("Int + Wis 10 to 13", {"min": 10, "max": 13}),
        ("Intelligence and Wisdom 36 and above", {"min": 36}),
        ("Intelligence & Wisdom 38+", {"min": 38}),
        ("Intelligence and Wisdom 5 or less", {"max": 5}),
        ("Intelligence and Wisdom 14", {"min": 14, "max": 14}),
    ],
)
def test_psionic_tables_ask_for_the_sum_of_intelligence_and_wisdom(title, number):
    found = propose(f"PSIONIC BLAST ATTACK UPON NON-PSIONIC CREATURE - {title} - Short Range").rule.as_mapping()
    assert found["number_in"] == [{"sum_of": [["intelligence", "int"], ["wisdom", "wis"]], **number}]
    assert found["contain_one_of"][1] == ["short range", "range short"]


def test_a_psionic_table_by_one_score_asks_for_that_score():
    found = propose("Psionic attack table - Intelligence 8-11").rule.as_mapping()
    assert found["number_in"] == [{"label": ["intelligence", "int"], "min": 8, "max": 11}]
    assert found["contain_one_of"] == [["psionic", "psionics", "psionic blast", "psychic"]]


def test_an_encounter_table_asks_for_terrain_and_kind_of_creature():
    rule = propose("ENCOUNTER TABLE - Faerie and Sylvan Settings - Forest").rule
    assert decide(rule, "Which fairies may we meet in the woods?").satisfied
    assert not decide(rule, "Which fairies may we meet in the hills?").satisfied
    assert not decide(rule, "What may we meet in the woods?").satisfied


def test_an_encounter_table_of_one_terrain_asks_for_that_alone():
    rule = propose("Encounter Table: Mountains").rule
    assert len(rule.contain_one_of) == 1
    assert decide(rule, "What lives in mountainous country?").satisfied


def test_the_rule_of_a_matrix_admits_its_own_armor_class_and_no_other():
    rules = {n: propose(f"Attack matrix for thieves - Opponent Armor Class {n}").rule for n in range(-10, 11)}
    for asked in range(-10, 11):
        query = f"a thief against armor class {asked}"
        assert [n for n, rule in rules.items() if decide(rule, query).satisfied] == [asked]


def test_three_families_ship_and_siblings_have_names_of_their_own():
    names = [family.name for family in shipped_families()]
    assert {name.split("-")[0] for name in names} == {"combat", "psionic", "encounters"}
    assert len(set(names)) == len(names)


GOOD = """
version: 1
families:
  - name: spells
    title: 'spell level (?P<n>\\d+)'
    details: ['\\b(?P<school>fire|ice)\\b']
    terms: {school: {Fire: [fire, flame]}}
    rule: {contain_one_of: [['level {n}'], ['{school}']], number_in: [{label: [level], min: '{n}'}]}
"""


def test_a_family_of_ones_own_needs_data_only():
    families = parse_families(GOOD, "mine.yaml")
    found = propose("FIRE magic, Spell Level 3", families)
    assert found.family == "spells"
    assert found.rule.as_mapping() == {
        "contain_one_of": [["level 3"], ["fire", "flame"]],
        "number_in": [{"label": ["level"], "min": 3}],
    }
    assert propose("spell level 3, ice", families).rule.contain_one_of == (("level 3",), ("ice",))
    assert propose("spell level 3", families).rule.contain_one_of == (("level 3",),)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("version: 2\nfamilies: []", "version 2"),
        ("families: []", "expected version and families"),
        ("version: 1\nfamilies: []", "expected at least one family"),
        ("version: 1\nfamilies: [7]", "expected a mapping with name"),
        (GOOD.replace("title:", "titel:"), "unknown key 'titel'"),
        (GOOD.replace("(?P<n>", "(?P<n>(?!x)"), "a pattern that RE2 refuses"),
        (GOOD.replace("(?P<n>\\d+)", "(\\d)\\1"), "a pattern that RE2 refuses"),
        (GOOD.replace("'level {n}'", "'level {m}'"), "uses {m}, expected a capture"),
        (GOOD.replace("'level {n}'", "'level {n'"), "a brace too many or too few"),
        (GOOD.replace("['level {n}'], ", "[''], "), "the empty term"),
        (GOOD.replace("contain_one_of", "contains"), "unknown key"),
        (GOOD.replace("[fire, flame]", "fire"), "terms holds 'fire', expected a list of texts"),
        (GOOD + GOOD.split("families:\n")[1], "two families share a name"),
        ("version: 1\nversion: 1\nfamilies: []", "not valid YAML"),
        ("version: 1\nfamilies: &a [*a]", "YAML alias"),
        ("version: 1\nfamilies: " + "[" * 60 + "]" * 60, "nested too deeply"),
        ("# " + "x" * 1_000_001, "expected at most 1,000,000"),
    ],
)
def test_a_template_file_that_cannot_work_is_refused_when_it_is_read(text, says):
    with pytest.raises((RuleError, InputError)) as error:
        parse_families(text, "mine.yaml")
    assert says in str(error.value)


@given(st.text())
def test_no_title_crashes_the_templates(title):
    found = propose(title)
    assert found is None or found.rule.as_mapping()
