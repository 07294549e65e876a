"""Verdicts: what must hold, where the original design is wrong, and that no text breaks matching."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.errors import InputError
from rag_core.rules.match import chip_text, decide, reason_text, would_stay_text
from rag_core.rules.rule import Rule, WhenNamed, parse_rule, read_rule
from rag_core.rules.templates import propose

CLERICS = "I.A. ATTACK MATRIX FOR CLERICS, DRUIDS AND MONKS - Opponent Armor Class {}"
FIGHTERS = (
    "I.B. ATTACK MATRIX FOR FIGHTERS, PALADINS, RANGERS, BARDS, AND 0 LEVEL HALFLINGS AND HUMANS - Armor Class {}"
)


def admits(title, query, mode="token"):
    return decide(propose(title).rule, query, mode).satisfied


def holds(rule, query, mode="token"):
    return decide(parse_rule(rule, "c1"), query, mode).satisfied


def test_verdicts_for_a_cleric_against_armor_class_6():
    query = "What does a 7th level cleric with strength 17 need to roll to hit armor class 6?"
    assert admits(CLERICS.format(6), query)
    assert not admits(CLERICS.format(5), query)
    assert not admits(FIGHTERS.format(6), query)
    assert propose("Strength") is None


FIGHTER_AND_FIGHTER = (
    "Who is more likely to win in a fight - a 4th level fighter with an armor class of 3 or a 7th level fighter with "
    "an armor class of 9?"
)
FIGHTER_AND_DRUID = FIGHTER_AND_FIGHTER.replace("7th level fighter", "7th level druid")


def test_verdicts_for_a_fighter_with_armor_class_3_and_a_fighter_with_armor_class_9():
    assert admits(FIGHTERS.format(3), FIGHTER_AND_FIGHTER)
    assert admits(FIGHTERS.format(9), FIGHTER_AND_FIGHTER)
    assert not admits(FIGHTERS.format(4), FIGHTER_AND_FIGHTER)
    assert not admits(CLERICS.format(3), FIGHTER_AND_FIGHTER)


def test_known_limit_rules_see_words_and_not_who_hits_whom():
    admitted = [title for title in (FIGHTERS, CLERICS) for n in (3, 9) if admits(title.format(n), FIGHTER_AND_DRUID)]
    assert admitted == [FIGHTERS, FIGHTERS, CLERICS, CLERICS]  # two of the four are not needed


def test_wrong_in_the_original_class_names_as_four_groups_fail_a_query_that_names_only_a_cleric():
    query = "What does a cleric need to hit armor class 6?"
    four = {"contain_one_of": [["cleric"], ["druid"], ["monk"], ["armor class 6", "ac 6"]]}
    assert not holds(four, query)
    assert holds({"contain_one_of": [["cleric", "druid", "monk"], ["armor class 6", "ac 6"]]}, query)


def test_wrong_in_the_original_its_terms_never_match_its_own_second_and_third_query():
    rule = {"contain_one_of": [["armor class 3", "ac 3", "a.c. 3"]]}
    for query in (FIGHTER_AND_FIGHTER, FIGHTER_AND_DRUID):
        assert not holds(rule, query, "substring")
        assert holds(rule, query, "token")


@pytest.mark.parametrize(
    ("term", "query"), [("ac 1", "to hit ac 10"), ("int", "the point"), ("10", "roll 2d10"), ("10", "100 gold")]
)
def test_wrong_in_the_original_plain_substring_matches_inside_other_words_and_numbers(term, query):
    assert holds({"contain": term}, query, "substring")
    assert not holds({"contain": term}, query, "token")


def test_wrong_in_the_original_a_nested_rule_is_not_metadata_so_it_is_read_from_a_json_string():
    rule = parse_rule({"contain_one_of": [["cleric", "druid"], ["ac 6"]]}, "c1")
    assert isinstance(rule.as_json(), str)
    assert read_rule(rule.as_json()) == rule


def test_wrong_in_the_original_both_ends_of_a_range_as_terms_fail_a_number_inside_it():
    query = "a psionic blast against intelligence 12"
    assert not holds({"contain_all_of": ["10", "13"]}, query)
    assert holds({"number_in": [{"label": ["intelligence"], "min": 10, "max": 13}]}, query)


def test_every_group_needs_one_term_and_every_key_must_hold():
    rule = {"contain_one_of": [["a1", "b1"], ["c1"]], "contain_all_of": ["d1", "e1"], "contain": "f1"}
    assert holds(rule, "b1 c1 d1 e1 f1")
    for missing in ("b1", "c1", "d1", "e1", "f1"):
        assert not holds(rule, "b1 c1 d1 e1 f1".replace(missing, ""))


def test_the_verdict_names_term_and_span_per_group_or_that_none_did():
    query = "A CLERIC against an armor class of 3 or 6"
    verdict = decide(
        parse_rule({"contain_one_of": [["druid", "cleric"], ["ac 6", "armor class 6"], ["monk"]]}, "c"), query
    )
    first, second, third = verdict.parts
    assert (first.term, [query[a:b] for a, b in first.spans]) == ("cleric", ["CLERIC"])
    assert (second.term, [query[a:b] for a, b in second.spans]) == ("armor class 6", ["armor class", "6"])
    assert (third.term, third.spans) == (None, ())
    assert verdict.missing == (third,)


def test_the_verdict_names_the_label_and_the_number():
    query = "a 7th level cleric"
    part = decide(parse_rule({"number_in": [{"label": ["level"], "min": 7, "max": 9}]}, "c"), query).parts[0]
    assert part.term == "level"
    assert [query[a:b] for a, b in part.spans] == ["7th", "level"]


def test_a_substring_span_points_into_the_original_text():
    query = "İ  Armor \n Class 6"
    part = decide(parse_rule({"contain": "armor class 6"}, "c"), query, "substring").parts[0]
    assert [query[a:b] for a, b in part.spans] == ["Armor \n Class 6"]


SUM = {"number_in": [{"sum_of": [["intelligence", "int"], ["wisdom"]], "min": 24, "max": 26}]}


@pytest.mark.parametrize(
    ("query", "satisfied"),
    [
        ("intelligence 12 and wisdom 13", True),
        ("int of 12, wisdom of 14", True),
        ("int of 12, wisdom of 15", False),
        ("intelligence 25", False),
        ("intelligence 3 or 12 and wisdom 13", True),
        ("wisdom 13", False),
    ],
)
def test_a_sum_of_one_number_per_label(query, satisfied):
    assert holds(SUM, query) is satisfied


def test_too_many_combinations_keep_the_chunk():
    numbers = " or ".join(str(number) for number in range(200))
    rule = {"number_in": [{"sum_of": [["intelligence"], ["wisdom"]], "min": 100_000}]}
    assert holds(rule, f"intelligence {numbers}; wisdom {numbers}")


def test_the_reason_says_what_is_missing_and_what_would_keep():
    verdict = decide(propose(CLERICS.format(7)).rule, "a cleric against armor class 6")
    assert reason_text(verdict) == "no word of: armor class 7 / ac 7 / a.c. 7"
    assert would_stay_text(verdict) == "would stay if the query held one of: armor class 7, ac 7, a.c. 7"


def test_the_reason_for_a_number_says_range_and_what_the_query_gave():
    rule = parse_rule({"number_in": [{"label": ["level"], "min": 7, "max": 9}]}, "c")
    assert reason_text(decide(rule, "level 4")) == "no number in range for: level from 7 to 9 (the query says 4)"
    assert reason_text(decide(rule, "a cleric")) == "no number for: level from 7 to 9"
    assert would_stay_text(decide(rule, "a cleric")) == "would stay if the query held a number for level from 7 to 9"


def test_chips_of_a_sum_and_of_open_ranges():
    rule = parse_rule({**SUM, "contain_one_of": [["a1", "b1"]]}, "c")
    assert [chip_text(part) for part in decide(rule, "x").parts] == ["a1 / b1", "intelligence + wisdom from 24 to 26"]
    open_ended = parse_rule({"number_in": [{"label": ["x"], "min": 3}, {"label": ["x"], "max": 4}]}, "c")
    assert [chip_text(part) for part in decide(open_ended, "x").parts] == ["x of at least 3", "x of at most 4"]


def test_an_unknown_mode_is_an_input_error():
    with pytest.raises(InputError, match="mode is 'regex', expected one of token, substring"):
        decide(Rule(contain="x"), "x", "regex")


VOCABULARY = "armor class ac a.c. 6 -6 16 7th level of the and or , / - 10-13 . St cleric −6 classes ﬁ İ"
WORDS = st.sampled_from(VOCABULARY.split())
TEXTS = st.text(max_size=60) | st.lists(WORDS, max_size=14).map(" ".join) | st.lists(WORDS, max_size=14).map("".join)
TERMS = TEXTS.filter(lambda text: isinstance(parsed(text), Rule))
MODES = st.sampled_from(["token", "substring"])


def parsed(term):
    return read_rule({"contain": term})


@given(TERMS, TEXTS, MODES)
def test_spans_always_lie_inside_the_text_and_are_not_empty(term, query, mode):
    for part in decide(parsed(term), query, mode).parts:
        assert all(0 <= start < end <= len(query) for start, end in part.spans)
        assert bool(part.spans) is part.satisfied


@given(TERMS, MODES)
def test_a_term_holds_itself(term, mode):
    assert decide(parsed(term), term, mode).satisfied


def test_a_question_in_the_plural_or_with_other_fillers_gets_the_verdict_of_the_singular():
    rule = {
        "contain_one_of": [["green dragon", "wyrmling"], ["armor class 6"]],
        "number_in": [{"label": ["level"], "min": 3}],
    }
    for query in (
        "a green dragon of level 3 with armor class 6",
        "green dragons at levels 3 and 9, armor classes of 6 or 7",
        "the wyrmlings are level 4: an armor class that is at 6. The armor class is 6",
    ):
        assert holds(rule, query), query
        assert not holds(rule, query.replace("dragon", "giant").replace("wyrmling", "ogre"))
        assert not holds(rule, query.replace("6", "8"))
    assert not decide(parse_rule(rule, "c1"), "green dragons at levels 3, armor class 6", plurals=False).satisfied
    assert decide(parse_rule(rule, "c1"), "green dragon at level 3, armor class 6", plurals=False).satisfied


@given(TERMS, TEXTS)
def test_substring_mode_is_the_literal_rule(term, query):
    squeezed = [" ".join(text.lower().split()) for text in (term, query)]
    if term == term.strip() and query == query.strip():
        assert decide(parsed(term), query, "substring").satisfied is (squeezed[0] in squeezed[1])


@given(TEXTS, st.integers(-20, 20), st.integers(-20, 20))
def test_a_number_condition_never_crashes_and_its_spans_lie_inside(query, one, other):
    low, high = sorted((one, other))
    rule = {"number_in": [{"label": ["level", "armor class"], "min": low, "max": high}, {**SUM["number_in"][0]}]}
    for part in decide(parse_rule(rule, "c"), query).parts:
        assert all(0 <= start < end <= len(query) for start, end in part.spans)


NAMED = Rule(when_named=(WhenNamed(("black",), ("black dragon", "blue dragon")),))


@pytest.mark.parametrize(
    ("query", "stays"),
    [
        ("Which dragons breathe cold?", True),
        ("How old is a blue dragon?", False),
        ("How old is a black dragon?", True),
        ("Is a blue dragon stronger than a black one?", True),
        ("", True),
    ],
)
def test_a_value_is_asked_for_only_where_the_query_names_one_of_its_kind(query, stays):
    for mode in ("token", "substring"):
        assert decide(NAMED, query, mode).satisfied == stays


def test_a_drop_by_a_named_value_says_which_one():
    verdict = decide(NAMED, "How old is a blue dragon?")
    assert reason_text(verdict) == "no word of: black (the query names blue dragon)"
    assert would_stay_text(verdict) == "would stay if the query held black"
