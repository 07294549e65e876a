"""When an answer is right: numbers, words, facts, patterns, refusals; and expectations that cannot be read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.answers.check import REFUSED, RIGHT, UNCHECKED, WRONG, expected_of, final_line, numbers
from rag_core.errors import InputError

QUESTION = "What does a 7th level cleric of level 7 need to hit armor class 6?"
CASES = [
    # expected, answer, verdict
    (10, "16 for armor class 0, less 6.\nAnswer: 10", RIGHT),
    ("10", "Answer: 10 or more on a d20", RIGHT),
    (10, "Answer: 10 (level 7, armor class 6)", RIGHT),  # the others stand in the question
    (10, "Answer: 13", WRONG),
    (10, "Answer: 10 or 13", WRONG),  # it does not decide
    (10, "**Answer:** 10.", RIGHT),
    (10, "A cleric needs 10.", RIGHT),  # no such line: its last line
    (10, "Answer: not in the context", REFUSED),
    (10, "Answer: ten", WRONG),
    (-4, "Answer: \u22124", RIGHT),
    (-4, "Answer: 4", WRONG),
    (1200, "Answer: 1,200 gold pieces", RIGHT),
    ({"number": 2.5, "tolerance": 0.1}, "Answer: 2.45 miles", RIGHT),
    ({"number": 2.5, "tolerance": 0.1}, "Answer: 2.7", WRONG),
    ("three miles", "They walk Three  Miles a day.", RIGHT),
    ("three miles", "three or four miles", WRONG),
    ("miles", "smiles", WRONG),
    (["red", "blue | azure"], "Azure, then red.", RIGHT),
    (["red", "blue | azure"], "Only red.", WRONG),
    (["14", "-1"], "14 against the first and \u22121 against the second", RIGHT),
    (["14", "-1"], "14 and 1", WRONG),
    ({"pattern": r"\b1[0-9] ?feet"}, "about 14 feet", RIGHT),
    ({"pattern": r"\b1[0-9] ?feet"}, "about 24 feet", WRONG),
    ({"judge": "Only a cleric may."}, "Clerics alone.", UNCHECKED),
]


def test_an_answer_is_what_its_question_expects():
    for expected, answer, word in CASES:
        verdict = expected_of(expected).check(answer, QUESTION)
        assert verdict.word == word, (expected, answer, verdict)


def test_an_expectation_that_is_none_is_refused_in_a_sentence_that_names_the_forms():
    wrong = (
        "", [], {}, None, True, "…", [[]], {"number": "ten"}, {"number": 1, "tolerance": -1}, {"pattern": "("}, {"a": 1},
        {"number": 1, "judge": "x"}, {"text": "x", "tolerance": 1}, ["a"] * 51, float("nan"), {"judge": " "},
    )  # fmt: skip
    for value in wrong:
        with pytest.raises(InputError, match="expected"):
            expected_of(value)


@given(st.integers(-10_000, 10_000), st.text(alphabet="abc ,;:", max_size=20))
def test_a_number_is_found_whatever_words_stand_around_it(number, words):
    assert expected_of(number).check(f"Answer: {words} {number} {words}").word == RIGHT
    assert expected_of(number).check(f"Answer: {words} {number + 1} {words}").word == WRONG


@given(st.text(max_size=200), st.text(max_size=50))
def test_no_text_is_too_odd_to_be_read(text, question):
    for expected in (10, "a b", ["a", "2"], {"pattern": "a+"}):
        assert expected_of(expected).check(text, question).word in (RIGHT, WRONG, REFUSED)
    assert final_line(text) in text
    assert all(isinstance(number, float) for number in numbers(text))
