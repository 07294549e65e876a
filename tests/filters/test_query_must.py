"""QueryMust as a filter: the recorded combat lists, reasons, counterfactuals, and rules that cannot be read."""

import json
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.errors import SpecError
from rag_core.filters.query_must import QueryMust
from rag_core.rules.match import RuleVerdict
from rag_core.rules.templates import propose
from rag_core.stage import counterfactuals
from rag_core.types import Candidates, Chunk, Hit, Query

A = "I.A. ATTACK MATRIX FOR CLERICS, DRUIDS AND MONKS - Opponent Armor {}"
B = "I.B. ATTACK MATRIX FOR FIGHTERS, PALADINS, RANGERS, BARDS, AND 0 LEVEL HALFLINGS AND HUMANS*"
C = "I.C. ATTACK MATRIX FOR MAGIC-USERS AND ILLUSIONISTS - Opponent Armor Class {}"
WORN = "Opponent Armor Class Description (If Armor is Worn):"
DUEL = (
    "Who is more likely to win in a fight - a 4th level fighter with an armor class of 3 or a 7th level {} with an "
    "armor class of 9? Both {} have a strength of 16, a constitution of 16, and a dexterity of 12. They both wield "
    "long swords."
)
COMBAT_1 = (
    "What does a 7th level cleric need to roll to hit an opponent with armor class 6?",
    [*(A.format(n) for n in (7, -7, 6, -6, 8, -8, 5)), WORN, *(A.format(n) for n in (9, 4, -9, -4, 2, -5, 1))],
)
COMBAT_2 = (
    DUEL.format("fighter", "fighters"),
    [
        *("The Fighter", WORN, "Armor Class:", "Strength", "Using The Combat Tables:", B, "MEN", A.format(4), B),
        *(C.format(4), "FIGHTERS', PALADINS', & RANGERS' ATTACKS PER MELEE ROUND TABLE", "ARMOR", C.format(4)),
        *(A.format(-4), A.format(7)),
    ],
)
COMBAT_3 = (
    DUEL.format("druid", "characters"),
    [
        *("The Fighter", "Armor Class:", "MEN", B, A.format(4), WORN, A.format(-4), "CHARACTER CLASSES (DRUID)"),
        *(A.format(7), "CHARACTER CLASSES (DRUID)", A.format(6), "PROTECTIVE ITEMS TABLE Character Class Paladin"),
        *(A.format(8), A.format(3), "Strength"),
    ],
)


def listed(query, rules):
    """A recorded list with one chunk per rule; ranks begin at 1."""
    hits = tuple(
        Hit(Chunk(f"c{rank}", query_must=rule), rank, {"distance": rank / 10}) for rank, rule in enumerate(rules, 1)
    )
    return Candidates(Query("q", query), hits, recorded=True)


def from_titles(query, titles):
    proposals = [propose(title) for title in titles]
    return listed(query, [proposal and proposal.rule.as_mapping() for proposal in proposals])


def kept_ranks(case, mode):
    return [hit.rank for hit in QueryMust(mode)(from_titles(*case)).hits]


@pytest.mark.parametrize("mode", ["token", "substring"])
def test_combat_1_keeps_two_of_fifteen(mode):
    assert kept_ranks(COMBAT_1, mode) == [3, 8]


@pytest.mark.parametrize("mode", ["token", "substring"])
def test_combat_2_keeps_ten_of_fifteen(mode):
    assert kept_ranks(COMBAT_2, mode) == [1, 2, 3, 4, 5, 6, 7, 9, 11, 12]


def test_combat_3_keeps_ten_in_token_mode_and_loses_rank_14_in_substring_mode():
    assert kept_ranks(COMBAT_3, "token") == [1, 2, 3, 4, 6, 8, 10, 12, 14, 15]
    assert kept_ranks(COMBAT_3, "substring") == [1, 2, 3, 4, 6, 8, 10, 12, 15]


def test_with_the_four_groups_of_the_original_combat_1_loses_its_one_relevant_chunk():
    query, titles = COMBAT_1
    relevant = {"contain_one_of": [["cleric"], ["druid"], ["monk"], ["armor class 6"]]}
    candidates = listed(query, [relevant if title == A.format(6) else None for title in titles])
    assert 3 not in [hit.rank for hit in QueryMust()(candidates).hits]


RECORDED = Path(__file__).parents[2] / "eval_sets" / "recorded-combat" / "lists.jsonl"


