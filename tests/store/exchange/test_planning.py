import os
import signal
from dataclasses import replace

import pytest

from rag_core.errors import RecordError, StoreError, SurroundingsError
from rag_core.store.events import IMPORT, Signature
from rag_core.store.exchange import planning
from rag_core.store.exchange.line import LabelLine, line_of
from rag_core.store.exchange.planning import apply_import, apply_import_beside, plan_import
from rag_core.store.labels import LabelStore
from tests.store.conftest import make_event

pytestmark = pytest.mark.usefixtures("database")
HASH = "a" * 64


@pytest.fixture
def filled(labels):
    labels.append([make_event(0, grade=3), make_event(1, chunk_id="c2", grade=0, note="why")])
    return labels


def counts(plan):
    return (len(plan.new), len(plan.equal), len(plan.conflicting))


LINES = [LabelLine("q1", "c1", 3), LabelLine("q1", "c2", 1), LabelLine("q2", "c1", 2)]


def test_a_plan_tells_new_equal_and_conflicting(filled):
    plan = plan_import(filled, "demo", LINES, "ann")
    assert counts(plan) == (1, 1, 1)
    assert [(line.grade, there.grade) for line, there in plan.conflicting] == [(1, 0)]


def test_planning_stores_nothing(filled):
    plan_import(filled, "demo", LINES, "ann")
    assert len(filled.history("demo")) == 2


def test_applying_leaves_conflicting_labels_as_they_are(filled):
    done = apply_import(filled, plan_import(filled, "demo", LINES, "ann"))
    assert done.written == 1
    assert filled.current("demo") == {"q1": {"c1": 3, "c2": 0}, "q2": {"c1": 2}}


def test_what_is_brought_in_stays_its_annotators_and_says_who_imported_it(filled):
    by = Signature("eve", IMPORT, "2026-02-01T00:00:00Z")
    drawn = LabelLine("q3", "c1", 2, "bob", pressed_at="2026-01-31T12:00:00Z", inclusion_p=0.5, sampler="blind")
    apply_import(filled, plan_import(filled, "demo", [*LINES, drawn], "ann"), by=by)
    first, second = filled.labels("demo")[-2:]
    assert (first.annotator, first.author, first.actor, first.pressed_at) == ("ann", "eve", IMPORT, by.pressed_at)
    assert (second.annotator, second.author, second.pressed_at) == ("bob", "eve", "2026-01-31T12:00:00Z")
    assert (second.inclusion_p, second.sampler) == (0.5, "blind")


def told(labels):
    """What counts, with all that says whose it is; without when, and what the batch is called."""
    return [replace(one, session="", seq=0, batch="", at="", arrived_at=None) for one in labels.labels("demo")]


@pytest.mark.parametrize("overwrite", [False, True])
def test_many_are_stored_by_a_child_as_they_would_be_here(filled, tmp_path, monkeypatch, overwrite):
    monkeypatch.setattr(planning, "MANY", 2)
    by = Signature("eve", IMPORT, "2026-02-01T00:00:00Z")
    drawn = LabelLine("q3", "c1", 2, "bob", pressed_at="2026-01-31T12:00:00Z", inclusion_p=0.5, sampler="blind")
    plan = plan_import(filled, "demo", [*LINES, drawn], "ann")
    done = apply_import_beside(filled, plan, overwrite, by)
    there = told(filled)
    filled.undo_batch(done.batch)
    assert (done.written, len(there)) == (2 + overwrite, 4)
    assert (
        apply_import(filled, plan_import(filled, "demo", [*LINES, drawn], "ann"), overwrite, by).written == done.written
    )
    assert told(filled) == there


def test_a_killed_child_is_one_sentence_and_stored_nothing(filled, monkeypatch):
    begun = planning.ask

    def killed(*arguments):
        return begun(*arguments, lambda process: os.kill(process.pid, signal.SIGKILL))

    monkeypatch.setattr(planning, "MANY", 2)
    monkeypatch.setattr(planning, "ask", killed)
    with pytest.raises(SurroundingsError, match="nothing was stored, do it again"):
        apply_import_beside(filled, plan_import(filled, "demo", LINES, "ann"))
    assert len(filled.history("demo")) == 2


def test_what_others_say_of_other_questions_meanwhile_holds_no_import_up(filled):
    plan = plan_import(filled, "demo", LINES, "ann")
    filled.append([make_event(2, grade=1, query_id="q9"), make_event(3, grade=3, query_id="q2", annotator="bob")])
    assert apply_import(filled, plan).written == 1


