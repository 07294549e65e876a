from dataclasses import replace

import pytest
from sqlalchemy import text

from rag_core.errors import InputError, StoreError
from rag_core.store.database import open_store
from rag_core.store.events import ADJUDICATED, undo_of
from rag_core.store.labels import LabelStore, RowCheck, check_rows, insert_or_keep
from tests.store.conftest import make_event

pytestmark = pytest.mark.usefixtures("database")
HASH = "a" * 64
OTHER = "b" * 64


def test_what_was_appended_is_acknowledged_by_seq(labels, event):
    assert labels.append([event(0), event(1, chunk_id="c2")]) == (0, 1)


def test_a_label_counts_after_the_store_is_opened_again(workspace, event):
    with open_store(workspace) as store:
        LabelStore(store).append([event(0, grade=3)])
    with open_store(workspace) as store:
        assert LabelStore(store).current("demo") == {"q1": {"c1": 3}}


def test_the_same_event_again_changes_nothing(labels, event):
    labels.append([event(0)])
    assert labels.append([event(0), event(1, chunk_id="c2")]) == (0, 1)
    assert [e.key for e in labels.history("demo")] == [("tab-1", 0), ("tab-1", 1)]


def test_the_same_event_sent_later_is_still_the_same(labels, event):
    labels.append([event(0, at="2026-01-01T00:00:00Z")])
    labels.append([event(0, at="2026-01-02T00:00:00Z")])
    assert [e.at for e in labels.history("demo")] == ["2026-01-01T00:00:00Z"]


@pytest.mark.parametrize(
    "change",
    [
        {"grade": 1},
        {"grade": None},
        {"chunk_id": "c2"},
        {"query_id": "q2"},
        {"annotator": "bob"},
        {"note": "x"},
        {"eval_set": "other"},
        {"text_hash": HASH},
    ],
)
def test_another_payload_under_one_session_and_seq_is_an_error_and_stores_nothing(labels, event, change):
    """Canary: INSERT OR IGNORE alone would swallow the second label."""
    labels.append([event(0)])
    with pytest.raises(StoreError, match="event 0 of session 'tab-1' is stored with another"):
        labels.append([event(1, chunk_id="c9"), event(0, **{"grade": 2} | change)])
    assert [(e.key, e.grade) for e in labels.history("demo")] == [(("tab-1", 0), 2)]


def test_another_payload_within_one_call_is_an_error(labels, event):
    with pytest.raises(StoreError):
        labels.append([event(0, grade=1), event(0, grade=2)])
    assert labels.history("demo") == []


def test_the_newest_label_of_an_annotator_counts(labels, event):
    labels.append([event(0, grade=3), event(1, grade=0)])
    assert labels.current("demo") == {"q1": {"c1": 0}}
    assert [label.grade for label in labels.labels("demo")] == [0]


def test_newest_is_by_arrival_not_by_clock(labels, event):
    labels.append([event(0, grade=3, at="2030-01-01T00:00:00Z"), event(1, grade=1, at="2020-01-01T00:00:00Z")])
    assert labels.current("demo") == {"q1": {"c1": 1}}


def test_unsure_counts_as_unjudged(labels, event):
    labels.append([event(0, grade=3), event(1, grade=None)])
    assert labels.current("demo") == {}
    assert labels.stats("demo").unsure == 1


def test_one_annotators_unsure_leaves_anothers_grade(labels, event):
    labels.append([event(0, grade=3), event(1, grade=None, annotator="bob")])
    assert labels.current("demo") == {"q1": {"c1": 3}}
    assert labels.current("demo", "bob") == {}


def test_without_an_annotator_the_newest_of_anybody_counts(labels, event):
    labels.append([event(0, grade=3), event(1, grade=1, annotator="bob")])
    assert labels.current("demo") == {"q1": {"c1": 1}}
    assert labels.current("demo", "ann") == {"q1": {"c1": 3}}


def test_eval_sets_and_queries_do_not_mix(labels, event):
    labels.append([event(0, grade=1), event(1, grade=2, query_id="q2"), event(2, grade=3, eval_set="other")])
    assert labels.current("demo") == {"q1": {"c1": 1}, "q2": {"c1": 2}}
    assert labels.eval_sets() == ["demo", "other"]


