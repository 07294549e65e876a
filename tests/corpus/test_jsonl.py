"""JSONL lines to chunks: fields, ids, and what is refused with the line's number."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.corpus.jsonl import read_jsonl
from rag_core.errors import InputError, RuleError


def read(*rows):
    return read_jsonl("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), "c.jsonl")


def test_all_fields_are_read_and_the_rest_is_metadata():
    rule = {"contain_one_of": [["ac 6", "armor class 6"]]}
    row = {"id": "m1", "title": "Matrix", "text": "20 19", "type": "table", "ref_ids": ["a", "b", "a"]}
    (chunk,) = read({**row, "query_must": rule, "page": 74, "tags": ["x"]})
    assert (chunk.id, chunk.title, chunk.text, chunk.type) == ("m1", "Matrix", "20 19", "table")
    assert chunk.ref_ids == ("a", "b")
    assert chunk.query_must == rule
    assert dict(chunk.metadata) == {"source": "c.jsonl", "position": 1, "page": 74, "tags": ["x"]}


def test_a_rule_may_be_json_text_and_null_is_none():
    stored, none = read(
        {"text": "x", "query_must": '{"contain": "ac 6"}'}, {"text": "y", "query_must": None, "title": None}
    )
    assert stored.query_must == {"contain": "ac 6"}
    assert none.query_must is None
    assert none.title == ""


def test_beir_lines_are_understood():
    (chunk,) = read({"_id": "d1", "title": "T", "text": "words", "metadata": {"year": 1958}})
    assert chunk.id == "d1"
    assert chunk.metadata["year"] == 1958


def test_a_line_of_its_own_source_keeps_it():
    assert read({"text": "x", "source": "api/display.yaml"})[0].metadata["source"] == "api/display.yaml"


def test_a_missing_id_comes_from_the_content_and_does_not_move_with_the_line():
    first, second = read({"text": "a"}, {"text": "b"})
    moved = read("", {"text": "b"})[0]
    assert moved.id == second.id != first.id
    same = read({"text": "a"}, {"text": "a"})
    assert [chunk.id for chunk in same] == [first.id, f"{first.id}~2"]


def test_only_the_newline_ends_a_line():
    (chunk,) = read('{"text": "one\u2028two\u0085three"}\r')
    assert chunk.text == "one\u2028two\u0085three"


def test_lone_surrogates_and_nul_are_replaced():
    (chunk,) = read('{"text": "a\\ud800b\\u0000c", "k": {"\\udfff": ["\\udfff"]}}')
    assert chunk.text == "a\ufffdb\ufffdc"
    assert chunk.metadata["k"] == {"\ufffd": ["\ufffd"]}


REFUSED = {
    "no object": ("[1]", "line 2 is a list"),
    "bad syntax": ('{"text": ', "line 2 is not valid JSON"),
    "nan": ('{"text": "x", "score": NaN}', "NaN"),
    "key twice": ('{"text": "x", "text": "y"}', "stands twice"),
    "no text": (
        {"id": "a", "inhalt": "x"},
        "line 2 has no text, expected the chunk's text; it has id, inhalt: say which holds it with --column text=NAME",
    ),
    "a log": ({"question": "x", "passages": [{"body": "y"}]}, "line 2 has no text, .* with `winnow import`"),
    "blank text": ({"text": "  "}, "line 2 has an empty text"),
    "text a number": ({"text": 7}, "text as a number"),
    "title a list": ({"text": "x", "title": []}, "title as a list"),
    "id twice": ({"id": "first", "text": "x"}, "'first' of line 1"),
    "both ids": ({"id": "a", "_id": "b", "text": "x"}, "both id and _id"),
    "empty id": ({"id": " ", "text": "x"}, "id that is empty"),
    "id true": ({"id": True, "text": "x"}, "id as true or false"),
    "line break in id": ({"id": "a\nb", "text": "x"}, "control characters"),
    "refs": ({"text": "x", "ref_ids": "a"}, "ref_ids as text"),
    "metadata": ({"text": "x", "metadata": []}, "metadata as a list"),
    "huge text": ({"text": "x" * 1_000_001}, "1,000,001 characters"),
    "deep": ('{"text": "x", "m": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
}


@pytest.mark.parametrize("row", REFUSED)
def test_a_line_that_cannot_be_stored_is_refused_by_its_number(row):
    value, sentence = REFUSED[row]
    with pytest.raises(InputError, match=sentence) as caught:
        read({"id": "first", "text": "fine"}, value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "rule",
    [{"contains": "x"}, {"contain_one_of": [[]]}, {"contain_all_of": [""]}, {"contain": ["a"]}, [], "{", {}, 7],
)
def test_a_rule_that_cannot_be_stored_names_the_line_and_chunk(rule):
    with pytest.raises(InputError, match=r"query_must of c\.jsonl line 1 \(m7\)"):
        read({"id": "m7", "text": "x", "query_must": rule})


def test_an_unknown_rule_key_is_named_with_its_value():
    with pytest.raises(RuleError, match=r"m7.*contains.*armor"):
        read({"id": "m7", "text": "x", "query_must": {"contains": "armor"}})


@given(
    st.one_of(st.text(), st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps))
)
def test_any_line_is_a_chunk_or_one_sentence(line):
    named = "c.jsonl"
    try:
        read_jsonl(line, "c.jsonl")
    except InputError as error:
        named = str(error)
    assert "c.jsonl" in named
