"""Every kind of finding, on corpora made for it, and none on what is in order."""

import pytest

from rag_core.rules.check import lint_rules
from rag_core.types import Case, Chunk, Query


def chunk(identity, rule, title=""):
    return Chunk(identity, title or identity, query_must=rule)


def one_of(*groups):
    return {"contain_one_of": [list(group) for group in groups]}


def case(text, **grades):
    return Case(Query(text, text), grades)


def found(kind, chunks, *cases, **more):
    return [finding for finding in lint_rules(chunks, cases, **more) if finding.kind == kind]


def test_rules_in_order_have_no_finding():
    chunks = [chunk("Table of AC 6", one_of(["ac 6"])), chunk("Table of AC 5", one_of(["ac 5"])), chunk("x", None)]
    assert lint_rules(chunks, [case("ac 6"), case("ac 5")]) == ()


def test_a_rule_that_drops_a_labelled_relevant_chunk_is_an_error_with_query_and_reason():
    chunks = [chunk("a", one_of(["cleric"], ["ac 6"]))]
    (finding,) = found("drops-relevant", chunks, case("a cleric, ac 5", a=2), case("a thief", a=0))
    assert (finding.severity, finding.chunks, finding.query) == ("error", ("a",), "a cleric, ac 5")
    assert finding.text == "drops a chunk labelled 2: no word of: ac 6"
    assert found("drops-relevant", chunks, case("a cleric, ac 5", a=1), min_grade=2) == []


def test_a_rule_that_cannot_be_read_is_an_error():
    (finding,) = found("unreadable", [chunk("a", {"contains": "x"})])
    assert finding.severity == "error"
    assert finding.chunks == ("a",)


def test_the_four_group_mistake_is_an_error():
    (finding,) = found("torn-group", [chunk("a", one_of(["cleric"], ["druid"], ["ac 6"]))])
    assert finding.severity == "error"
    assert finding.text == "asks for cleric and druid together, expected them in one group"


def test_siblings_with_one_rule_are_an_error_and_under_one_title_a_warning():
    twins = [chunk("a", one_of(["ac"]), "Table of AC 6"), chunk("b", one_of(["ac"]), "Table of AC 5")]
    (finding,) = found("siblings-alike", twins)
    assert (finding.severity, finding.chunks) == ("error", ("a", "b"))
    (finding,) = found("siblings-alike", [chunk(name, one_of(["ac"]), "Table of AC 6") for name in "ab"])
    assert finding.severity == "warning"


def test_strangers_with_one_rule_are_none_of_lints_business():
    assert found("siblings-alike", [chunk("a", one_of(["ac"]), "Armor"), chunk("b", one_of(["ac"]), "Shields")]) == []


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        (one_of(["ac 6", "ac 5"]), one_of(["ac 6"])),
        (one_of(["forest"]), one_of(["forest"], ["faerie"])),
        (
            {"number_in": [{"label": ["level"], "min": 1, "max": 9}]},
            {"number_in": [{"label": ["level"], "min": 2, "max": 3}]},
        ),
        ({"number_in": [{"label": ["level"], "max": 9}]}, {"number_in": [{"label": ["level"], "min": 2, "max": 3}]}),
    ],
)
def test_a_sibling_admitted_whenever_another_is_overlaps_with_a_warning(wide, narrow):
    (finding,) = found("siblings-overlap", [chunk("w", wide, "Table of 6"), chunk("n", narrow, "Table of 5")])
    assert (finding.severity, finding.chunks) == ("warning", ("w", "n"))
    assert finding.text == "admits w whenever it admits n: the family's rules overlap"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (one_of(["ac 6"]), one_of(["ac 5"])),
        (
            {"number_in": [{"label": ["level"], "min": 1, "max": 3}]},
            {"number_in": [{"label": ["level"], "min": 3, "max": 5}]},
        ),
        (one_of(["level"]), {"number_in": [{"label": ["level"], "min": 3}]}),
    ],
)
def test_siblings_of_which_neither_implies_the_other_do_not_overlap(one, other):
    assert found("siblings-overlap", [chunk("a", one, "Table of 6"), chunk("b", other, "Table of 5")]) == []


def test_siblings_that_share_a_term_in_every_part_are_a_note():
    chunks = [chunk("a", one_of(["wood", "forest"]), "Table of 6"), chunk("b", one_of(["wood", "tree"]), "Table of 5")]
    (finding,) = found("siblings-overlap", chunks)
    assert finding.severity == "note"


def test_rules_that_admit_no_query_and_rules_that_admit_all_are_listed_by_family():
    chunks = [chunk(f"Table of AC {n}", one_of([f"ac {n}"])) for n in (1, 2, 3)] + [chunk("always", one_of(["ac"]))]
    (never,) = found("never-admits", chunks, case("ac 3"), case("ac 9"))
    assert never.chunks == ("Table of AC 1", "Table of AC 2")
    assert never.text == "admits none of the 2 queries"
    (always,) = found("never-drops", chunks, case("ac 3"), case("ac 9"))
    assert (always.severity, always.chunks) == ("warning", ("always",))
    assert found("never-admits", chunks) == []


def test_what_holds_of_several_chunks_is_one_finding():
    (finding,) = found("said-otherwise", [chunk("a", one_of(["thief"])), chunk("b", one_of(["thief"]))])
    assert finding.chunks == ("a", "b")


def test_errors_come_first():
    chunks = [chunk("a", one_of(["thief"])), chunk("b", "{")]
    assert [finding.severity for finding in lint_rules(chunks)] == ["error", "warning"]


def test_a_term_whose_irregular_plural_is_missing_is_a_warning_and_a_regular_one_is_in_order():
    (finding,) = found("said-otherwise", [chunk("a", one_of(["thief"])), chunk("b", one_of(["thieves", "thief"]))])
    assert (finding.severity, finding.chunks) == ("warning", ("a",))
    regular = one_of(["cleric", "green dragons"], ["armor class 6", "body"])
    assert found("said-otherwise", [chunk("a", regular)]) == []
