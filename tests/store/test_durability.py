"""What was acknowledged is there: many writers at once, and writers killed at any moment."""

import multiprocessing
import os
import random
import signal
import sqlite3
import time

import pytest

from rag_core.store.database import FILE, open_store
from rag_core.store.labels import LabelStore
from tests.store.conftest import make_event
from tests.store.test_database import at_revision, events_of

FORK = multiprocessing.get_context("fork")
WRITERS = 8


def label(writer, number):
    return make_event(
        number, session=f"tab-{writer}", chunk_id=f"c{number}", annotator=f"ann-{writer}", grade=number % 4
    )


def write_all(workspace, writer, start, each):
    start.wait()
    with open_store(workspace) as store:
        labels = LabelStore(store)
        for number in range(each):
            labels.append([label(writer, number)])


@pytest.mark.parametrize("each", [100, pytest.param(500, marks=pytest.mark.slow)])
def test_eight_writers_on_a_new_store_store_everything(workspace, each):
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


def write_until_killed(workspace, first, acknowledged):
    """Append one label after another from `first` on; say each number on the pipe only after its commit."""
    with open_store(workspace) as store:
        labels = LabelStore(store)
        for number in range(first, 10**9):
            (seq,) = labels.append([label(0, number)])
            os.write(acknowledged, f"{seq}\n".encode())


def killed_writer(workspace, first, seconds):
    """Start a writer, kill it `seconds` after it acknowledged six labels, one of them new; all it acknowledged."""
    reading, writing = os.pipe()
    writer = FORK.Process(target=write_until_killed, args=(workspace, first, writing))
    writer.start()
    os.close(writing)
    said = b""
    while said.count(b"\n") < 6 and (more := os.read(reading, 65_536)):
        said += more
    time.sleep(seconds)
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    while more := os.read(reading, 65_536):
        said += more
    os.close(reading)
    return [int(number) for number in said.decode().split("\n")[:-1]]


def kill_storm(workspace, kills, seed):
    """Kill writers at random moments; each next one sends the last five labels again, as a browser's queue would."""
    chance, acknowledged = random.Random(seed), set()
    for _ in range(kills):
        first = max(0, max(acknowledged, default=-1) - 4)
        acknowledged.update(killed_writer(workspace, first, chance.uniform(0, 0.12)))
    return acknowledged


@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_killed_writers_lose_no_acknowledged_label_and_double_none(workspace, kills):
    acknowledged = kill_storm(workspace, kills, seed=kills)
    assert len(acknowledged) > kills
    with open_store(workspace) as store:
        stored = [event.seq for event in LabelStore(store).history("demo")]
    assert acknowledged - set(stored) == set()
    assert len(stored) == len(set(stored))
    assert len(set(stored) - acknowledged) <= kills  # at most the one in flight at each kill
    with sqlite3.connect(workspace / FILE) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_migration_killed_at_twenty_moments_keeps_every_label(tmp_path):
    chance = random.Random(5)
    for number in range(20):
        workspace = tmp_path / str(number)
        before = [tuple(row) for row in at_revision(workspace, "0001")]
        migration = FORK.Process(target=lambda place: open_store(place).close(), args=(workspace,))
        migration.start()
        time.sleep(chance.uniform(0, 0.05))
        os.kill(migration.pid, signal.SIGKILL)
        migration.join()
        with open_store(workspace) as store:
            assert events_of(workspace / FILE) == before
            assert len(LabelStore(store).labels("demo")) == 49
        copies = [events_of(copy) for copy in (workspace / "backups").glob("*.db")]
        assert copies
        assert all(copy == before for copy in copies)
