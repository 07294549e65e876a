"""CSV and Parquet to records: cells stay as they are, and what is doubtful is refused with its place."""

import csv
import datetime
import decimal
import io
import string

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.corpus import load, tables
from rag_core.corpus.tables import csv_columns, json_columns, read_csv, read_parquet
from rag_core.errors import InputError


def rows(text, columns=None):
    return [record for _, record in read_csv(text, "a.csv", columns)]


def parquet(folder, **columns):
    path = folder / "a.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def test_cells_stay_text_as_they_stand():
    text = "text,number,short,when\nx,007,NA,2024-01-01\ny,1e5,null,12:30\n"
    assert rows(text) == [
        {"text": "x", "number": "007", "short": "NA", "when": "2024-01-01"},
        {"text": "y", "number": "1e5", "short": "null", "when": "12:30"},
    ]


def test_quoted_cells_hold_commas_quotes_and_newlines():
    assert rows('id,text\n1,"a, ""b""\nc"\n') == [{"id": "1", "text": 'a, "b"\nc'}]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_header_says_which_delimiter(delimiter):
    assert rows(f"id{delimiter}text\n1{delimiter}x\n") == [{"id": "1", "text": "x"}]


def test_empty_cells_are_left_out_and_blank_lines_passed_over():
    assert rows("id,text,title\n1,x,\n\n2,y,t\n") == [{"id": "1", "text": "x"}, {"id": "2", "text": "y", "title": "t"}]


def test_references_are_words_or_a_json_list_and_metadata_is_json():
    text = 'text,ref_ids,metadata\nx,a;b c,"{""k"": 1}"\ny,"[""a b""]",\n'
    assert rows(text) == [
        {"text": "x", "ref_ids": ["a", "b", "c"], "metadata": {"k": 1}},
        {"text": "y", "ref_ids": ["a b"]},
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("text,b\n1\n", "row 1 has 1 cells, expected 2"),
        ("text,b\n1,2,3\n", "row 1 has 3 cells, expected 2"),
        ("text,text\n1,2\n", "the column 'text' twice"),
        ("text,\n1,2\n", "no name for column 2"),
        ("", "no header"),
        ("body,b\n1,2\n", "no column text but body, b; say which holds it, for example text=body"),
        ('text\n"open\n', "no CSV"),
        ("text\n" + "x" * 200_000 + "\n", "no CSV"),
        (",".join(f"c{n}" for n in range(1001)) + "\n", "1,001 columns"),
    ],
)
def test_a_doubtful_csv_is_refused_with_its_place(text, said):
    with pytest.raises(InputError, match=said) as caught:
        rows(text)
    assert str(caught.value).startswith("a.csv")
    assert "\n" not in str(caught.value)


def test_too_many_rows_are_refused_before_the_first_is_given(monkeypatch):
    monkeypatch.setattr(tables, "MAX_ROWS", 3)
    with pytest.raises(InputError, match="more than 3 rows"):
        next(read_csv("text\n" + "x\n" * 4, "a.csv"))


def test_a_mapped_column_must_be_there():
    with pytest.raises(InputError, match="has no column 'body' for text, expected one of a, b"):
        rows("a,b\n1,2\n", {"text": "body"})


cell = st.text(string.printable.replace("\r", "").replace("\x0b", "").replace("\x0c", ""), max_size=12)


@given(st.lists(st.tuples(cell, cell), max_size=8))
def test_what_the_csv_module_writes_is_read_back(cells):
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows([("a", "text"), *cells])
    expected = [{name: value for name, value in zip(("a", "text"), pair, strict=True) if value} for pair in cells]
    assert rows(written.getvalue()) == expected


def test_parquet_values_become_those_json_has(tmp_path):
    path = parquet(
        tmp_path,
        text=["x", "y"],
        number=[1.5, float("nan")],
        when=[datetime.date(2024, 1, 2), None],
        price=[decimal.Decimal("1.10"), None],
        tags=[["a"], []],
        nested=[{"k": 1}, None],
    )
    assert [record for _, record in read_parquet(path, "a.parquet")] == [
        {"text": "x", "number": 1.5, "when": "2024-01-02", "price": "1.10", "tags": ["a"], "nested": {"k": 1}},
        {"text": "y", "number": None, "tags": []},
    ]


def test_parquet_with_bytes_or_without_a_text_is_refused(tmp_path):
    with pytest.raises(InputError, match="row 1 holds bytes"):
        list(read_parquet(parquet(tmp_path, text=["x"], blob=[b"x"]), "a.parquet"))
    with pytest.raises(InputError, match="no column text but body"):
        list(read_parquet(parquet(tmp_path, body=["x"]), "a.parquet"))


def test_parquet_that_holds_too_much_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    path = parquet(tmp_path, text=["x" * 1000] * 1000)
    monkeypatch.setattr(tables, "MAX_PARQUET_BYTES", 100)
    with pytest.raises(InputError, match="bytes unpacked, expected at most 100"):
        list(read_parquet(path, "a.parquet"))
    monkeypatch.setattr(tables, "MAX_ROWS", 10)
    with pytest.raises(InputError, match="1,000 rows, expected at most 10"):
        list(read_parquet(path, "a.parquet"))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\xff" * 100 + b"PAR1", b"text\nx\n"])
def test_a_file_that_is_no_parquet_is_refused(tmp_path, content):
    path = tmp_path / "a.parquet"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.parquet is no Parquet file"):
        load([path])


def test_a_parquet_file_damaged_behind_its_header_is_one_error(tmp_path):
    path = parquet(tmp_path, text=[f"text number {n}" for n in range(5000)])
    data = bytearray(path.read_bytes())
    data[40:2000] = b"\x00" * 1960
    path.write_bytes(data)
    with pytest.raises(InputError):
        load([path])


def test_the_names_of_columns_and_keys_are_listed():
    assert csv_columns("a;b\n1;2\n", "a.csv") == ["a", "b"]
    assert json_columns('{"a": 1}\n\n{"b": 1, "a": 2}\n[1]\n', "a.jsonl") == ["a", "b"]
