"""A portable copy holds every row, goes from either database into either, and is refused where it is not whole."""

import json

import pytest
from sqlalchemy import text

from rag_core.errors import InputError, StoreError
from rag_core.settings import DATABASE
from rag_core.store import sqlite
from rag_core.store.database import FILE, Store, open_store
from rag_core.store.dump import check, count_rows, dump, restore
from rag_core.store.events import undo_of
from rag_core.store.labels import LabelStore, RowCheck, check_rows
from rag_core.store.migrations import STEPS
from tests.store.conftest import make_event
from tests.store.test_database import at_revision


def fill(store):
    LabelStore(store).append(
        [make_event(n, n % 4, chunk_id=f"c{n}", note="ä\u2028\n'\"", inclusion_p=1 / (n + 1)) for n in range(700)]
    )
    LabelStore(store).append([undo_of(make_event(0, 0, chunk_id="c0", note=""), "tab-1", 700)])
    with store.writing() as connection:
        connection.execute(text("INSERT INTO run VALUES ('r1', 't', 'n', 'demo', '{}', '{\"a\": 0.1}')"))
        names = "at, asked_by, collection, query, pipeline, result, hops, milliseconds, tokens, cost"
        values = "'t', 'me', 'demo', 'AC?', '[]', '{}', '[]', 0.1, NULL, 1e-7"
        connection.execute(text(f"INSERT INTO query_history ({names}) VALUES ({values})"))


def everything(store):
    tables = ("label_event", "run", "run_note", "query_history")
    with store.reading() as connection:
        return {name: connection.execute(text(f"SELECT * FROM {name} ORDER BY 1")).all() for name in tables}


@pytest.fixture
def copy(tmp_path):
    """A copy of a filled SQLite store, and what that held."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(DATABASE, raising=False)
        with open_store(tmp_path / "first") as store:
            fill(store)
            return dump(store, tmp_path / "copy.jsonl"), everything(store)


def test_what_was_copied_comes_back_to_the_last_row_and_value(database, copy, workspace):
    path, before = copy
    with open_store(workspace) as store:
        restore(store, path)
        assert everything(store) == before
        with store.reading() as connection:
            assert check_rows(connection) == RowCheck(701, 0, ())
        assert LabelStore(store).append([make_event(701, chunk_id="new")]) == (701,)
        assert LabelStore(store).history("demo")[-1].seq == 701


@pytest.mark.postgres
def test_a_team_can_go_back_to_one_file(copy, workspace, tmp_path, schema, monkeypatch):
    path, before = copy
    with monkeypatch.context() as patch:
        patch.setenv(DATABASE, schema)
        with open_store(workspace) as store:
            restore(store, path)
            back = dump(store, tmp_path / "back.jsonl")
    assert back.read_text() == path.read_text()
    with open_store(tmp_path / "other") as store:
        restore(store, back)
        assert everything(store) == before


@pytest.mark.parametrize("number", list(STEPS)[:-1])
def test_a_copy_of_an_older_schema_comes_back_and_counts(database, number, workspace, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(DATABASE, raising=False)
        before = at_revision(tmp_path / "old", number)
        old = Store(tmp_path / "old", sqlite.engine(tmp_path / "old" / FILE, 30.0))
        path = dump(old, tmp_path / "old.jsonl")
        old.close()
    with open_store(workspace) as store:
        restore(store, path)
        assert len(LabelStore(store).labels("demo")) == 49
        LabelStore(store).append([make_event(0, session="new")])
        with store.reading() as connection:
            assert check_rows(connection) == RowCheck(whole=1, without=len(before), broken=())


def test_rows_that_are_there_are_kept_unless_forced(database, copy, workspace):
    path, before = copy
    with open_store(workspace) as store:
        LabelStore(store).append([make_event(9, session="other")])
        with pytest.raises(
            StoreError, match=r"holds rows already \(label_event: 1\), expected an empty one or --force"
        ):
            restore(store, path)
        assert len(LabelStore(store).history("demo")) == 1
        restore(store, path, force=True)
        assert everything(store) == before


def test_after_a_restore_the_guards_stand(database, copy, workspace):
    with open_store(workspace) as store:
        restore(store, copy[0])
        with pytest.raises(StoreError, match="only ever added"), store.writing() as connection:
            connection.execute(text("DELETE FROM label_event"))


def test_a_copy_cut_short_is_refused_and_changes_nothing(database, copy, workspace, tmp_path):
    lines = copy[0].open().readlines()  # not splitlines: a note may hold U+2028
    short = tmp_path / "short.jsonl"
    with open_store(workspace) as store:
        LabelStore(store).append([make_event(9)])
        for kept in (lines[:-1], lines[:-2] + lines[-1:], lines[:1]):
            short.write_text("".join(kept))
            with pytest.raises(InputError, match="cut short"):
                restore(store, short, force=True)
        assert len(LabelStore(store).history("demo")) == 1


def test_a_row_that_cannot_be_stored_leaves_everything_as_it_was(database, copy, workspace, tmp_path):
    lines = copy[0].open().readlines()  # not splitlines: a note may hold U+2028
    last = next(n for n, line in enumerate(lines) if '"tab-1"' in line and '"seq":400,' in line)
    row = json.loads(lines[last])
    row["row"]["grade"] = 9
    lines[last] = json.dumps(row) + "\n"
    bad = tmp_path / "bad.jsonl"
    bad.write_text("".join(lines))
    with open_store(workspace) as store:
        LabelStore(store).append([make_event(9)])
        with pytest.raises(StoreError):
            restore(store, bad, force=True)
        assert [event.seq for event in LabelStore(store).history("demo")] == [9]


@pytest.mark.parametrize("head", ['{"kind":"other"}', "[]", "not json", '{"kind":"winnow database","version":2}'])
def test_what_is_no_copy_is_refused(tmp_path, head):
    path = tmp_path / "file"
    path.write_text(head + "\n")
    with pytest.raises(InputError, match=r"expected|is no copy"):
        check(path)


def test_a_copy_of_a_newer_schema_is_refused(copy):
    copy[0].write_text(copy[0].read_text().replace('"schema":"0', '"schema":"9', 1))
    with pytest.raises(StoreError, match="expected one of 0001"):
        check(copy[0])


def test_rows_are_counted(database, store):
    LabelStore(store).append([make_event(1)])
    with store.reading() as connection:
        assert count_rows(connection)["label_event"] == 1
