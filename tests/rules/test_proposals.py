"""The check before a rule is stored: what passes, and each refusal with its reason."""

import json
from pathlib import Path

import pytest

from rag_core.rules.check import check_proposals, preview, template_proposals
from rag_core.rules.rule import Rule
from rag_core.types import Case, Chunk, Query

TITLE = "ATTACK MATRIX FOR CLERICS, DRUIDS AND MONKS - Opponent Armor Class {}"
CHUNKS = [Chunk(f"ac{n}", TITLE.format(n)) for n in (4, 5, 6)] + [Chunk("strength", "Strength")]
CLASSES = ["cleric", "druid", "monk"]
RULEBOOK = Path(__file__).parents[2] / "eval_sets" / "rulebook"


def rule(n):
    return {"contain_one_of": [CLASSES, [f"armor class {n}", f"ac {n}"]]}


def case(text, **grades):
    return Case(Query(text, text), grades)


def refused(proposals, *cases, chunks=CHUNKS, **more):
    checked = check_proposals(proposals, chunks, cases, **more)
    return {one.chunk_id: (one.kind, one.reason) for one in checked.refused}


def test_good_rules_pass():
    checked = check_proposals({f"ac{n}": rule(n) for n in (4, 5, 6)}, CHUNKS, [case("a cleric, ac 6", ac6=3, ac5=0)])
    assert set(checked.accepted) == {"ac4", "ac5", "ac6"}
    assert isinstance(checked.accepted["ac4"], Rule)
    assert (checked.refused, checked.warnings) == ((), ())


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ({"contain_one_of": [[]]}, "an empty group"),
        ({"contain_one_of": [[" "]]}, "the empty term"),
        ({"contains": "x"}, "unknown key"),
        ("cleric", "expected a mapping"),
        ({}, "is empty"),
    ],
)
def test_what_does_not_parse_is_refused_with_chunk_key_and_value(raw, says):
    kind, reason = refused({"ac4": raw, "ac5": rule(5)})["ac4"]
    assert kind == "unreadable"
    assert "chunk ac4" in reason
    assert says in reason


def test_a_rule_for_no_chunk_is_refused():
    assert refused({"zz": rule(4)}) == {"zz": ("unknown-chunk", "there is no chunk of that id")}


def test_wrong_in_the_original_the_four_groups_of_its_example_are_refused():
    mistaken = {"contain_one_of": [["cleric"], ["druid"], ["monk"], ["armor class 6"]]}
    assert refused({"ac6": mistaken}) == {
        "ac6": ("torn-group", "asks for cleric and druid and monk together, expected them in one group")
    }


def test_siblings_with_one_rule_are_both_refused():
    found = refused({"ac4": rule(4), "ac5": rule(4), "ac6": rule(6)})
    assert {identity: kind for identity, (kind, _) in found.items()} == {
        "ac4": "siblings-alike",
        "ac5": "siblings-alike",
    }
    assert found["ac5"][1] == "is the rule of its sibling ac4 too: nothing would tell the two apart"


def test_a_proposal_may_not_take_the_rule_a_sibling_has_already():
    chunks = [Chunk("ac4", TITLE.format(4), query_must=rule(4)), *CHUNKS[1:]]
    assert refused({"ac5": rule(4)}, chunks=chunks)["ac5"][0] == "siblings-alike"
    assert refused({"ac4": rule(4)}, chunks=chunks) == {}


def test_siblings_under_one_title_pass_with_a_warning():
    twins = [Chunk("a", TITLE.format(4)), Chunk("b", TITLE.format(4))]
    checked = check_proposals({"a": rule(4), "b": rule(4)}, twins)
    assert set(checked.accepted) == {"a", "b"}
    assert checked.warnings == ("a, b have one title and one rule: nothing tells them apart",)


def test_a_rule_that_drops_a_labelled_relevant_chunk_is_refused_and_says_why():
    cases = [case("a cleric, ac 6", ac6=1), case("a priest, ac 6", ac6=2), case("a priest, ac 5", ac6=0)]
    kind, reason = refused({"ac6": rule(6)}, *cases)["ac6"]
    assert kind == "drops-relevant"
    assert reason == (
        "drops the chunk where it is labelled relevant: a priest, ac 6 (no word of: cleric / druid / monk)"
    )
    assert refused({"ac6": rule(6)}, *cases, min_grade=3) == {}


def test_templates_reproduce_the_rules_that_ship_with_the_demo_exactly_and_all_pass():
    records = [json.loads(line) for line in (RULEBOOK / "corpus.jsonl").read_text("utf-8").splitlines()]
    shipped = {record["id"]: record["query_must"] for record in records if "query_must" in record}
    chunks = [Chunk(record["id"], record["title"]) for record in records]
    assert template_proposals(chunks) == shipped
    assert len(shipped) == 138
    checked = check_proposals(shipped, chunks)
    assert (len(checked.accepted), checked.refused, checked.warnings) == (138, (), ())


def test_a_preview_gives_the_verdict_on_every_query_beside_the_label():
    cases = [case("a cleric, ac 6", ac6=3), case("a thief, ac 6", ac6=0), case("magic")]
    accepted = check_proposals({"ac6": rule(6)}, CHUNKS).accepted["ac6"]
    shown = [(one.verdict.satisfied, one.grade) for one in preview("ac6", accepted, cases)]
    assert shown == [(True, 3), (False, 0), (False, None)]
