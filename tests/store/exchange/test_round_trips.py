"""Every format is lossless for what it can hold, or refuses and names the line."""

import csv
import io
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_core.errors import InputError, RecordError
from rag_core.files import read_text, write_whole
from rag_core.store.exchange.formats import (
    FORMATS,
    FORMULA,
    escape_id,
    format_of,
    guard,
    read_labels,
    unescape_id,
    unguard,
    write_labels,
)
from rag_core.store.exchange.line import LabelLine

AWKWARD = [
    "\u0085",
    "\u2028",
    "\u2029",
    "\ufeff",
    "\r",
    "\n",
    "\t",
    "\v",
    "\x1c",
    "\x7f",
    "\u00a0",
    "\u3000",
    " ",
    "%",
    "%20",
    '"',
    "'",
    ",",
    "=",
    "+",
    "-",
    "@",
    "＝",
    "＋",
    "－",
    "＠",
    "\\",
    "null",
    "NaN",
    "007",
    "1e5",
    "unsure",
]
ANY = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
TEXT = st.lists(st.sampled_from(AWKWARD) | ANY, max_size=6).map("".join)
ID = TEXT.filter(bool)
HASH = st.sampled_from(["", "a" * 64, "0123456789abcdef" * 4])
GRADE = st.integers(0, 3)
TIME = st.sampled_from(["", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.123456Z"])
FULL = st.builds(LabelLine, ID, ID, st.none() | GRADE, TEXT, TEXT, HASH, HASH, TIME)
SHORT = st.builds(LabelLine, ID, ID, GRADE)


def lists_of(line):
    return st.lists(line, max_size=8, unique_by=lambda each: each.about)


def test_jsonl_keeps_how_a_pair_was_drawn():
    line = LabelLine("q", "c", 1, pressed_at="2026-01-31T12:00:00Z", inclusion_p=0.25, sampler="blind")
    assert read_labels(write_labels([line], "jsonl"), "jsonl") == [line]


@given(st.sampled_from(["jsonl", "csv"]), st.booleans(), lists_of(FULL))
def test_full_formats_keep_everything(chosen, raw, lines):
    raw = raw and chosen == "csv"
    assert read_labels(write_labels(lines, chosen, raw=raw), chosen, raw=raw) == lines


@given(st.sampled_from(["trec", "beir"]), lists_of(SHORT))
def test_qrels_formats_keep_ids_and_grades(chosen, lines):
    assert read_labels(write_labels(lines, chosen), chosen) == lines


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=st.sampled_from(sorted(FORMATS)), lines=lists_of(SHORT))
def test_files_survive_being_written_and_read_as_bytes(chosen, lines, tmp_path):
    write_whole(tmp_path / "labels", write_labels(lines, chosen))
    assert read_labels(read_text(tmp_path / "labels"), chosen) == lines


@given(st.sampled_from(sorted(FORMATS)), st.text(max_size=80) | TEXT)
def test_any_text_is_read_or_refused_with_its_line(chosen, text):
    refusal = ""
    try:
        read_labels(text, chosen, "given.txt")
    except RecordError as error:
        refusal = str(error)
    assert not refusal or refusal.startswith("given.txt, line ")
    assert "\n" not in refusal


@pytest.mark.parametrize("chosen", ["trec", "beir"])
def test_unsure_is_refused_where_a_format_cannot_say_it(chosen):
    with pytest.raises(InputError, match="cannot say unsure"):
        write_labels([LabelLine("q", "c", None)], chosen)


@pytest.mark.parametrize("grade", ["-1", "unsure"])
def test_minus_one_and_unsure_are_read_as_unsure(grade):
    assert read_labels(f"q 0 c {grade}", "trec") == [LabelLine("q", "c", None)]


HEADERS = {"csv": "query_id,chunk_id,grade", "beir": "query-id\tcorpus-id\tscore"}
GAPS = {"csv": ",", "beir": "\t", "trec": " "}


@pytest.mark.parametrize(
    "grade", ["4", "-2", "1.0", "NaN", "nan", "inf", "", "１", "1e0", "true", "99999999999999999999"]
)
@pytest.mark.parametrize("chosen", ["csv", "beir", "trec"])
def test_a_grade_that_is_none_is_refused_with_its_line(chosen, grade):
    gap, ids = GAPS[chosen], ["q", "c"] if chosen != "trec" else ["q", "0", "c"]
    head = [HEADERS[chosen]] if chosen in HEADERS else [gap.join([*ids, "1"])]
    text = "\n".join([*head, gap.join([*ids, grade])])
    with pytest.raises(RecordError, match="line 2"):
        read_labels(text, chosen)


@pytest.mark.parametrize(
    "bad",
    [
        '{"query_id": "q", "chunk_id": "c", "grade": NaN}',
        '{"query_id": "q", "chunk_id": "c", "grade": 1, "grade": 2}',
        '{"query_id": "q", "chunk_id": "c", "grade": -1}',
        '{"query_id": "q", "chunk_id": "c", "grade": 2.0}',
        '{"query_id": "q", "chunk_id": "c", "grade": true}',
        '{"query_id": "q", "chunk_id": "c", "grade": "2"}',
        '{"query_id": "q", "chunk_id": "c"}',
        '{"query_id": "q", "chunk_id": "c", "grade": 1, "colour": "red"}',
        '{"query_id": 7, "chunk_id": "c", "grade": 1}',
        '{"query_id": "", "chunk_id": "c", "grade": 1}',
        '{"query_id": "q", "chunk_id": "\\ud800", "grade": 1}',
        '{"query_id": "q", "chunk_id": "\\u0000", "grade": 1}',
        '{"query_id": "q", "chunk_id": "c", "grade": 1, "text_hash": "abc"}',
        '{"query_id": "q", "chunk_id": "c", "grade": 1, "inclusion_p": "1"}',
        '{"query_id": "q", "chunk_id": "c", "grade": 1, "pressed_at": "soon"}',
        '{"query_id": "q", "chunk_id": "c", "grade": 1, "at": "yesterday"}',
        '{"query_id": "q", "chunk_id": "c", "grade": 1, "note": null}',
        '["q", "c", 1]',
        '{"query_id": "q"',
        "[" * 5000,
    ],
)
def test_bad_jsonl_is_refused_with_its_line(bad):
    good = '{"query_id": "p", "chunk_id": "c", "grade": 1}'
    with pytest.raises(RecordError, match=r"^the file, line 3: "):
        read_labels(f"{good}\n\n{bad}\n", "jsonl")


def test_only_the_newline_ends_a_jsonl_line():
    line = json.dumps({"query_id": "a\u2028b\u0085c", "chunk_id": "c", "grade": 1}, ensure_ascii=False)
    assert read_labels(f"{line}\r\n", "jsonl") == [LabelLine("a\u2028b\u0085c", "c", 1)]


@pytest.mark.parametrize(
    ("chosen", "text", "line"),
    [
        ("trec", "q 0 c 1\nq 0 c 2\n", 2),
        ("beir", "query-id\tcorpus-id\tscore\nq\tc\t1\n\nq\tc\t0\n", 4),
        ("csv", "query_id,chunk_id,grade\nq,c,1\nq,c,unsure\n", 3),
        ("jsonl", '{"query_id":"q","chunk_id":"c","grade":1}\n{"query_id":"q","chunk_id":"c","grade":null}', 2),
    ],
)
def test_two_labels_that_contradict_each_other_are_refused_naming_both_lines(chosen, text, line):
    with pytest.raises(RecordError, match=rf"line {line}: .*otherwise on line"):
        read_labels(text, chosen)


def test_the_same_label_twice_is_one():
    assert read_labels("q 0 c 1\nq 0 c 1\n", "trec") == [LabelLine("q", "c", 1)]


@pytest.mark.parametrize("text", ["q c 1", "q 0 c 1 x", "q 0 c"])
def test_a_qrels_line_needs_four_columns(text):
    with pytest.raises(RecordError, match="expected 4"):
        read_labels(text, "trec")


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        ("csv", ""),
        ("csv", "query_id,chunk_id\nq,c\n"),
        ("csv", "query_id,chunk_id,grade,colour\nq,c,1,red\n"),
        ("csv", "query_id,chunk_id,grade,grade\nq,c,1,2\n"),
        ("csv", "query_id,chunk_id,grade,note\nq,c,1\n"),
        ("csv", "query_id,chunk_id,grade\nq,c,1,2\n"),
        ("csv", 'query_id,chunk_id,grade\n"q"x,c,1\n'),
        ("csv", 'query_id,chunk_id,grade\n"q,c,1\n'),
        ("beir", "q\tc\t1\n"),
        ("beir", "query-id\tcorpus-id\tscore\nq\tc\n"),
    ],
)
def test_a_table_of_another_shape_is_refused(chosen, text):
    with pytest.raises(RecordError, match="line"):
        read_labels(text, chosen)


