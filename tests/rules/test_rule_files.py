"""Rules in YAML and JSON files, and as other stores keep them."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_core.errors import RuleError
from rag_core.rules.rule import parse_rule, read_rules, save_rules, stored_rules
from rag_core.types import Chunk

RULE = parse_rule(
    {"contain_one_of": [["cleric", "no"], ["ac 6", "1e3"]], "number_in": [{"label": ["x"], "min": 2}]}, "t"
)


@pytest.mark.parametrize(
    "chunk",
    [
        Chunk("a", query_must=RULE.as_mapping()),
        Chunk("a", query_must=RULE.as_json()),
        Chunk("a", metadata={"query_must": RULE.as_json()}),
    ],
    ids=["own rule", "JSON string", "JSON string in the metadata"],
)
def test_a_stored_rule_is_read_wherever_it_stands(chunk):
    assert stored_rules([chunk, Chunk("b")]) == ({"a": RULE}, {})


@pytest.mark.parametrize(
    "metadata",
    [
        {"query_must": ["cleric", "clerics"]},
        {"query_must_contain_one_of": ["cleric", "clerics"]},
        {"query_must": json.dumps([["cleric", "clerics"]])},
    ],
    ids=repr,
)
def test_flat_lists_are_one_group(metadata):
    expected = parse_rule({"contain_one_of": [["cleric", "clerics"]]}, "t")
    assert stored_rules([Chunk("a", metadata=metadata)]) == ({"a": expected}, {})


def test_what_cannot_be_read_is_reported_and_not_dropped():
    rules, wrong = stored_rules([Chunk("a", query_must="{")])
    assert rules == {}
    assert set(wrong) == {"a"}


def test_a_written_file_gives_the_same_rules_back(tmp_path):
    path = tmp_path / "rules.yaml"
    save_rules(path, {"b": RULE, "a/1: x": RULE})
    assert read_rules(path) == {"a/1: x": RULE.as_mapping(), "b": RULE.as_mapping()}


@settings(deadline=None)  # a file, or a template, tried on a busy machine
@given(st.dictionaries(st.text("ab: -#no", min_size=1, max_size=6), st.text("no1e: -#'\"é\n", max_size=8), max_size=4))
def test_ids_and_terms_of_any_spelling_survive(tmp_path_factory, terms):
    rules = {identity: parse_rule({"contain": f"x{term}"}, "t") for identity, term in terms.items()}
    path = tmp_path_factory.mktemp("rules") / "rules.yaml"
    save_rules(path, rules)
    assert read_rules(path) == {identity: rule.as_mapping() for identity, rule in rules.items()}


@pytest.mark.parametrize(
    ("text", "says"),
    [("rules: {}", "other keys"), ("version: 2\nrules: {}", "version 2"), ("version: 1\nrules: []", "rules is list")],
)
def test_a_file_of_another_form_is_refused(tmp_path, text, says):
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    with pytest.raises(RuleError, match=says):
        read_rules(path)
