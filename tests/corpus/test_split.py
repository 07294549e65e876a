"""Splitting chunks over a window."""

from hypothesis import given
from hypothesis import strategies as st

from rag_core.corpus.split import split_chunk
from rag_core.types import Chunk


def words(texts):
    """A token a word, and two for the ends."""
    return [len(text.split()) + 2 for text in texts]


def texts(chunk, window):
    return [part.text for part in split_chunk(chunk, window, words)]


def test_a_chunk_that_fits_stays_itself():
    chunk = Chunk("a", "T", "one two three")
    assert split_chunk(chunk, 10, words) == [chunk]


def test_paragraphs_are_packed_while_they_fit():
    text = "one two three four five\n\nsix seven\n\neight nine ten eleven twelve thirteen\n"
    assert texts(Chunk("a", "", text), 15) == [
        "one two three four five\n\nsix seven\n\n",
        "eight nine ten eleven twelve thirteen\n",
    ]


def test_a_long_paragraph_falls_into_lines_and_a_long_line_into_words():
    text = "a b c\nd e f\n" + "w " * 12
    assert texts(Chunk("a", "", text), 8) == ["a b c\n", "d e f\n", "w w ", "w w ", "w w ", "w w ", "w w ", "w w "]


def test_parts_are_numbered_and_carry_what_the_chunk_has():
    chunk = Chunk("a#b", "T", "x " * 30, "rule", {"contain": "x"}, ("r",), {"source": "f"})
    parts = split_chunk(chunk, 20, words)
    assert [part.id for part in parts] == [f"a#b@{number}" for number in range(1, len(parts) + 1)]
    assert all(
        (part.title, part.type, part.query_must, part.ref_ids) == ("T", "rule", {"contain": "x"}, ("r",))
        for part in parts
    )
    assert dict(parts[0].metadata) == {"source": "f", "part": 1, "parts": len(parts)}


def test_parts_begin_at_headers_and_bold_lines_and_carry_them_in_their_titles():
    text = "## Ogre\nBig.\n\n#### Habits\n" + "It sleeps. " * 6 + "\n\n**Treasure**\n" + "Gold. " * 12
    parts = split_chunk(Chunk("o", "Ogre", text), 24, words)
    assert [part.title for part in parts] == ["Ogre", "Ogre: Habits", "Ogre: Treasure"]
    assert "".join(part.text for part in parts) == text


def test_every_part_of_a_table_has_its_head():
    rows = "".join(f"| {level} | {level * 2} |\n" for level in range(1, 30))
    parts = texts(Chunk("a", "", f"| level | hp |\n|---|---|\n{rows}"), 30)
    assert len(parts) > 5
    assert all(part.startswith("| level | hp |\n|---|---|\n|") for part in parts)
    assert "".join(part.removeprefix("| level | hp |\n|---|---|\n") for part in parts) == rows


@given(st.text(), st.text(), st.integers(40, 60))
def test_no_part_is_over_the_window_whatever_the_text_and_title(title, text, window):
    def letters(some):
        return [len(one) + 2 for one in some]

    for part in split_chunk(Chunk("a", title[:10], text * 5), window, letters):
        assert letters([part.text])[0] + letters([part.title])[0] <= window + letters([""])[0] or part.text == text * 5


@given(
    st.lists(st.sampled_from(["word", "w" * 9, " ", "\n", "\n\n", "\t", "\r\n", "\u2028"])).map("".join),
    st.integers(8, 20),
)
def test_the_parts_joined_are_the_text_and_each_fits(text, window):
    parts = texts(Chunk("a", "", text), window)
    assert "".join(parts) == text
    assert all(words([part])[0] <= window for part in parts)