def test_overwriting_is_asked_for(filled):
    done = apply_import(filled, plan_import(filled, "demo", LINES, "ann"), overwrite=True)
    assert done.written == 2
    assert filled.current("demo")["q1"] == {"c1": 3, "c2": 1}


def test_an_import_is_undone_as_one_batch_and_what_it_overwrote_comes_back(filled):
    before = filled.current("demo")
    done = apply_import(filled, plan_import(filled, "demo", LINES, "ann"), overwrite=True)
    assert filled.undo_batch(done.batch) == 2
    assert filled.current("demo") == before
    assert filled.undo_batch(done.batch) == 0


def test_a_label_given_after_the_import_survives_its_undo(filled):
    done = apply_import(filled, plan_import(filled, "demo", LINES, "ann"))
    filled.append([make_event(2, query_id="q2", grade=1)])
    filled.undo_batch(done.batch)
    assert filled.current("demo")["q2"] == {"c1": 1}


def test_importing_twice_finds_everything_equal(filled):
    apply_import(filled, plan_import(filled, "demo", LINES, "ann"), overwrite=True)
    again = plan_import(filled, "demo", LINES, "ann")
    assert counts(again) == (0, 3, 0)
    assert apply_import(filled, again).batch == ""


def test_an_import_of_a_stores_own_export_changes_nothing(filled):
    lines = [line_of(event) for event in filled.labels("demo")]
    assert counts(plan_import(filled, "demo", lines, "x")) == (0, 2, 0)


def test_labels_of_another_annotator_do_not_conflict(filled):
    assert counts(plan_import(filled, "demo", LINES, "bob")) == (3, 0, 0)


def test_another_note_is_a_conflict_and_no_note_is_not(filled):
    lines = [LabelLine("q1", "c2", 0, note="because"), LabelLine("q1", "c1", 3)]
    assert counts(plan_import(filled, "demo", lines, "ann")) == (0, 1, 1)


def test_a_line_without_text_meets_a_label_with_text_by_id(labels):
    labels.append([make_event(0, grade=3, text_hash=HASH)])
    plan = plan_import(labels, "demo", [LabelLine("q1", "c1", 1)], "ann")
    assert counts(plan) == (0, 0, 1)
    apply_import(labels, plan, overwrite=True)
    assert labels.current("demo", chunks={"elsewhere": HASH}) == {"q1": {"elsewhere": 1}}


def test_a_line_with_another_text_under_the_same_id_is_new(labels):
    labels.append([make_event(0, grade=3, text_hash=HASH)])
    lines = [LabelLine("q1", "c1", 1, text_hash="b" * 64), LabelLine("q1", "moved", 3, text_hash=HASH)]
    assert counts(plan_import(labels, "demo", lines, "ann")) == (1, 1, 0)


def test_unsure_is_a_label_that_can_conflict(filled):
    assert counts(plan_import(filled, "demo", [LabelLine("q1", "c1", None)], "ann")) == (0, 0, 1)


def test_an_import_keeps_the_time_of_the_label(labels):
    line = LabelLine("q1", "c1", 3, at="2020-01-01T00:00:00Z")
    apply_import(labels, plan_import(labels, "demo", [line], "ann"))
    assert [event.at for event in labels.labels("demo")] == ["2020-01-01T00:00:00Z"]


def test_a_plan_that_others_overtook_is_refused_and_nothing_is_stored(filled, store):
    plan = plan_import(filled, "demo", LINES, "ann")
    LabelStore(store).append([make_event(0, session="tab-2", query_id="q2", grade=0)])
    with pytest.raises(StoreError, match="plan again"):
        apply_import(filled, plan, overwrite=True)
    assert filled.current("demo")["q2"] == {"c1": 0}


def test_lines_that_contradict_each_other_once_named_are_refused(labels):
    with pytest.raises(RecordError, match="labelled otherwise"):
        plan_import(labels, "demo", [LabelLine("q", "c", 1), LabelLine("q", "c", 2, annotator="ann")], "ann")


def test_there_is_a_back_up_before_labels_are_brought_in(filled, workspace):
    done = apply_import(filled, plan_import(filled, "demo", LINES, "ann"))
    assert [str(path) for path in (workspace / "backups").iterdir()] == [done.back_up]