def labelled(name):
    """(relevant, irrelevant) titles of one recorded list."""
    lists = [json.loads(line) for line in RECORDED.read_text("utf-8").splitlines() if line]
    (found,) = [entry["candidates"] for entry in lists if entry["id"] == name]
    return [[c["title"] for c in found if bool(c["relevant"]) is wanted] for wanted in (True, False)]


@pytest.mark.parametrize(("name", "relevant", "irrelevant"), [("combat-2", 8, 7), ("combat-3", 9, 6)])
def test_wrong_in_the_original_its_chunk_counts(name, relevant, irrelevant):
    assert [len(titles) for titles in labelled(name)] == [relevant, irrelevant]


def test_wrong_in_the_original_the_druid_needs_the_table_of_the_fighters_armor_class_3():
    relevant, irrelevant = labelled("combat-3")
    assert A.format(3) in relevant  # the druid rolls against the fighter's armor class 3
    assert A.format(9) not in relevant + irrelevant


CLERIC_6 = {"contain_one_of": [["cleric"], ["armor class 6", "ac 6"]]}


def test_a_drop_has_one_reason_and_the_verdict_as_a_note():
    after = QueryMust()(listed("a cleric against armor class 7", [CLERIC_6]))
    (drop,) = after.drops
    assert drop.reason.text == "no word of: armor class 6 / ac 6"
    verdict = drop.hit.notes["QueryMust"]
    assert isinstance(verdict, RuleVerdict)
    assert [part.term for part in verdict.parts] == ["cleric", None]


def test_a_chunk_without_a_rule_is_never_touched():
    before = listed("anything", [None, ""])
    assert QueryMust()(before).hits == before.hits


def test_the_original_query_decides_and_no_rewritten_one():
    before = listed("a cleric against armor class 7", [CLERIC_6])
    rewritten = Query("q", before.query.text, dense_text="cleric armor class 6", lexical_text="cleric armor class 6")
    assert not QueryMust()(Candidates(rewritten, before.hits)).hits


@pytest.mark.parametrize("broken", ["{", {"contains": "x"}, {"contain": ""}, 7, {"contain_one_of": [[]]}], ids=repr)
def test_an_unreadable_rule_never_drops_its_chunk_and_is_counted(broken):
    after = QueryMust()(listed("anything", [broken, CLERIC_6]))
    assert [hit.chunk.id for hit in after.hits] == ["c1"]
    (notice,) = after.notices
    assert (notice.stage, notice.chunk_id) == ("QueryMust", "c1")
    assert notice.text.startswith("rule not read, chunk kept: ")
    assert after.steps[-1].facts == {"with_rule": 1, "unreadable": 1}


@pytest.mark.parametrize(
    "rule",
    [CLERIC_6, json.dumps(CLERIC_6), MappingProxyType(CLERIC_6), CLERIC_6["contain_one_of"]],
    ids=["mapping", "JSON string", "frozen mapping", "flat lists"],
)
def test_a_rule_is_read_in_every_shape_collections_hold(rule):
    assert not QueryMust()(listed("a cleric against armor class 7", [rule])).hits
    assert QueryMust()(listed("a cleric against ac of 6", [rule])).hits


def test_would_keep_names_the_terms_and_says_that_no_mode_helps():
    before = listed("a cleric against armor class 7", [CLERIC_6])
    words, mode = counterfactuals(QueryMust(), before)[("c1", "")]
    assert (words.parameter, words.value) == ("query", ("armor class 6", "ac 6"))
    assert words.text == "would stay if the query held one of: armor class 6, ac 6"
    assert (mode.parameter, mode.value) == ("mode", None)


def test_would_keep_names_the_other_mode_where_it_keeps():
    before = listed("a cleric against armor class of 6", [CLERIC_6])
    _, mode = counterfactuals(QueryMust("substring"), before)[("c1", "")]
    assert (mode.parameter, mode.value) == ("mode", "token")


def test_an_unknown_mode_is_a_spec_error():
    with pytest.raises(SpecError, match=r"QueryMust.mode is 'regex', expected one of token, substring"):
        QueryMust("regex")


RULES = st.sampled_from([None, "{", {"contain": "cleric"}, {"contain": "druid"}, {"contain_one_of": [["ac 6"], ["x"]]}])


@given(st.lists(RULES), st.text(), st.sampled_from(["token", "substring"]))
def test_every_hit_is_kept_or_dropped_exactly_once_and_in_order(rules, query, mode):
    before = listed(query, rules)
    after = QueryMust(mode)(before)
    assert sorted(hit.rank for hit in (*after.hits, *(drop.hit for drop in after.drops))) == [
        h.rank for h in before.hits
    ]
    assert [hit.rank for hit in after.hits] == sorted(hit.rank for hit in after.hits)
