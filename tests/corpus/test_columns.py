"""Mapping columns to fields: what is proposed, what is refused, and what becomes metadata."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag_core.corpus import load
from rag_core.corpus.columns import check_columns, guess_columns, mapped
from rag_core.corpus.load import columns_of
from rag_core.errors import InputError

BODY = {"text": "body", "id": "key"}


def test_usual_names_are_proposed_the_most_usual_first():
    assert guess_columns(["Body", "content", "Name", "uuid"]) == {"text": "content", "title": "Name", "id": "uuid"}
    assert guess_columns(["a", "b"]) == {}


@pytest.mark.parametrize(
    ("columns", "said"),
    [({"texts": "a"}, "the field 'texts'"), ({"text": "a", "title": "a"}, "mapped to text and title")],
)
def test_a_mapping_that_cannot_be_meant_is_refused(columns, said):
    with pytest.raises(InputError, match=said):
        check_columns(columns)


def test_mapped_columns_take_our_names_and_what_stood_there_becomes_metadata():
    record = {"body": "x", "text": "old", "_id": "old id", "key": "k", "other": 1, "metadata": {"m": 2}}
    assert mapped(record, BODY) == {
        "text": "x", "id": "k", "other": 1, "metadata": {"m": 2, "text": "old", "_id": "old id"},
    }  # fmt: skip


@pytest.mark.parametrize("lines", [1, 2000])
def test_a_mapped_column_that_no_record_has_is_refused_with_those_there_are(tmp_path, lines):
    body = "x" * 100
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"key": str(n), "body": body}) + "\n" for n in range(lines)))
    with pytest.raises(InputError, match="no record has heading, expected one of key, body"):
        load([tmp_path], columns=BODY | {"title": "heading"})
    (tmp_path / "b.jsonl").write_text('{"key": "b", "body": "y", "heading": "z"}')
    assert load([tmp_path], columns=BODY | {"title": "heading"}).chunks[-1].title == "z"


def test_the_three_formats_give_the_same_chunks_through_a_mapping(tmp_path):
    records = [{"key": "1", "body": "first", "team": "A"}, {"key": "2", "body": "second", "team": "B"}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, records)))
    (tmp_path / "a.csv").write_text("key,body,team\n1,first,A\n2,second,B\n")
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "a.parquet")
    found = []
    for name in ("a.jsonl", "a.csv", "a.parquet"):
        chunks = load([tmp_path / name], columns=BODY).chunks
        found.append([(chunk.id, chunk.text, chunk.metadata["team"]) for chunk in chunks])
        assert columns_of([tmp_path / name]) == ["key", "body", "team"]
    assert found == [[("1", "first", "A"), ("2", "second", "B")]] * 3
