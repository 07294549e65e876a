"""What the browser sends: stored once, acknowledged only when on disk, never trusted."""

import sqlite3

import pytest

from pages.labels.queue.intake import read_batch, read_entry, take
from rag_core.errors import InputError
from rag_core.project.deeds import LABEL, Deed
from rag_core.roles import Person
from rag_core.store.database import open_store
from rag_core.store.labels import LabelStore

ABOUT = {"eval_set": "s", "query_id": "q", "query_hash": "", "chunk_id": "c", "text_hash": "", "annotator": "ann"}


def press(seq, grade=2, **changes):
    entry = {"session": "t", "seq": seq, "pair": f"p{seq}", "kind": "label", "grade": grade, "note": "", "undoes": None}
    return entry | ABOUT | {"chunk_id": f"c{seq}", "others": []} | changes


def batch(*entries, **changes):
    return read_batch({"entries": list(entries), "later": [], "attempt": 1, "stream": "t"} | changes)


def taken_in(labels, sent):
    return take(labels, sent, Deed(LABEL, Person("eve", "annotator")))


@pytest.fixture
def labels(tmp_path):
    with open_store(tmp_path) as store:
        yield LabelStore(store)


def test_a_batch_is_stored_in_its_order_and_acknowledged(labels):
    taken = taken_in(labels, batch(press(0), press(1, None), press(2, 0)))
    assert taken.acks == {"t": 2}
    assert [(event.chunk_id, event.grade) for event in labels.history("s")] == [("c0", 2), ("c1", None), ("c2", 0)]


def test_a_batch_that_comes_again_changes_nothing_and_is_acknowledged_again(labels):
    taken_in(labels, batch(press(0)))
    assert taken_in(labels, batch(press(0), press(1))).acks == {"t": 1}
    assert len(labels.history("s")) == 2


def test_what_left_another_page_is_acknowledged_under_its_own_stream(labels):
    assert taken_in(labels, batch(press(3, session="old"), press(0))).acks == {"old": 3, "t": 0}


def test_an_undo_names_what_it_takes_back(labels):
    taken_in(labels, batch(press(0), press(1, kind="undo", undoes=["t", 0], chunk_id="c0")))
    assert labels.labels("s") == []


def test_chunks_that_share_the_label_get_it_and_lose_it_together(labels):
    shared = {"others": [{"chunk_id": "x", "text_hash": ""}, {"chunk_id": "y", "text_hash": ""}], "chunk_id": "c0"}
    taken_in(labels, batch(press(0, **shared)))
    assert labels.current("s") == {"q": {"c0": 2, "x": 2, "y": 2}}
    taken_in(labels, batch(press(1, kind="undo", undoes=["t", 0], **shared)))
    assert labels.current("s") == {}


def test_entries_that_can_never_be_stored_are_named_and_the_others_go_on(labels):
    """A note with a NUL, a number used before, an undo of what is not there, a field of another kind."""
    taken_in(labels, batch(press(0), press(1)))
    stray = press(5, kind="undo", undoes=["t", 40], grade=None)
    sent = batch(press(1, 3), press(2), press(3, note="a\x00b"), press(4), stray, press(6, 9), press(7),
                 press(0, session="other"))  # fmt: skip
    taken = taken_in(labels, sent)
    assert taken.acks == {"t": 7, "other": 0}
    assert sorted((one.session, one.seq) for one in taken.unfit) == [("t", 1), ("t", 3), ("t", 5), ("t", 6)]
    assert taken.problem == ""
    assert "stored with another grade" in next(one.why for one in taken.unfit if one.seq == 1)
    assert [event.seq for event in labels.history("s")] == [0, 1, 2, 4, 7, 0]


def test_nothing_is_acknowledged_while_the_disk_refuses_and_all_of_it_after_the_repair(labels):
    with sqlite3.connect(labels.store.path) as other:
        other.execute("CREATE TRIGGER t BEFORE INSERT ON label_event BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
    sent = batch(press(0), press(1))
    taken = taken_in(labels, sent)
    assert (taken.acks, taken.entries, taken.unfit) == ({}, [], [])
    assert "full" in taken.problem
    with sqlite3.connect(labels.store.path) as other:
        other.execute("DROP TRIGGER t")
    assert taken_in(labels, sent).acks == {"t": 1}


def test_a_press_brings_its_time_and_what_its_page_knew(labels):
    taken_in(labels, batch(press(0, pressed=1769860800123, base=7), press(1)))
    first, second = labels.history("s")
    assert (first.pressed_at, first.base_position) == ("2026-01-31T12:00:00.123000Z", 7)
    assert (first.author, first.actor, first.annotator) == ("eve", "page", "ann")
    assert (second.pressed_at, second.base_position) == (None, None)


@pytest.mark.parametrize("pressed", ["soon", True, 1e300, float("nan"), -1e17, None, {}])
def test_a_clock_that_makes_no_sense_holds_no_label_up(pressed):
    event = read_entry(press(0, pressed=pressed, base=pressed)).event
    assert (event.pressed_at, event.base_position) == (None, None)


@pytest.mark.parametrize("sent", [None, 3, "x", [], {}, {"entries": "abc"}, {"entries": None, "stream": 5, "later": 7}])
def test_a_message_of_the_wrong_shape_is_an_empty_batch(sent):
    assert read_batch(sent).entries == ()


@pytest.mark.parametrize(
    "changes",
    [{"grade": 7}, {"grade": "2"}, {"grade": True}, {"seq": -1}, {"seq": "1"}, {"session": ""}, {"chunk_id": None},
     {"note": "x" * 5000}, {"note": "\x00"}, {"kind": "drop"}, {"kind": "undo"}, {"undoes": ["t"], "kind": "undo"},
     {"annotator": ["a"]}, {"pair": 3}, {"others": [{"chunk_id": 1}]}],
)  # fmt: skip
def test_an_entry_with_a_wrong_field_is_refused(changes):
    with pytest.raises(InputError):
        read_entry(press(0) | changes)


def test_entries_around_a_broken_one_are_read_and_it_is_named():
    read = batch(press(0), press(1, 9), press(2), "x", {"session": 3, "seq": True})
    assert [entry.event.seq for entry in read.entries] == [0, 2]
    assert [(one.session, one.seq) for one in read.unfit] == [("t", 1), ("", -1), ("", -1)]
    assert "grade is 9" in read.unfit[0].why
