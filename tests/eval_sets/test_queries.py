"""Lists of queries that people bring: what is read, what is refused with its line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.errors import InputError, RecordError
from rag_core.eval_sets.queries import clean_tags, form_of, read_query_list, repeated_texts
from rag_core.types import Query


def test_pasted_lines_are_numbered_by_their_place_and_blank_ones_left_out():
    found = read_query_list("How far?\n\n  How high? \r\n", "lines")
    assert [(query.id, query.text) for query in found] == [("q1", "How far?"), ("q2", "How high?")]


def test_csv_has_ids_tags_and_split_where_wanted():
    text = 'id,query,tags,split,topic\r\n007,"How far, and when?",fast; far|near,dev,moves\r\n,How high?,,,\r\n'
    first, second = read_query_list(text, "csv")
    assert (first.id, first.text, first.tags) == ("007", "How far, and when?", ("fast", "far", "near"))
    assert first.metadata == {"topic": "moves", "split": "dev"}
    assert (second.id, second.tags, dict(second.metadata)) == ("q2", (), {})


def test_jsonl_of_beir_and_ragas_is_read_by_their_own_keys():
    rows = [{"_id": "a", "text": "How far?"}, {"user_input": "How high?"}, {"id": 7, "query": "Why?", "tags": ["x"]}]
    found = read_query_list("\n".join(map(json.dumps, rows)), "jsonl")
    assert [(query.id, query.text) for query in found] == [("a", "How far?"), ("q2", "How high?"), ("7", "Why?")]


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        ("jsonl", '{"query": "a"}\n{"query": 7}', "line 2 has no query text"),
        ("jsonl", '{"query": "a", "candidates": []}', "is a recorded list"),
        ("jsonl", '{"id": "a", "query": "a"}\n{"id": "a", "query": "b"}', "line 2 has query id 'a' again"),
        ("jsonl", '["a"]', "line 1 is list"),
        ("jsonl", '{"query": "a", "query": "b"}', "line 1 is not valid JSON"),
        ("jsonl", '{"query": "a", "split": "train"}', "line 1 has split 'train'"),
        ("jsonl", '{"query": "a", "tags": "x"}', "tags that are no list"),
        ("jsonl", '{"query": "a", "tags": [7]}', "has tag '7'"),
        ("jsonl", '{"query": "a\\u0007"}', "control character"),
        ("csv", "id,words\n1,a", "line 1 is no header but 'id', 'words', expected query"),
        ("csv", "id;query\n1;a", "one cell with semicolons, where commas part columns, expected query"),
        ("csv", "query,query\na,b", "line 1 is no header"),
        ("csv", "query,id\na", "line 2 has 1 cells"),
        ("csv", 'query\n"a', "line 2: unexpected end"),
        ("lines", "x" * 2001, "line 1: the query has 2,001 characters"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(form, text, message):
    with pytest.raises(RecordError, match=message):
        read_query_list(text, form)


@pytest.mark.parametrize("form", ["lines", "csv", "jsonl"])
def test_a_list_without_a_query_is_refused(form):
    with pytest.raises(InputError, match="no query"):
        read_query_list("query\n" if form == "csv" else " \n", form)


@given(text=st.text(max_size=80), form=st.sampled_from(["lines", "csv", "jsonl"]))
def test_any_text_gives_queries_or_one_sentence(text, form):
    found, refusal = [], ""
    try:
        found = read_query_list(text, form)
    except InputError as error:
        refusal = str(error)
    assert bool(found) != bool(refusal)
    assert "\n" not in refusal
    assert len({query.id for query in found}) == len(found)


def test_the_form_is_told_by_the_ending_or_the_first_character():
    assert form_of("a", "a.CSV") == "csv"
    assert form_of('\ufeff {"query"', "") == "jsonl"
    assert form_of("{x", "a.txt") == form_of("what?") == "lines"


def test_queries_that_read_the_same_are_counted():
    assert repeated_texts([Query("a", "How  far?"), Query("b", "how far?"), Query("c", "why?")]) == 1


@pytest.mark.parametrize("tag", ["", "  ", "x" * 61, "a\nb", 7])
def test_a_tag_is_a_short_printable_text(tag):
    with pytest.raises(InputError, match="printable"):
        clean_tags([tag], "the query")
