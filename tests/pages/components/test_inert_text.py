"""Marking parts of a text loses none of it."""

from hypothesis import given
from hypothesis import strategies as st

from pages.bench.drawers import query_words
from pages.components.inert_text import TextRun, marked

spans = st.lists(st.tuples(st.integers(-5, 40), st.integers(-5, 40)), max_size=8)


@given(st.text(max_size=30), spans)
def test_marked_text_is_the_whole_text(text, parts):
    assert "".join(run.text for run in marked(text, parts)) == text


@given(st.text(max_size=30), spans)
def test_a_character_is_marked_exactly_if_a_part_covers_it(text, parts):
    covered = [any(start <= at < end for start, end in parts) for at in range(len(text))]
    assert [run.mark != "" for run in marked(text, parts) for _ in run.text] == covered


def test_overlapping_parts_become_one():
    assert marked("armor class 6", [(0, 8), (6, 11)]) == (TextRun("armor class", "word"), TextRun(" 6"))


def test_the_words_of_the_query_are_found_without_the_common_ones():
    text = "The cleric rolls 10 against armor class 6."
    found = query_words(text, "What does a 7th level cleric need to hit an armor class of 6?")
    assert [text[start:end] for start, end in found] == ["cleric", "armor", "class", "6"]
