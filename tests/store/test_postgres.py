"""The team's database: guards, order of commits, many writers, a server that dies and comes back, nothing secret shown."""

import multiprocessing
import os
import threading

import pytest
from sqlalchemy import inspect, text

from rag_core.errors import InputError, StoreError
from rag_core.settings import DATABASE, database_settings
from rag_core.store.database import FILE, has_store, open_store
from rag_core.store.labels import LabelStore
from rag_core.store.migrations import HEAD, STEPS, migrate, revision
from rag_core.store.schema import TABLES
from tests.store.cluster import Cluster, free_port, programs
from tests.store.conftest import URL, make_event

FORK = multiprocessing.get_context("fork")
WRITERS = 8


@pytest.mark.postgres
def test_the_steps_make_the_schema_of_the_code(postgres, store):
    with store.reading() as connection:
        assert revision(connection) == HEAD
        for table in TABLES:
            columns = [column["name"] for column in inspect(connection).get_columns(table.name)]
            assert columns == [column.name for column in table.c]


@pytest.mark.postgres
def test_the_workspace_holds_no_database_file(postgres, workspace, labels):
    labels.append([make_event(0)])
    assert has_store(workspace)
    assert not (workspace / FILE).exists()


@pytest.mark.postgres
@pytest.mark.parametrize(
    "deed", ["UPDATE label_event SET grade = 0", "DELETE FROM label_event", "TRUNCATE label_event"]
)
def test_the_server_itself_refuses_to_change_or_delete_an_event(postgres, store, labels, deed):
    labels.append([make_event(0)])
    with pytest.raises(StoreError, match="only ever added"), store.writing() as connection:
        connection.execute(text(deed))
    assert labels.current("demo") == {"q1": {"c1": 2}}


@pytest.mark.postgres
def test_the_server_itself_refuses_to_change_a_run(postgres, store):
    with store.writing() as connection:
        connection.execute(text("INSERT INTO run VALUES ('r1', 't', 'n', 'demo', '{}', '{}')"))
    with pytest.raises(StoreError, match="a run is never changed"), store.writing() as connection:
        connection.execute(text("UPDATE run SET name = 'other'"))


@pytest.mark.postgres
def test_reading_sees_one_state_and_cannot_write(postgres, store, labels):
    with store.reading() as connection:
        before = connection.execute(text("SELECT count(*) FROM label_event")).scalar()
        labels.append([make_event(0)])
        assert connection.execute(text("SELECT count(*) FROM label_event")).scalar() == before == 0
    with pytest.raises(StoreError, match="is read-only"), store.reading() as connection:
        connection.execute(text("INSERT INTO run VALUES ('r1', 't', 'n', 'demo', '{}', '{}')"))


@pytest.mark.postgres
def test_a_second_writer_waits_so_that_position_is_the_order_of_commits(postgres, store):
    """Canary: a sequence alone numbers rows before they are committed."""
    other = LabelStore(store)
    second = threading.Thread(target=lambda: other.append([make_event(1, chunk_id="second")]))
    with store.writing() as connection:
        connection.execute(text("SELECT 1"))
        second.start()
        second.join(0.3)
        assert second.is_alive()
        values = "'tab', 7, 'label', 'demo', 'q', '', 'first', '', 'id:first', 'ann', 1, '', '', NULL, NULL, 't'"
        names = "session, seq, kind, eval_set, query_id, query_hash, chunk_id, text_hash, chunk_key, annotator, grade, note, batch, undoes_session, undoes_seq, at"
        connection.execute(text(f"INSERT INTO label_event ({names}) VALUES ({values})"))
    second.join()
    assert [event.chunk_id for event in other.history("demo")] == ["first", "second"]


@pytest.mark.postgres
def test_a_writer_that_waits_too_long_is_told_so(postgres, workspace, store):
    too_long = pytest.raises(StoreError, match=r"held by another writer for too long, .* 0\.05 s")
    with store.writing(), open_store(workspace, busy_seconds=0.05) as other, too_long:
        LabelStore(other).append([make_event(0)])


@pytest.mark.postgres
def test_an_error_shows_no_values(postgres, store):
    with pytest.raises(StoreError) as raised, store.writing() as connection:
        connection.execute(text("INSERT INTO label_event (session, note) VALUES ('s', 'confidential')"))
    assert "confidential" not in repr(raised.value)


@pytest.mark.postgres
@pytest.mark.parametrize("number", list(STEPS)[:-1])
def test_every_older_schema_is_brought_up_after_a_copy(postgres, workspace, number):
    with open_store(workspace) as store:
        with store.writing() as connection:
            for view in ("label_current", "label_live"):
                connection.execute(text(f"DROP VIEW {view}"))
            for table in ("label_event", "run", "run_note", "query_history", "alembic_version"):
                connection.execute(text(f"DROP TABLE {table}"))
        migrate(store, number)
        with store.writing() as connection:
            names = "session, seq, kind, eval_set, query_id, query_hash, chunk_id, text_hash, chunk_key, annotator, grade, note, batch, at"
            values = "'tab', 0, 'label', 'demo', 'q', '', 'c', '', 'id:c', 'ann', 3, '', '', 't'"
            connection.execute(text(f"INSERT INTO label_event ({names}) VALUES ({values})"))
    with open_store(workspace) as store:
        assert LabelStore(store).current("demo") == {"q": {"c": 3}}
    (copy,) = (workspace / "backups").iterdir()
    assert copy.name.endswith(f"-schema-{number}.jsonl")