def test_csv_cells_stay_the_text_they_are():
    text = "grade,query_id,chunk_id,note\n2,007,1e5,NA\n"
    assert read_labels(text, "csv") == [LabelLine("007", "1e5", 2, note="NA")]


def test_a_row_is_named_by_the_line_it_starts_on():
    with pytest.raises(RecordError, match="line 2: grade is 9"):
        read_labels('query_id,chunk_id,grade\n"q\nq",c,9\n', "csv")


STARTS = ["=", "+", "-", "@", "\t", "\r", "\x00", "＝", "＋", "－", "＠", "\n"]
FORMULAS = ["1+1", "cmd|' /C calc'!A0", 'HYPERLINK("http://x")', "SUM(A1:A9)"]


def test_a_formula_cell_is_written_inert_and_read_back_equal():
    for formula in (start + rest for start in STARTS for rest in FORMULAS):
        assert guard(formula) == "'" + formula
        assert unguard(guard(formula)) == formula


@given(cell=st.lists(st.sampled_from([*STARTS, "'", "a", "1"]), max_size=5).map("".join))
def test_no_guarded_cell_is_live_and_every_one_comes_back(cell):
    assert not guard(cell).startswith(tuple(STARTS))
    assert unguard(guard(cell)) == cell


def test_no_cell_of_an_exported_table_is_live_but_numbers_stay_numbers():
    line = LabelLine("=1+1", "@SUM(A1)", 3, "+bob", "-2+3", at="2026-01-31T12:00:00Z")
    (_, row) = csv.reader(io.StringIO(write_labels([line], "csv"), newline=""))
    assert row == ["'=1+1", "'@SUM(A1)", "3", "'+bob", "'-2+3", "", "", "2026-01-31T12:00:00Z"]
    assert not any(FORMULA.match(cell) for cell in row if not cell.startswith("'"))


