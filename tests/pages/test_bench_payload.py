"""The Bench's payload: what is packed comes out again, titles are split and not changed, events come once and checked."""

import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.bench.component import FIELDS, acknowledged, parse_events
from pages.bench.payload import (
    BenchFigures,
    BenchKnob,
    BenchLine,
    BenchStage,
    Payload,
    Pipe,
    Steps,
    count_changes,
    pack,
    split_titles,
)


def unpack(data):
    length = struct.unpack_from("<I", data)[0]
    assert (4 + length) % 8 == 0
    start = 4 + length

    def arrays(value):
        if isinstance(value, dict) and value.keys() >= {"at", "type", "shape"}:
            assert value["at"] % 8 == 0
            size, at = int(np.prod(value["shape"], dtype=int)), start + value["at"]
            if value["type"] == "bit":
                packed = np.frombuffer(data, np.uint8, -(-size // 8), at)
                return np.unpackbits(packed)[:size].reshape(value["shape"]).astype(bool)
            array = np.frombuffer(data, "<" + value["type"], size, at).reshape(value["shape"])
            return arrays(value["values"])[array] if "values" in value else array
        if isinstance(value, dict):
            return {name: arrays(inner) for name, inner in value.items()}
        return [arrays(inner) for inner in value] if isinstance(value, list) else value

    return arrays(json.loads(data[4:start]))


def payload(*knobs, **changes):
    line = BenchLine("all", 3, 3, BenchFigures(0.5, None, float("nan"), 2.0))
    return Payload(1, (Pipe("A", "a"),), (BenchStage("TopK", "Fixed k", knobs=knobs),), line, **changes)


@given(st.integers(1, 7), st.integers(0, 5), st.text(max_size=20))
def test_arrays_and_words_come_out_as_they_went_in(positions, rows, notice):
    chance = np.random.default_rng(positions)
    steps = Steps(chance.random((4, positions)), chance.random((4, positions)), chance.random((rows, positions)) > 0.5)
    knob = BenchKnob("k", "keep", 1.0, np.arange(float(positions)), steps=steps)
    header = unpack(pack(payload(knob, notice=notice)))
    (out,) = header["stages"][0]["knobs"]
    for name in ("means", "one", "kept"):
        np.testing.assert_array_equal(out["steps"][name], getattr(steps, name))
    np.testing.assert_array_equal(out["positions"], knob.positions)
    assert header["notice"] == notice
    assert header["all"]["a"] == {"precision": 0.5, "recall": None, "f": None, "kept": 2.0}


@given(st.integers(30, 60), st.integers(1, 90), st.booleans())
def test_figures_of_every_question_travel_exactly_and_only_to_the_zoom_that_draws_them(questions, positions, every):
    f = np.random.default_rng(positions).integers(0, 7, (questions, positions)) / 6
    f[0, 0] = np.nan
    steps = Steps(np.zeros((4, positions)), np.zeros((4, positions)), np.zeros((3, positions), bool), None, f)
    sent = pack(
        payload(BenchKnob("k", "keep", 0.0, np.arange(float(positions)), steps=steps), zoom="all" if every else "one")
    )
    out = unpack(sent)["stages"][0]["knobs"][0]["steps"]
    if every:
        np.testing.assert_array_equal(out["per_question"], f)
        assert out["kept"] is None
    else:
        assert out["per_question"] is None
        assert out["kept"].shape == (3, positions)


def test_of_very_many_questions_only_the_knob_in_the_hand_has_its_figures():
    f = np.zeros((2000, 60))
    knobs = [BenchKnob(name, name, 0.0, np.arange(60.0), steps=Steps(f[:4], f[:4], None, None, f)) for name in "kl"]
    for grabbed, expected in (None, [False, False]), ((0, "l"), [False, True]):
        out = unpack(pack(payload(*knobs, zoom="all", grabbed=grabbed)))["stages"][0]["knobs"]
        assert [knob["steps"]["per_question"] is not None for knob in out] == expected


def test_an_array_of_another_type_is_refused():
    with pytest.raises(TypeError, match="complex"):
        pack(payload(BenchKnob("k", "keep", 1.0, np.zeros(2, complex))))


@given(st.lists(st.text(alphabet="ab :.-", max_size=12), max_size=8))
def test_head_and_rest_hold_every_word_of_the_title(titles):
    for title, (head, rest) in zip(titles, split_titles(titles), strict=True):
        assert title.startswith(rest)
        assert title.endswith(head)
        assert not set(title[len(rest) : len(title) - len(head)]) & set("ab")


def test_what_tells_a_title_from_its_family_stands_first():
    family = [f"ATTACK MATRIX FOR CLERICS AND MONKS - Opponent Armor {n}" for n in (7, -7, 6)]
    assert split_titles([*family, "Strength"]) == [
        *((f"Opponent Armor {n}", "ATTACK MATRIX FOR CLERICS AND MONKS") for n in (7, -7, 6)),
        ("Strength", ""),
    ]


@given(st.integers(1, 6), st.integers(0, 9))
def test_better_worse_and_same_are_the_scored_questions(positions, questions):
    chance = np.random.default_rng(questions)
    f, baseline = chance.integers(0, 3, (questions, positions)) / 2, chance.integers(0, 3, questions) / 2
    baseline[::4] = np.nan
    counts = count_changes(f, baseline)
    assert (counts.sum(axis=0) == (~np.isnan(baseline)).sum()).all()
    for at in range(positions):
        plain = [(a > b, a < b, a == b) for a, b in zip(f[:, at], baseline, strict=True)]
        assert counts[:, at].tolist() == [sum(one[way] for one in plain) for way in range(3)]


def sent(*events, session="t"):
    return {"session": session, "events": [{"version": 1, **event} for event in events]}


def test_every_event_comes_once_and_in_its_order():
    first = {"kind": "set", "sequence": 1, "stage": 0, "setting": "k", "value": 3}
    label = {"kind": "label", "sequence": 2, "id": "c", "grade": 2, "pressed_at": 1.5}
    events = parse_events(sent(first, label), {})
    assert [event.kind for event in events] == ["set", "label"]
    acks = acknowledged({"other": 9}, events)
    assert acks == {"other": 9, "t": 2}
    (again,) = parse_events(sent(first, label, {"kind": "swap", "sequence": 3}), acks)
    assert again.kind == "swap"


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


@given(JUNK, st.sampled_from(sorted(FIELDS)), st.dictionaries(st.sampled_from(["stage", "id", "to", "grade"]), JUNK))
def test_what_a_browser_makes_up_is_left_out(junk, kind, fields):
    assert parse_events(junk, {}) == []
    for event in parse_events(sent({"kind": kind, "sequence": 1, **fields}), {}):
        assert set(event.fields) == set(FIELDS[kind])


def test_a_grade_or_choice_that_does_not_exist_is_left_out():
    assert parse_events(sent({"kind": "label", "sequence": 1, "id": "c", "grade": 4, "pressed_at": 1}), {}) == []
    assert parse_events(sent({"kind": "zoom", "sequence": 1, "to": "none"}), {}) == []