def write_all(workspace, writer, start, each):
    start.wait()
    with open_store(workspace) as store:
        labels = LabelStore(store)
        for number in range(each):
            chunk = {"chunk_id": f"c{number}", "annotator": f"ann-{writer}"}
            labels.append([make_event(number, number % 4, session=f"tab-{writer}", **chunk)])


@pytest.mark.postgres
@pytest.mark.parametrize("each", [100, pytest.param(500, marks=pytest.mark.slow)])
def test_eight_writers_on_a_new_database_store_everything(postgres, workspace, each):
    start = FORK.Barrier(WRITERS)
    writers = [FORK.Process(target=write_all, args=(workspace, n, start, each)) for n in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * WRITERS
    with open_store(workspace) as store:
        stored = [(e.session, e.seq, e.grade) for e in LabelStore(store).history("demo")]
    assert sorted(stored) == sorted((f"tab-{n}", k, k % 4) for n in range(WRITERS) for k in range(each))


def label_through(labels, session, until, acknowledged):
    """What a browser's queue does: send the same label until it is acknowledged, then the next."""
    number = 0
    while not until.is_set():
        try:
            labels.append([make_event(number, number % 4, session=session, chunk_id=f"{session}-{number}")])
        except StoreError:
            until.wait(0.02)
            continue
        acknowledged.append((session, number))
        number += 1


@pytest.mark.postgres
def test_a_server_killed_and_restarted_while_people_label_loses_nothing_acknowledged(tmp_path, monkeypatch):
    if programs() is None:
        assert not os.environ.get("WINNOW_REQUIRE_POSTGRES"), "initdb is needed"
        pytest.skip("no initdb on this machine")
    with Cluster() as cluster:
        monkeypatch.setenv(DATABASE, cluster.url)
        with open_store(tmp_path / "workspace") as store:
            acknowledged, over, counts = [], threading.Event(), []
            people = [
                threading.Thread(target=label_through, args=(LabelStore(store), f"tab-{n}", over, acknowledged))
                for n in range(4)
            ]
            for person in people:
                person.start()
            for _ in range(4):
                seen = len(acknowledged)
                while len(acknowledged) < seen + 40:
                    over.wait(0.01)
                cluster.kill()
                counts.append(len(acknowledged))
                cluster.start()
            while len(acknowledged) < counts[-1] + 40:
                over.wait(0.01)
            over.set()
            for person in people:
                person.join()
            stored = [event.key for event in LabelStore(store).history("demo")]
    assert counts[0] < counts[1] < counts[2] < counts[3]  # people went on after every restart
    assert set(acknowledged) - set(stored) == set()
    assert len(stored) == len(set(stored))


SECRET = "s3cr3t-canary"


def test_a_server_that_is_away_is_one_sentence_without_the_password(tmp_path, monkeypatch):
    monkeypatch.setenv(
        DATABASE, f"postgresql://canary-user:{SECRET}@127.0.0.1:{free_port()}/labels?application_name={SECRET}"
    )
    with pytest.raises(
        StoreError, match=r"label database postgresql://127\.0\.0\.1:\d+/labels cannot be reached"
    ) as raised:
        open_store(tmp_path)
    assert SECRET not in str(raised.value)
    assert "canary-user" not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://u:{SECRET}@h/d",
        f"postgresql://u:{SECRET}@h",
        f"postgresql://u:{SECRET}@h:x/d",
        SECRET,
        f"postgresql://u:12/{SECRET}@h/d",
    ],
)
def test_an_address_that_cannot_be_used_is_refused_without_showing_it(url):
    with pytest.raises(InputError, match="expected postgresql://") as raised:
        database_settings({DATABASE: url})
    assert SECRET not in str(raised.value)


def test_settings_show_no_password():
    assert SECRET not in repr(database_settings({DATABASE: f"postgresql://u:{SECRET}@h/d"}))
    assert database_settings({}) is None


@pytest.mark.parametrize("required", [True, False])
def test_without_a_server_the_tests_of_one_skip_or_fail(required, monkeypatch):
    from tests.store.conftest import server_url

    monkeypatch.delenv(URL, raising=False)
    monkeypatch.setenv("WINNOW_REQUIRE_POSTGRES", "1") if required else monkeypatch.delenv(
        "WINNOW_REQUIRE_POSTGRES", raising=False
    )
    with pytest.raises(pytest.fail.Exception if required else pytest.skip.Exception, match="names no PostgreSQL"):
        server_url()