def test_raw_csv_leaves_cells_as_they_are():
    assert "\r\n=1+1,c,3," in write_labels([LabelLine("=1+1", "c", 3)], "csv", raw=True)


@pytest.mark.parametrize(
    ("plain", "escaped"),
    [
        ("a b", "a%20b"),
        ("50%", "50%"),
        ("a%2Fb", "a%2Fb"),
        ("a%252Fb", "a%25252Fb"),
        ("a%20b", "a%2520b"),
        ("x\u2028y", "x%E2%80%A8y"),
        ("Bär", "Bär"),
    ],
)
def test_an_id_is_escaped_only_where_a_column_would_break(plain, escaped):
    assert escape_id(plain) == escaped
    assert unescape_id(escaped) == plain


@pytest.mark.parametrize("foreign", ["a%41", "100%", "%zz", "%e2%80%a8"])
def test_a_foreign_id_that_we_would_not_write_stays_as_it_is(foreign):
    assert unescape_id(foreign) == foreign


def test_pytrec_eval_and_ir_measures_read_the_exported_qrels(tmp_path):
    import ir_measures
    import pytrec_eval

    lines = [LabelLine("q 1", "c 1", 3), LabelLine("q 1", "c\u00a02", 0), LabelLine("q2", "c1", 1)]
    path = tmp_path / "labels.qrels"
    path.write_text(write_labels(lines, "trec"), encoding="utf-8", newline="")
    expected = {"q%201": {"c%201": 3, "c%C2%A02": 0}, "q2": {"c1": 1}}
    with path.open(encoding="utf-8") as file:
        assert pytrec_eval.parse_qrel(file) == expected
    read = {(row.query_id, row.doc_id): row.relevance for row in ir_measures.read_trec_qrels(str(path))}
    assert read == {(query, chunk): grade for query, of in expected.items() for chunk, grade in of.items()}


@pytest.mark.parametrize(
    ("name", "chosen"), [("a.jsonl", "jsonl"), ("a.qrels", "trec"), ("a.b.TSV", "beir"), ("a.csv", "csv")]
)
def test_a_files_ending_tells_its_format(name, chosen):
    assert format_of(name) == chosen


@pytest.mark.parametrize("name", ["labels", "a.txt"])
def test_an_unknown_ending_is_refused_naming_the_formats(name):
    with pytest.raises(InputError, match=r"jsonl\|trec\|beir\|csv"):
        format_of(name)


@pytest.mark.parametrize("function", [lambda: read_labels("", "xml"), lambda: write_labels([], "xml")])
def test_an_unknown_format_is_refused_naming_what_exists(function):
    with pytest.raises(InputError, match="jsonl, trec, beir, csv"):
        function()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no header but empty"),
        ("frage,antwort\nx,y\n", "is no header but 'frage', 'antwort'"),
        ("query_id;chunk_id;grade\nq;c;1\n", "is no header but one cell with semicolons, where commas part columns"),
    ],
)
def test_a_table_without_its_header_is_refused_with_what_stands_there(text, said):
    with pytest.raises(RecordError, match=said) as caught:
        read_labels(text, "csv", "mine.csv")
    assert "expected query_id, chunk_id, grade" in str(caught.value)