def test_resets_from_one_session_take_its_next_numbers(labels, event):
    labels.append([event(0, grade=3), event(1, grade=2, query_id="q2")])
    assert labels.undo_all("demo", "reset-1", "tab-9") == 2
    labels.append([event(2, grade=1)])
    assert labels.undo_all("demo", "reset-2", "tab-9") == 1
    assert [event.seq for event in labels.history("demo") if event.session == "tab-9"] == [0, 1, 2]
    assert labels.current("demo") == {}


def test_undo_brings_the_older_label_back(labels, event):
    labels.append([event(0, grade=3), event(1, grade=0)])
    labels.append([undo_of(event(1, grade=0), "tab-1", 2)])
    assert labels.current("demo") == {"q1": {"c1": 3}}
    assert [(e.kind, e.seq, e.undoes) for e in labels.history("demo")] == [
        ("label", 0, None),
        ("label", 1, None),
        ("undo", 2, ("tab-1", 1)),
    ]


def test_an_undo_taken_back_brings_its_label_back_in_its_old_place(labels, event):
    labels.append([event(0, grade=3), event(1, grade=0), event(2, grade=1, annotator="bob")])
    undo = undo_of(event(1, grade=0), "tab-1", 3)
    labels.append([undo, undo_of(undo, "tab-1", 4)])
    assert [(e.annotator, e.grade) for e in labels.labels("demo")] == [("ann", 0), ("bob", 1)]


def test_what_takes_an_undo_back_is_not_taken_back_itself(labels, event):
    undo = undo_of(event(0), "tab-1", 1)
    again = undo_of(undo, "tab-1", 2)
    labels.append([event(0), undo, again])
    with pytest.raises(StoreError, match="or its undo"):
        labels.append([undo_of(again, "tab-1", 3)])
    assert len(labels.history("demo")) == 3


def test_a_reset_takes_back_every_label_of_a_set_and_no_other_and_is_taken_back_in_turn(labels, event):
    labels.append([event(0, grade=3), event(1, grade=0), event(2, grade=1, annotator="bob"), event(3, chunk_id="c2")])
    labels.append([undo_of(event(3, chunk_id="c2"), "tab-1", 4), event(5, eval_set="other")])
    before = labels.labels("demo")
    assert labels.undo_all("demo", "reset-1", "reset-1") == 3  # the hidden older grade of ann too
    assert (labels.current("demo"), labels.current("other")) == ({}, {"q1": {"c1": 2}})
    with pytest.raises(StoreError, match="expected a name of its own"):
        labels.undo_all("other", "reset-1", "reset-2")
    assert labels.undo_batch("reset-1") == 3
    assert labels.labels("demo") == before
    assert labels.undo_batch("reset-1") == 0
    assert labels.undo_all("demo", "reset-2", "reset-2") == 3
    assert labels.current("demo") == {}


def test_what_is_labelled_after_a_reset_stands_beside_what_comes_back(labels, event):
    labels.append([event(0, grade=3)])
    labels.undo_all("demo", "reset-1", "reset-1")
    labels.append([event(1, grade=1), event(2, grade=2, chunk_id="c2")])
    labels.undo_batch("reset-1")
    assert labels.current("demo") == {"q1": {"c1": 1, "c2": 2}}


def test_how_an_event_came_is_kept_and_the_store_says_when_it_arrived(labels, event):
    came = {"author": "ann", "actor": "page", "pressed_at": "2026-01-31T12:00:00Z", "base_position": 7}
    labels.append([event(0, arrived_at="1999-01-01T00:00:00Z", inclusion_p=1, sampler="blind", **came)])
    (stored,) = labels.labels("demo")
    assert {name: getattr(stored, name) for name in came} == came
    assert (stored.inclusion_p, stored.sampler) == (1.0, "blind")
    assert stored.arrived_at > "2026"


