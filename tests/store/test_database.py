"""Opening, damage, faults while writing, migrations: no false acknowledgement, every failure one loud sentence."""

import os
import shutil
import sqlite3
import threading

import pytest
from sqlalchemy import inspect, text

from rag_core.errors import StoreError
from rag_core.store import database, sqlite
from rag_core.store.database import FILE, open_store
from rag_core.store.labels import LabelStore, RowCheck, check_rows
from rag_core.store.migrations import HEAD, STEPS, migrate, revision
from rag_core.store.schema import TABLES
from tests.store.conftest import make_event

FIRST_COLUMNS = (
    "session, seq, kind, eval_set, query_id, query_hash, chunk_id, text_hash, chunk_key, annotator, grade, note, batch, "
    "undoes_session, undoes_seq, at"
)


def stored(workspace):
    with sqlite3.connect(workspace / FILE) as connection:
        return connection.execute("SELECT count(*) FROM label_event").fetchone()[0]


def fill(workspace, count=3):
    with open_store(workspace) as store:
        LabelStore(store).append([make_event(n, chunk_id=f"c{n}") for n in range(count)])


def at_revision(workspace, number):
    """A store as the release with that schema left it, with 50 labels and one undo."""
    store = database.Store(workspace, sqlite.engine(workspace / FILE, 30.0))
    workspace.mkdir()
    migrate(store, number)
    rows = [
        f"('tab', {n}, 'label', 'demo', 'q', '', 'c{n}', '', 'id:c{n}', 'ann', {n % 4}, '', '', NULL, NULL, 't')"
        for n in range(50)
    ]
    rows.append("('tab', 50, 'undo', 'demo', 'q', '', 'c0', '', 'id:c0', 'ann', NULL, '', '', 'tab', 0, 't')")
    with store.writing() as connection:
        connection.execute(text(f"INSERT INTO label_event ({FIRST_COLUMNS}) VALUES {', '.join(rows)}"))
        before = connection.execute(text(f"SELECT position, {FIRST_COLUMNS} FROM label_event ORDER BY position")).all()
    store.close()
    return before


def events_of(path):
    with sqlite3.connect(path) as connection:
        return connection.execute(f"SELECT position, {FIRST_COLUMNS} FROM label_event ORDER BY position").fetchall()


def pragma(store, name):
    with store.reading() as connection:
        return connection.execute(text(f"PRAGMA {name}")).scalar()


def test_commits_are_durable_and_writers_wait(store):
    assert (pragma(store, "journal_mode"), pragma(store, "synchronous"), pragma(store, "busy_timeout")) == (
        "wal",
        2,
        30_000,
    )


def test_a_path_with_special_characters_is_itself(tmp_path):
    place = tmp_path / "my labels? 100%#1"
    fill(place)
    assert stored(place) == 3


def test_without_create_a_missing_store_is_an_error_and_nothing_is_made(workspace):
    with pytest.raises(StoreError, match="no label store"):
        open_store(workspace, create=False)
    assert not workspace.exists()


