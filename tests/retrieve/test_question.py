"""What may be asked."""

import pytest

from rag_core.errors import InputError
from rag_core.retrieve.question import check_question


def test_a_question_is_taken_without_the_space_around_it():
    assert (
        check_question("  What hits\tarmor class 6?\nAnd why – “so”? 🐉 ")
        == "What hits\tarmor class 6?\nAnd why – “so”? 🐉"
    )
    assert len(check_question("x" * 2000)) == 2000


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"),
        (" \n\t", "is empty"),
        ("x" * 5000, "5,000 characters, expected at most 2,000"),
        ("a\x00b", r"U\+0000 at position 2"),
        ("a\x1b[31m", r"U\+001B"),
        ("a\x85b", r"U\+0085"),
        ("a\ud800", r"U\+D800"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_sentence(text, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        check_question(text)
    assert "\n" not in str(caught.value)