def test_the_same_event_that_came_another_way_is_the_same(labels, event):
    """A press that an older version stored without them is sent again after an update."""
    labels.append([event(0)])
    assert labels.append([event(0, author="ann", actor="page", pressed_at="2026-01-31T12:00:00Z")]) == (0,)
    assert [e.author for e in labels.history("demo")] == [None]


def test_an_undo_sent_twice_is_one_undo(labels, event):
    labels.append([event(0, grade=3), event(1, grade=1)])
    undo = undo_of(event(1, grade=1), "tab-1", 2)
    assert labels.append([undo]) == labels.append([undo]) == (2,)
    assert labels.current("demo") == {"q1": {"c1": 3}}


def test_a_label_after_an_undo_counts(labels, event):
    labels.append([event(0, grade=3), undo_of(event(0, grade=3), "tab-1", 1), event(2, grade=1)])
    assert labels.current("demo") == {"q1": {"c1": 1}}


@pytest.mark.parametrize("target", [make_event(7), make_event(0, annotator="bob"), make_event(0, chunk_id="c2")])
def test_an_undo_of_what_is_not_there_is_an_error_and_stores_nothing(labels, event, target):
    labels.append([event(0)])
    with pytest.raises(StoreError, match="expected a label of the same annotator"):
        labels.append([undo_of(target, "tab-1", 8)])
    assert len(labels.history("demo")) == 1


def test_equal_texts_share_a_label_under_every_id_they_were_labelled_by(labels, event):
    labels.append([event(0, grade=3, text_hash=HASH), event(1, grade=1, chunk_id="c2", text_hash=HASH)])
    assert labels.current("demo") == {"q1": {"c1": 1, "c2": 1}}
    assert len(labels.labels("demo")) == 1


def test_a_label_finds_its_text_under_a_new_id(labels, event):
    labels.append([event(0, grade=3, text_hash=HASH)])
    assert labels.current("demo", chunks={"new": HASH, "copy": HASH, "c9": OTHER}) == {"q1": {"new": 3, "copy": 3}}


def test_a_label_does_not_stay_on_an_id_whose_text_changed(labels, event):
    labels.append([event(0, grade=3, text_hash=HASH)])
    assert labels.current("demo", chunks={"c1": OTHER}) == {}


def test_a_label_meets_its_chunk_by_id_where_either_text_is_unknown(labels, event):
    labels.append([event(0, grade=3, text_hash=HASH), event(1, grade=1, chunk_id="c2")])
    assert labels.current("demo", chunks={"c1": "", "c2": OTHER}) == {"q1": {"c1": 3, "c2": 1}}


def test_the_newest_counts_where_one_came_by_text_and_one_by_id(labels, event):
    labels.append([event(0, grade=3, text_hash=HASH), event(1, grade=1)])
    assert labels.current("demo", chunks={"c1": HASH}) == labels.current("demo") == {"q1": {"c1": 1}}


def test_history_of_a_chunk_finds_its_text_under_other_ids(labels, event):
    labels.append([event(0, text_hash=HASH), event(1, chunk_id="c2", text_hash=HASH), event(2, chunk_id="c3")])
    assert [e.seq for e in labels.history("demo", "q1", "c2")] == [0, 1]


def test_stats_count_what_counts_and_what_was_taken_back(labels, event):
    labels.append([event(0, grade=3), event(1, grade=1), event(2, chunk_id="c2", grade=None)])
    labels.append([event(3, chunk_id="c3", grade=0, annotator="bob", query_id="q2")])
    labels.append([undo_of(event(2, chunk_id="c2", grade=None), "tab-1", 4)])
    stats = labels.stats("demo")
    assert (stats.labels, stats.unsure, stats.queries, stats.events, stats.undone) == (2, 0, 2, 5, 1)
    assert stats.grades == {0: 1, 1: 1, 2: 0, 3: 0}
    assert stats.annotators == {"ann": 1, "bob": 1}