def test_a_workspace_that_is_a_file_is_an_error(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot be used"):
        open_store(tmp_path / "file")


def test_a_file_that_is_no_database_is_refused_and_left_alone(workspace):
    workspace.mkdir()
    (workspace / FILE).write_bytes(b"these are my notes " * 100)
    with pytest.raises(StoreError, match="is not an SQLite database"):
        open_store(workspace)
    assert (workspace / FILE).read_bytes() == b"these are my notes " * 100


def test_another_programs_database_is_refused(workspace):
    workspace.mkdir()
    with sqlite3.connect(workspace / FILE) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    with pytest.raises(StoreError, match="no schema revision"):
        open_store(workspace)


def test_a_newer_schema_is_refused_and_left_alone(workspace):
    fill(workspace)
    with sqlite3.connect(workspace / FILE) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    before = (workspace / FILE).read_bytes()
    with pytest.raises(StoreError, match="schema 9999, expected one of {}".format(", ".join(STEPS))):
        open_store(workspace)
    assert (workspace / FILE).read_bytes() == before


def damage(workspace):
    """Break an index page; the table itself stays readable."""
    with sqlite3.connect(workspace / FILE) as connection:
        page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'label_event_batch'").fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    data = bytearray((workspace / FILE).read_bytes())
    data[(page - 1) * size : (page - 1) * size + 200] = b"\xff" * 200
    (workspace / FILE).write_bytes(data)


def test_a_damaged_file_opens_for_reading_only_and_says_so(workspace):
    fill(workspace)
    damage(workspace)
    before = (workspace / FILE).read_bytes()
    with open_store(workspace) as store:
        assert "is damaged" in store.unwritable
        assert len(LabelStore(store).labels("demo")) == 3
        with pytest.raises(StoreError, match="is damaged"):
            LabelStore(store).append([make_event(9)])
    assert (workspace / FILE).read_bytes() == before


def test_disk_full_is_loud_and_nothing_is_half_stored(workspace):
    fill(workspace)
    with open_store(workspace) as store:
        labels = LabelStore(store)
        pages = pragma(store, "page_count")
        acknowledged = 3
        with store.engine.connect() as connection:  # the pool gives this connection to the next writer
            connection.exec_driver_sql(f"PRAGMA max_page_count={pages + 3}")
        with pytest.raises(StoreError, match="disk or its quota is full"):  # noqa: PT012 — which append fails is open
            while acknowledged < 2000:
                labels.append([make_event(acknowledged, chunk_id=f"c{acknowledged}", note="x" * 500)])
                acknowledged += 1
        failed = [make_event(acknowledged, chunk_id=f"c{acknowledged}", note="x" * 500)]
        assert stored(workspace) == acknowledged > 3
        with store.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count=1000000")
        assert labels.append(failed) == (acknowledged,)
    assert stored(workspace) == acknowledged + 1


@pytest.mark.parametrize("spare_pages", range(8))
def test_disk_full_at_any_page_of_a_batch_stores_all_or_nothing(workspace, spare_pages):
    fill(workspace)
    with open_store(workspace) as store:
        pages = pragma(store, "page_count")
        with store.engine.connect() as connection:
            connection.exec_driver_sql(f"PRAGMA max_page_count={pages + spare_pages}")
        with pytest.raises(StoreError, match="full"):
            LabelStore(store).append([make_event(n, chunk_id=f"c{n}", note="x" * 900) for n in range(3, 100)])
    assert stored(workspace) == 3


def test_a_held_lock_is_loud_and_the_event_goes_in_afterwards(workspace):
    fill(workspace)
    with open_store(workspace, busy_seconds=0.05) as store:
        holder = sqlite3.connect(workspace / FILE, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"held by another writer .* 0\.05 s"):
            LabelStore(store).append([make_event(3)])
        assert len(LabelStore(store).labels("demo")) == 3
        holder.execute("ROLLBACK")
        assert LabelStore(store).append([make_event(3)]) == (3,)
        holder.close()
    assert stored(workspace) == 4


def test_a_write_transaction_holds_the_lock_from_its_first_moment(workspace):
    """Else what it reads could be overtaken before it writes."""
    fill(workspace)
    with open_store(workspace) as store, store.writing():
        other = sqlite3.connect(workspace / FILE, isolation_level=None, timeout=0)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.close()


def test_a_writer_waits_for_a_lock_that_is_given_back(workspace):
    fill(workspace)
    with open_store(workspace) as store:
        holder = sqlite3.connect(workspace / FILE, isolation_level=None, check_same_thread=False)
        holder.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.2, holder.execute, ["ROLLBACK"])
        release.start()
        assert LabelStore(store).append([make_event(3)]) == (3,)
        release.join()
        holder.close()


@pytest.mark.parametrize("place", ["file", "folder"])
def test_a_write_protected_store_can_be_read_and_says_why_it_cannot_be_written(workspace, place, monkeypatch):
    fill(workspace)
    protected = workspace / FILE if place == "file" else workspace
    allowed = os.access
    # Root may write anywhere, so the answer of the system is given here; the store then opens without write access.
    monkeypatch.setattr(
        os, "access", lambda path, mode: allowed(path, mode) and not (mode == os.W_OK and path == protected)
    )
    before = (workspace / FILE).read_bytes()
    with open_store(workspace) as store:
        assert "is write-protected" in store.unwritable
        assert len(LabelStore(store).labels("demo")) == 3
        with pytest.raises(StoreError, match="write-protected"):
            LabelStore(store).append([make_event(9)])
        with (
            pytest.raises(StoreError, match="read-only"),
            store.engine.connect() as connection,
            database.plain_errors(store.name),
        ):
            connection.exec_driver_sql("DROP VIEW label_current")
    assert (workspace / FILE).read_bytes() == before


