"""The four-group mistake and its relatives."""

from rag_core.rules.check import rule_alternatives, template_alternatives, torn_apart
from rag_core.rules.rule import parse_rule

TITLE = "I.A. ATTACK MATRIX FOR CLERICS, DRUIDS AND MONKS - Opponent Armor 6"


def rule(*groups, **more):
    return parse_rule({**({"contain_one_of": [list(group) for group in groups]} if groups else {}), **more}, "test")


def test_wrong_in_the_original_its_class_names_stand_in_four_groups():
    mistaken = rule(["cleric"], ["druid"], ["monk"], ["armor class 6"])
    assert torn_apart(mistaken, "", template_alternatives()) == (("cleric",), ("druid",), ("monk",))


def test_class_names_in_one_group_are_no_mistake():
    assert torn_apart(rule(["cleric", "druid", "monk"], ["armor class 6"]), TITLE, template_alternatives()) == ()


def test_plurals_and_contain_all_of_count_too():
    mistaken = rule(["clerics"], contain_all_of=["Druids", "armor class 6"])
    assert torn_apart(mistaken, "", template_alternatives()) == (("clerics",), ("Druids",))


def test_values_of_one_capture_are_alternatives_and_those_of_two_are_not():
    assert torn_apart(rule(["forest"], ["hills"]), "", template_alternatives())
    assert torn_apart(rule(["forest"], ["faerie"], ["temperate"]), "", template_alternatives()) == ()


def test_the_title_tells_alternatives_that_no_template_knows():
    title = "Prices of swords, spears and axes"
    assert torn_apart(rule(["sword"], ["spear"], ["axe"]), title, ()) == (("sword",), ("spear",), ("axe",))


def test_two_things_that_a_title_names_together_may_both_be_asked_for():
    assert torn_apart(rule(["intelligence"], ["wisdom"]), "Total Intelligence and Wisdom 10-13", ()) == ()


def test_other_rules_tell_alternatives():
    known = rule_alternatives([rule(["sloop", "brig", "frigate"], ["crew"])])
    assert torn_apart(rule(["sloop"], ["brig"]), "", known) == (("sloop",), ("brig",))
    assert torn_apart(rule(["sloop"], ["crew"]), "", known) == ()