@pytest.mark.parametrize(
    "bad",
    [
        {"grade": 4},
        {"grade": -1},
        {"grade": True},
        {"grade": 1.0},
        {"seq": -1},
        {"seq": 2**53},
        {"seq": True},
        {"query_id": ""},
        {"chunk_id": "\x00"},
        {"note": "\ud800"},
        {"annotator": 7},
        {"kind": "delete"},
        {"undoes": ("tab-1", 0)},
        {"author": "\x00"},
        {"base_position": -1},
        {"inclusion_p": 0},
        {"inclusion_p": float("nan")},
        {"sampler": 7},
    ],
)
def test_what_cannot_be_stored_is_refused_before_anything_is(labels, event, bad):
    with pytest.raises(InputError):
        labels.append([event(5), replace(event(6), **bad)])
    assert labels.history("demo") == []


@pytest.mark.parametrize("deed", ["UPDATE label_event SET grade = 0", "DELETE FROM label_event"])
def test_the_database_itself_refuses_to_change_or_delete_an_event(labels, store, event, deed):
    labels.append([event(0)])
    with pytest.raises(StoreError, match="only ever added"), store.writing() as connection:
        connection.execute(text(deed))
    assert labels.current("demo") == {"q1": {"c1": 2}}


def test_a_row_that_was_changed_below_the_store_is_found_by_its_checksum(labels, store, event):
    came = {"author": "änn", "inclusion_p": 0.1, "base_position": 3}
    labels.append([event(n, chunk_id=f"c{n}", note="ä\u2028'", **came) for n in range(20)])
    labels.append([undo_of(event(0, chunk_id="c0"), "tab-1", 20)])
    with store.reading() as connection:
        assert (check_rows(connection).whole, check_rows(connection).broken) == (21, ())
    with store.writing() as connection:
        guards = ["TRIGGER label_event_no_update"] if not store.server else []
        guards += ["TRIGGER label_event_only_added ON label_event"] if store.server else []
        for guard in guards:
            connection.execute(text(f"DROP {guard}"))
        changes = ("grade = 0", "annotator = 'bob'", "arrived_at = NULL", "checksum = NULL", "inclusion_p = 0.2")
        for position, change in enumerate(changes, 2):
            connection.execute(text(f"UPDATE label_event SET {change} WHERE position = {position}"))
    with store.reading() as connection:
        assert check_rows(connection) == RowCheck(16, 0, (2, 3, 4, 5, 6))


def test_many_events_in_one_call(labels, event):
    labels.append([event(n, chunk_id=f"c{n}") for n in range(1000)])
    assert len(labels.current("demo")["q1"]) == 1000


def test_no_message_holds_a_note(labels, event):
    labels.append([event(0, note="confidential words")])
    with pytest.raises(StoreError) as raised:
        labels.append([event(0, note="other confidential words")])
    assert "confidential" not in str(raised.value)


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_the_insert_is_spoken_by_both_databases(dialect):
    from sqlalchemy.dialects import postgresql, sqlite

    speaker = {"sqlite": sqlite, "postgresql": postgresql}[dialect].dialect()
    assert "ON CONFLICT (session, seq) DO NOTHING" in str(insert_or_keep(dialect).compile(dialect=speaker))


def test_an_adjudicated_label_counts_before_what_is_said_later(labels, event):
    labels.append([event(0, grade=0), event(0, session="tab-2", annotator="bob", grade=3)])
    decision = event(0, session="decision", annotator=ADJUDICATED, grade=1)
    labels.append([decision])
    labels.append([event(1, grade=2), event(2, chunk_id="c2", grade=2)])
    assert labels.current("demo") == {"q1": {"c1": 1, "c2": 2}}
    assert labels.labels("demo")[-1].annotator == ADJUDICATED
    assert labels.current("demo", "ann") == {"q1": {"c1": 2, "c2": 2}}  # what a person says is still theirs
    assert [one.grade for one in labels.history("demo", "q1", "c1")] == [0, 3, 1, 2]

    labels.append([undo_of(decision, "decision", 1)])
    assert labels.current("demo") == {"q1": {"c1": 2, "c2": 2}}


def test_of_two_decisions_the_newer_counts(labels, event):
    for seq, grade in enumerate((1, 3)):
        labels.append([event(seq, session="decision", annotator=ADJUDICATED, grade=grade)])
    labels.append([event(0, grade=0)])
    assert labels.current("demo") == {"q1": {"c1": 3}}