def test_write_protection_that_comes_while_open_is_loud(workspace):
    fill(workspace)
    with open_store(workspace) as store:
        with store.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA query_only=1")
        with pytest.raises(StoreError, match="read-only"):
            LabelStore(store).append([make_event(9)])
    assert stored(workspace) == 3


def test_an_error_before_the_commit_acknowledges_and_stores_nothing(store, labels, monkeypatch):
    def fail(*_):
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(store.engine.dialect, "do_commit", fail)
    with pytest.raises(StoreError, match="disk reports an error"):
        labels.append([make_event(0)])
    monkeypatch.undo()
    assert labels.history("demo") == []


def test_an_error_shows_no_values(store):
    with pytest.raises(StoreError) as raised, store.writing() as connection:
        connection.execute(
            text("INSERT INTO label_event (session, note) VALUES ('s', :note)"), {"note": "confidential"}
        )
    assert "confidential" not in repr(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("number", list(STEPS))
def test_every_older_schema_keeps_every_label(workspace, number):
    before = at_revision(workspace, number)
    with open_store(workspace) as store:
        assert [tuple(row) for row in before] == events_of(workspace / FILE)
        assert len(LabelStore(store).labels("demo")) == 49


@pytest.mark.parametrize("number", list(STEPS)[:-1])
def test_a_migration_leaves_a_whole_back_up_of_the_older_schema(workspace, number):
    before = at_revision(workspace, number)
    open_store(workspace).close()
    (copy,) = (workspace / "backups").iterdir()
    assert copy.name.endswith(f"-schema-{number}.db")
    assert events_of(copy) == [tuple(row) for row in before]


@pytest.mark.parametrize("number", list(STEPS)[:-1])
def test_labels_of_an_older_schema_are_told_from_damaged_ones(workspace, number):
    at_revision(workspace, number)
    with open_store(workspace) as store:
        LabelStore(store).append([make_event(0, session="new")])
        with store.reading() as connection:
            assert check_rows(connection) == RowCheck(whole=1, without=51, broken=())


def test_a_new_or_current_store_is_not_backed_up(workspace):
    fill(workspace)
    fill(workspace)
    assert not (workspace / "backups").exists()


@pytest.mark.parametrize("number", list(STEPS)[:-1])
def test_a_migration_that_fails_leaves_the_older_schema(workspace, number):
    at_revision(workspace, number)
    with sqlite3.connect(workspace / FILE) as connection:
        connection.execute("ALTER TABLE label_event ADD COLUMN checksum")  # the last step will fail
        tables = connection.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall()
    with pytest.raises(StoreError):
        open_store(workspace)
    with sqlite3.connect(workspace / FILE) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == (number,)
        assert connection.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall() == tables
    assert len(events_of(workspace / FILE)) == 51


def test_the_steps_end_at_the_schema_of_the_code(store):
    with store.reading() as connection:
        assert revision(connection) == HEAD
        for table in TABLES:
            columns = [column["name"] for column in inspect(connection).get_columns(table.name)]
            assert columns == [column.name for column in table.c]


def test_a_back_up_is_a_store_of_its_own(workspace, tmp_path):
    fill(workspace)
    with open_store(workspace) as store:
        copy = store.back_up("test")
    (tmp_path / "restored").mkdir()
    shutil.copy(copy, tmp_path / "restored" / FILE)
    with open_store(tmp_path / "restored") as store:
        assert len(LabelStore(store).labels("demo")) == 3


def test_a_failed_back_up_leaves_no_file_that_looks_whole(workspace, monkeypatch):
    fill(workspace)
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with open_store(workspace) as store, pytest.raises(StoreError, match="No space left"):
        store.back_up("test")
    assert list((workspace / "backups").iterdir()) == []
