"""Words and numbers: signs, ranges, abbreviations, places in the original, and no crash on any text."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.text import FILLERS, STOP_WORDS, fold, folded, tokenize, words

MINUS = "−"
EN_DASH = "–"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("AC 6", ["ac", "6"]),
        ("AC6", ["ac", "6"]),
        ("AC-6", ["ac", "6"]),
        ("AC -6", ["ac", "-6"]),
        ("AC:-6", ["ac", "-6"]),
        ("AC (-6)", ["ac", "-6"]),
        (f"AC{EN_DASH}6", ["ac", "6"]),
        (f"AC {EN_DASH}6", ["ac", "-6"]),
        (f"AC{MINUS}6", ["ac", "-6"]),
        (f"AC {MINUS}6", ["ac", "-6"]),
        ("10-13", ["10", "13"]),
        (f"10{EN_DASH}13", ["10", "13"]),
        (f"10{MINUS}13", ["10", "13"]),
        ("-10--13", ["-10", "-13"]),
        ("10 - 13", ["10", "13"]),
        ("+1 sword", ["1", "sword"]),
        ("sword+1", ["sword", "1"]),
        ("-0", ["0"]),
        ("4th-level", ["4th", "level"]),
        ("2d10", ["2d10"]),
        ("-2d10", ["2d10"]),
        ("a.c. 6", ["ac", "6"]),
        ("a.c.6", ["ac", "6"]),
        ("I.A. matrix", ["ia", "matrix"]),
        ("J.R.R.Smith", ["jrr", "smith"]),
        ("1.5 and 2.", ["1.5", "and", "2"]),
        ("chapter 1.2.3", ["chapter", "1.2.3"]),
        ("Magic-User", ["magic", "user"]),
        ("the fighter's and the fighters' axes", ["the", "fighter", "and", "the", "fighters", "axes"]),
        ("snake_case 6", ["snake", "case", "6"]),
        ("", []),
        ("--- … !", []),
    ],
)
def test_words_and_numbers(text, expected):
    assert words(text) == expected


def test_case_width_and_ligatures_fold_together():
    assert fold("ＦＩＲＥ") == fold("ﬁre") == fold("Fire") == "fire"


def test_composed_and_decomposed_accents_are_one_word():
    assert words("e\u0301te\u0301") == words("\u00e9t\u00e9") == ["\u00e9t\u00e9"]


def test_a_span_points_into_the_original_where_folding_changed_the_length():
    text = "Große \ufb01re e\u0301te\u0301 AC\u22126"
    assert [text[token.start : token.end] for token in tokenize(text)] == text.replace("\u2212", " \u2212").split()


def test_a_sentence_ends_at_a_full_stop_but_not_inside_an_abbreviation_or_a_decimal():
    found = tokenize("an a.c. of 1.5. Next? Last")
    assert [(token.text, token.sentence) for token in found][-4:] == [("of", 0), ("1.5", 0), ("next", 1), ("last", 2)]


def test_numbers_and_ordinals_have_their_value():
    found = {token.text: (token.value, token.ordinal) for token in tokenize("the 7th of -6, 1.5 or 2d10")}
    assert found["7th"] == (7.0, True)
    assert found["-6"] == (-6.0, False)
    assert found["1.5"] == (1.5, False)
    assert found["2d10"] == (None, False)


def test_a_number_of_ten_thousand_digits_is_no_error():
    assert tokenize("9" * 10_000)[0].value == float("inf")


def test_the_mark_before_a_token_is_known_and_a_comma_wins():
    assert [token.joint for token in tokenize("3, 4/5 6-7 8,/9")] == ["", ",", "/", "", "-", "", ","]


def test_fillers_are_those_of_the_rule_and_stop_words_hold_no_number():
    assert sorted(FILLERS) == ["a", "an", "are", "at", "is", "of", "the", "to", "was"]
    assert FILLERS < STOP_WORDS
    assert not any(word.isdigit() for word in STOP_WORDS)


TEXTS = st.text() | st.text(alphabet="aAcC 0169.-–−,:/;'’+&é\u0301ﬁ İß d\n")


@given(TEXTS)
def test_spans_lie_in_order_inside_the_text(text):
    found = tokenize(text)
    assert all(0 <= token.start < token.end <= len(text) for token in found)
    assert all(left.start <= right.start for left, right in itertools.pairwise(found))


@given(TEXTS)
def test_words_are_the_texts_of_the_tokens(text):
    assert words(text) == [token.text for token in tokenize(text)]


@given(TEXTS)
def test_every_folded_character_leads_back_into_the_text(text):
    plain = folded(text)
    spans = [plain.span(at, at + 1) for at in range(len(plain.text))]
    assert all(0 <= start < end <= len(text) for start, end in spans)


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126)))
def test_case_does_not_change_the_words(text):
    assert words(text.upper()) == words(text.lower())
