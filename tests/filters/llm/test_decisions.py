"""Answers of models, good and bad, and what each of them may decide."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.filters.llm.decisions import ACTIONS, parse_action, read_decisions

IDS = ["alpha", "beta", "guide#x->y", "7", "delta"]


def actions(text, ids=IDS):
    return {number: decision.action for number, decision in read_decisions(text, ids).decisions.items()}


FAULTS = {
    "plain lines": ("1 -> KEEP\n2 -> DISCARD\n3 -> EXPAND_3", {1: "KEEP", 2: "DISCARD", 3: "EXPAND_3"}),
    "by id": ("alpha -> KEEP\nbeta -> DISCARD", {1: "KEEP", 2: "DISCARD"}),
    "numbered ids": ("1. alpha -> KEEP\n2. beta -> DISCARD", {1: "KEEP", 2: "DISCARD"}),
    "numbering that disagrees with the id": ("1. beta -> KEEP", {2: "KEEP"}),
    "bullets": ("- 1 -> KEEP\n* 2 -> DISCARD\n• 3 -> KEEP", {1: "KEEP", 2: "DISCARD", 3: "KEEP"}),
    "other arrow": ("1 → KEEP\n2 => DISCARD\n3 --> KEEP", {1: "KEEP", 2: "DISCARD", 3: "KEEP"}),
    "id with an arrow": ("guide#x->y -> EXPAND_1", {3: "EXPAND_1"}),
    "id that is a number out of range": ("7 -> KEEP", {4: "KEEP"}),
    "full stop": ("1 -> KEEP.", {1: "KEEP"}),
    "lower case": ("1 -> keep\n2 -> discard\n3 -> expand_5", {1: "KEEP", 2: "DISCARD", 3: "EXPAND_5"}),
    "bold": ("**1** -> **KEEP**\n2 -> `DISCARD`", {1: "KEEP", 2: "DISCARD"}),
    "spaces": ("   1   ->    KEEP   \n\n\n2->DISCARD", {1: "KEEP", 2: "DISCARD"}),
    "code fence": ("```\n1 -> KEEP\n```", {1: "KEEP"}),
    "json": ('{"decisions": [{"id": 1, "action": "KEEP"}, {"id": 2, "action": "DISCARD"}]}', {1: "KEEP", 2: "DISCARD"}),
    "json in a fence with prose": (
        'Sure! ```json\n{"decisions": [{"id": "2", "action": "keep"}]}\n``` Done.',
        {2: "KEEP"},
    ),
    "bare json list": ('[{"id": 1, "action": "KEEP"}]', {1: "KEEP"}),
    "json mapping": ('{"1": "KEEP", "beta": {"action": "DISCARD"}}', {1: "KEEP", 2: "DISCARD"}),
    "json list of lines": ('["1 -> KEEP", "2 -> DISCARD"]', {1: "KEEP", 2: "DISCARD"}),
    "cut json": ('{"decisions": [{"id": 1, "action": "KEEP"}, {"id": 2, "act', {1: "KEEP"}),
    "json number as float": ('[{"id": 2.0, "action": "KEEP"}, {"id": 2.5, "action": "KEEP"}]', {2: "KEEP"}),
    "duplicate json keys": ('{"1": "KEEP", "1": "DISCARD"}', {1: "KEEP"}),
    "NaN": ('[{"id": NaN, "action": "KEEP"}, {"id": 1, "action": "KEEP"}]', {1: "KEEP"}),
    "true is no number": ('[{"id": true, "action": "KEEP"}]', {}),
    "prose around": ("I looked at all.\n1 -> KEEP because it answers\nThat is all -> done", {1: "KEEP"}),
    "order inside a reason": ("1 -> KEEP because 2 -> DISCARD", {1: "KEEP"}),
    "same id, other action": ("1 -> KEEP\n1 -> DISCARD", {1: "KEEP"}),
    "colon": ("1: KEEP\n2 - DISCARD\ncandidate 3: KEEP", {1: "KEEP", 2: "DISCARD", 3: "KEEP"}),
    "unknown number": ("9 -> KEEP\n0 -> KEEP\n-1 -> KEEP", {}),
    "unknown id": ("omega -> KEEP", {}),
    "unknown action": ("1 -> MAYBE", {1: "KEEP"}),
    "EXPAND_2": ("1 -> EXPAND_2\n2 -> EXPAND_4\n3 -> EXPAND_9", {1: "EXPAND_1", 2: "EXPAND_3", 3: "EXPAND_5"}),
    "EXPAND_999999": ("1 -> EXPAND_999999\n2 -> EXPAND_" + "9" * 5000, {1: "EXPAND_5", 2: "EXPAND_5"}),
    "EXPAND_-1": ("1 -> EXPAND_-1\n2 -> EXPAND_0", {1: "KEEP", 2: "KEEP"}),
    "bare EXPAND": ("1 -> EXPAND", {1: "EXPAND_1"}),
    "NUL and bidi marks": ("\u202e1\x00 -> KE\u200bEP", {1: "KEEP"}),
    "full width": ("1 -> ＫＥＥＰ", {1: "KEEP"}),
    "byte order mark": ('\ufeff{"1": "KEEP"}', {1: "KEEP"}),
    "deep nesting": ("[" * 5000 + "]" * 5000, {}),
    "deep objects": ('{"a":' * 5000, {}),
    "empty": ("", {}),
    "prose": ("I am sorry, I cannot help with that -> really.", {}),
    "the word alone, of many": ("KEEP", {}),
    "crlf": ("1 -> KEEP\r\n2 -> DISCARD\r\n", {1: "KEEP", 2: "DISCARD"}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_answer_decides(fault):
    text, expected = FAULTS[fault]
    assert actions(text) == expected


def test_what_has_no_effect_is_counted():
    reading = read_decisions("9 -> KEEP\n1 -> KEEP\n1 -> DISCARD\n2 -> PERHAPS\n3 -> EXPAND_2\n4 -> EXPAND_0", IDS)
    assert reading.ignored == {"unknown_ids": 1, "repeated_ids": 1, "unknown_actions": 1, "clamped_depths": 2}


def test_asked_about_one_a_bare_action_is_an_answer():
    assert actions("DISCARD", ["only"]) == {1: "DISCARD"}
    assert actions('{"action": "EXPAND_1"}', ["only"]) == {1: "EXPAND_1"}


def test_a_reason_comes_along_on_one_line_and_short():
    reading = read_decisions(json.dumps([{"id": 1, "action": "KEEP", "reason": "a\nb" + "x" * 1000}]), IDS)
    assert reading.decisions[1].reason.startswith("a b")
    assert len(reading.decisions[1].reason) == 300
    assert read_decisions("2 -> DISCARD (another product)", IDS).decisions[2].reason == "another product"


def test_ten_megabytes_are_not_read_to_the_end():
    assert actions("1 -> KEEP\n" + "x" * 10_000_000 + "\n2 -> KEEP") == {1: "KEEP"}


@pytest.mark.parametrize(
    "text", ["[" * 200_000, "{" * 200_000, '{"a":' * 40_000, "->" * 100_000, "1 " * 100_000, "{}" * 100_000]
)
def test_hostile_repetition_decides_nothing(text):
    assert actions(text) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("KEEP", ("KEEP", True)),
        ("EXPAND_3", ("EXPAND_3", True)),
        ("expand 3", ("EXPAND_3", True)),
        ("EXPAND-5", ("EXPAND_5", True)),
        ("EXPAND_2", ("EXPAND_1", False)),
        ("EXPAND_0", ("KEEP", False)),
        ("KEEPER", (None, True)),
        ("EXPANDED", (None, True)),
        ("", (None, True)),
    ],
)
def test_an_action_is_read_at_the_beginning_of_a_text(text, expected):
    assert parse_action(text) == expected


def lawful(text, ids):
    reading = read_decisions(text, ids)
    assert set(reading.decisions) <= set(range(1, len(ids) + 1))
    assert {decision.action for decision in reading.decisions.values()} <= set(ACTIONS)
    assert all(decision.depth in (0, 1, 3, 5) for decision in reading.decisions.values())
    assert all(count >= 0 for count in reading.ignored.values())


@given(st.text(), st.lists(st.text(min_size=1), min_size=1, max_size=8))
def test_any_text_decides_only_known_candidates_with_known_actions(text, ids):
    lawful(text, ids)


PIECES = [
    *(
        "1",
        "2",
        "9",
        "-3",
        "alpha",
        "guide#x->y",
        "->",
        "→",
        "=>",
        ":",
        " ",
        "\n",
        "\r",
        "\t",
        "KEEP",
        "keep",
        "DISCARD",
    ),
    *(
        "EXPAND_1",
        "EXPAND_99999",
        "EXPAND_-1",
        "EXPAND",
        "MAYBE",
        "**",
        "`",
        "```json",
        "- ",
        "1. ",
        "#",
        '"',
        "'",
        ",",
    ),
    *("{", "}", "[", "]", '{"decisions": [', '{"id": 1, "action": "KEEP"}', '"action":', '"id":', "NaN", "Infinity"),
    *(
        "true",
        "null",
        "\x00",
        "\u202e",
        "\u200b",
        "\ufeff",
        "\ud800",
        "é",
        "漢",
        "\U0001f600",
        "because",
        "1e999",
        "\\",
        "\\u0041",
    ),
]


def fuzz(count, seed):
    dice = random.Random(seed)
    for _ in range(count):
        lawful("".join(dice.choices(PIECES, k=dice.randrange(0, 40))), IDS)


@pytest.mark.parametrize("count", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_fuzzed_answers_decide_only_about_known_candidates(count):
    fuzz(count, 2)
