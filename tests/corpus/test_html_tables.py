"""HTML tables read as rows with their headers, whatever they are made of."""

from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.corpus.html_tables import plain_tables
from rag_core.corpus.load import load

SAVES = """<table><caption>Saving throws</caption>
<tr><th rowspan=2>Level</th><th colspan="2">Saves</th></tr><tr><th>Death</th><th>Wands</th></tr>
<tr><td colspan=3>Fighter</td></tr>
<tr><td>1</td><td>12</td><td>13 &amp; up</td></tr>

<tr><td>2<td>11<td><b>12</b><br>or less</table>"""


def test_each_row_says_its_group_and_each_cell_the_headers_above_it():
    assert plain_tables(f"Before\n{SAVES}\nafter") == (
        "Before\n\nSaving throws\n"
        "- Fighter | Level: 1 | Saves > Death: 12 | Saves > Wands: 13 & up\n"
        "- Fighter | Level: 2 | Saves > Death: 11 | Saves > Wands: 12 or less\n"
        "\nafter"
    )


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("<tr><td>Armor</td><td>AC</td></tr><tr><td>Leather</td><td>13</td></tr>", ["Armor: Leather | AC: 13"]),
        ("<tr><td>1</td><td>2</td></tr><tr><td>3</td><td>4</td></tr>", ["1 | 2", "3 | 4"]),
        ("<thead><tr><td>A</td></tr></thead><tbody><tr><td>x</td></tr></tbody>", ["A: x"]),
        ("<tr><th>A</th><th>B</th></tr>", ["A | B"]),
        ("<tr><th>A</th></tr><tr><td>x<table><tr><td>y</td></tr></table></td></tr>", ["A: x y"]),
        ("<tr><th>A</th></tr><tr><td rowspan=2>x</td></tr><tr></tr><tr><td>z", ["A: x", "A: x", "A: z"]),
        ("<!-- <tr><td>no</td></tr> --><tr><th>A</th></tr><tr><td>x</td></tr>", ["A: x"]),
    ],
)
def test_tables_as_people_write_them(table, rows):
    found = plain_tables(f"<table>{table}</table>").strip().split("\n")
    assert [line.removeprefix("- ") for line in found] == rows


@pytest.mark.parametrize(
    "text", ["plain", "```\n<table><tr><td>x</td></tr></table>\n```\n", "a `<table>` tag", "    <table>"]
)
def test_text_without_a_table_and_tables_in_code_stay_as_they_are(text):
    assert plain_tables(text) == text


def test_a_file_is_ingested_with_its_tables_as_rows(tmp_path):
    (tmp_path / "a.md").write_text(f"## Saves\n\n{SAVES}\n")
    (chunk,) = load([tmp_path / "a.md"]).chunks
    assert "<" not in chunk.text
    assert "Level: 1 | Saves > Death: 12" in chunk.text


PIECES = st.sampled_from(
    ["<table>", "</table>", "<tr>", "<td colspan=9999999>", "<th rowspan=99999>", "x", "</td>", "<!--", "`"]
)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_no_nonsense_fails_and_words_outside_tables_stay(text):
    assert plain_tables(f"before\n\n{text}").startswith("before\n")


@pytest.mark.parametrize(
    "piece", ["<!--", "<!", "<a ", "</a", "<table>", "<table ", "<td a='", "&#", "<tr><td>", "<script>"]
)
def test_hostile_tables_are_read_in_time(piece):
    started = perf_counter()
    plain_tables("<table>" + piece * (100_000 // len(piece)))
    assert perf_counter() - started < 10  # quadratic readers need minutes
