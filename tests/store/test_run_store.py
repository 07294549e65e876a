import pytest

from rag_core.errors import InputError, StoreError
from rag_core.store.database import open_store
from rag_core.store.runs import RunStore

pytestmark = pytest.mark.usefixtures("database")


def document(run_id, name="one", at="2026-01-01T00:00:00+00:00", eval_set="set", **more):
    return {"id": run_id, "at": at, "name": name, "eval_set": eval_set, **more}


@pytest.fixture
def runs(tmp_path):
    with open_store(tmp_path) as store:
        yield RunStore(store)


def test_a_run_comes_back_as_it_was_saved(runs):
    saved = document("r1", pipelines=[{"name": "päir", "values": [0.1, None]}])
    assert runs.save(saved, {"queries": 3}) == "r1"
    assert runs.document("r1") == saved


def test_the_list_is_newest_first_with_summaries_and_counts_of_notes(runs):
    runs.save(document("r1"), {"queries": 3})
    runs.save(document("r2", at="2026-01-02T00:00:00+00:00", eval_set="other"), {})
    runs.add_note("r1", "ann", "first try")
    assert [(one.id, one.notes) for one in runs.listed()] == [("r2", 0), ("r1", 1)]
    assert [(one.id, one.summary) for one in runs.listed("set")] == [("r1", {"queries": 3})]


def test_saving_the_same_run_again_changes_nothing(runs):
    for _ in range(2):
        runs.save(document("r1"), {})
    assert len(runs.listed()) == 1


def test_a_stored_run_is_never_replaced(runs):
    runs.save(document("r1"), {})
    with pytest.raises(StoreError, match="stored already with other contents"):
        runs.save(document("r1", name="two"), {})
    assert runs.document("r1")["name"] == "one"


def test_a_beginning_of_an_id_is_enough_where_it_fits_one(runs):
    runs.save(document("rabc"), {})
    runs.save(document("rabd"), {})
    assert runs.document("rabc")["id"] == "rabc"
    assert runs.add_note("rabd", "ann", "x") == "rabd"
    with pytest.raises(InputError, match="fits 2 runs, expected one of rabc, rabd"):
        runs.document("rab")


@pytest.mark.parametrize("wanted", ["", "zzz", "r%"])
def test_an_unknown_id_is_one_sentence_that_lists_what_there_is(runs, wanted):
    runs.save(document("rabc"), {})
    with pytest.raises(InputError, match="expected one of rabc"):
        runs.document(wanted)


def test_notes_are_added_in_order(runs):
    runs.save(document("r1"), {})
    for text in ("first", " second "):
        runs.add_note("r1", "ann", text)
    assert [(note.author, note.note) for note in runs.notes("r1")] == [("ann", "first"), ("ann", "second")]


@pytest.mark.parametrize("text", ["", "  ", "x" * 10_001])
def test_an_empty_or_endless_note_is_refused(runs, text):
    runs.save(document("r1"), {})
    with pytest.raises(InputError, match="a note has"):
        runs.add_note("r1", "ann", text)


def test_deleting_takes_the_run_and_its_notes(runs):
    runs.save(document("r1"), {})
    runs.save(document("r2"), {})
    runs.add_note("r1", "ann", "x")
    assert runs.delete("r1") == "r1"
    assert [one.id for one in runs.listed()] == ["r2"]
    runs.save(document("r1"), {})
    assert runs.notes("r1") == []
