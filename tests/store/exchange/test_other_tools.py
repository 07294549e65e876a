"""Quepid, OpenSearch and Ragas: their shapes to the letter, round trips, refusals that name the place."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.errors import InputError, RecordError
from rag_core.store.exchange.formats import FORMULA, read_labels, renamed, write_labels
from rag_core.store.exchange.line import LabelLine
from rag_core.store.exchange.ragas import read_ragas, write_ragas

ID = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=8)
LINES = st.lists(st.builds(LabelLine, ID, ID, st.integers(0, 3)), max_size=8, unique_by=lambda each: each.about)


@given(st.sampled_from(["quepid", "srw"]), LINES)
def test_grades_come_back_as_they_went(chosen, lines):
    assert read_labels(write_labels(lines, chosen), chosen) == lines


def test_quepid_has_its_header_and_no_cell_that_runs():
    text = write_labels([LabelLine("=1+1", "@c", 3)], "quepid")
    assert text == "query,docid,rating\r\n'=1+1,'@c,3\r\n"
    assert not any(
        FORMULA.match(cell.lstrip("'")) and not cell.startswith("'")
        for row in csv.reader(io.StringIO(text))
        for cell in row
    )


def test_quepid_names_queries_by_text():
    lines = [LabelLine("q1", "c", 1)]
    assert renamed(renamed(lines, {"q1": "a question"}), {"a question": "q1"}) == lines
    assert "a question,c,1" in write_labels(renamed(lines, {"q1": "a question"}), "quepid")


def test_opensearch_has_the_shape_of_its_import():
    document = json.loads(write_labels([LabelLine("q", "a", 3), LabelLine("q", "b", 0)], "srw"))
    assert document["type"] == "IMPORT_JUDGMENT"
    assert document["judgmentRatings"] == [
        {"query": "q", "ratings": [{"docId": "a", "rating": "3.000"}, {"docId": "b", "rating": "0.000"}]}
    ]


@pytest.mark.parametrize(
    ("chosen", "text", "said"),
    [
        ("quepid", "query,docid\r\nq,c\r\n", "line 1: no Quepid header"),
        ("quepid", "query,docid,rating\r\nq,c,9\r\n", "line 2: grade is 9"),
        ("quepid", "query,docid,rating\r\nq,c\r\n", "line 2: 2 cells"),
        ("srw", "[]", "no judgmentRatings"),
        ("srw", '{"judgmentRatings": [{"query": "q"}]}', "line 1: an entry without"),
        ("srw", '{"judgmentRatings": [{"query": "q", "ratings": [{"docId": "c", "rating": "2.5"}]}]}', "2.5"),
        ("srw", '{"judgmentRatings": [{"query": "q", "ratings": [{"rating": "2"}]}]}', "without docId"),
    ],
)
def test_what_is_not_understood_is_refused_and_named(chosen, text, said):
    with pytest.raises(RecordError, match=said.replace(".", r"\.")):
        read_labels(text, chosen)


def test_a_label_that_is_unsure_has_no_place():
    for chosen in ("quepid", "srw"):
        with pytest.raises(InputError, match="cannot say unsure"):
            write_labels([LabelLine("q", "c", None)], chosen)


QUERIES, CHUNKS = {"q1": "What is AC?"}, {"c1": "Armour class.", "c2": "Other."}


def test_ragas_meets_queries_and_chunks_by_text():
    sample = {"user_input": "what is  ac?", "reference_contexts": ["Armour Class.", "gone from the corpus"]}
    text = json.dumps(sample) + "\n" + json.dumps({"user_input": "unknown", "reference_contexts": []})
    lines, strangers = read_ragas(text, "f", QUERIES, CHUNKS)
    assert [(line.query_id, line.chunk_id[:5], line.grade) for line in lines] == [("q1", "c1", 2), ("q1", "text-", 2)]
    assert strangers == 1


def test_ragas_written_and_read_gives_the_relevant_chunks():
    text = write_ragas([LabelLine("q1", "c1", 2), LabelLine("q1", "c2", 0)], QUERIES, CHUNKS)
    assert json.loads(text) == {"user_input": "What is AC?", "reference_contexts": ["Armour class."]}
    assert [line.chunk_id for line in read_ragas(text, "f", QUERIES, CHUNKS)[0]] == ["c1"]


@pytest.mark.parametrize("line", ["3", "{}", '{"user_input": "a", "reference_contexts": [1]}', '{"user_input": " "}'])
def test_ragas_of_another_shape_names_the_line(line):
    with pytest.raises(RecordError, match="line 1"):
        read_ragas(line, "f", QUERIES, CHUNKS)
