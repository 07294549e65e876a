"""A damaged label file: every label it changes is noticed, and what stood elsewhere comes back."""

import os
import random
import sqlite3
import time
from contextlib import closing

import pytest

from rag_core.cli import main
from rag_core.errors import StoreError
from rag_core.health import checks_of
from rag_core.project import deeds
from rag_core.store import database, holding, sqlite
from rag_core.store.database import BACKUPS, FILE, open_store
from rag_core.store.labels import LabelStore
from rag_core.store.salvage import PAGE, gathered, is_whole, salvage
from tests.store.conftest import make_event

EVENTS = 300


@pytest.fixture
def filled(workspace):
    """A workspace whose labels lie on some fifty pages, a few of them on more than one."""
    rng = random.Random(1)
    with open_store(workspace) as store:
        labels = LabelStore(store)
        for start in range(0, EVENTS, 50):
            labels.append(
                [
                    make_event(
                        n,
                        rng.choice([0, 1, 2, 3, None]),
                        chunk_id=f"c{rng.randrange(200)}",
                        note="ä note " * (2_000 if n % 97 == 5 else rng.randrange(9)),
                        inclusion_p=rng.choice([None, 1.0, 0.25]),
                        base_position=n,
                    )
                    for n in range(start, start + 50)
                ]
            )
    return workspace


def said(workspace):
    """Everything that a reader gets: the labels that count and all events, in order; None where it is refused."""
    try:
        with open_store(workspace) as store:
            labels = LabelStore(store)
            return labels.current("demo"), labels.history("demo")
    except StoreError:
        return None


def noticed(workspace):
    return any(not check.ok for check in checks_of(workspace) if check.name in ("labels", "database"))


def key_of(row):
    return row["session"], row["seq"]


def without_number(row):
    return {name: value for name, value in row.items() if name != "position"}


def damaged(data, rng):
    """The bytes with one bit flipped, or cut short, and the pages that are no longer what they were."""
    data = bytearray(data)
    if rng.random() < 0.2:
        kept = rng.randrange(len(data))
        return bytes(data[:kept]), set(range(kept // PAGE + 1, len(data) // PAGE + 1))
    at = rng.randrange(len(data))
    data[at] ^= 1 << rng.randrange(8)
    return bytes(data), {at // PAGE + 1}


@pytest.mark.parametrize("times", [20, pytest.param(1_000, marks=pytest.mark.slow)])
def test_every_changed_label_is_noticed_and_all_events_outside_the_damaged_page_come_back(filled, tmp_path, times):
    path, rng = filled / FILE, random.Random(2)
    whole, data = said(filled), (filled / FILE).read_bytes()
    assert not (filled / f"{FILE}-wal").exists()
    first = {key_of(row): without_number(row) for row in gathered([path])}
    assert len(first) == EVENTS
    on = {}  # event → pages without which it is not found
    for page in range(1, len(data) // PAGE + 1):
        path.write_bytes(data[: (page - 1) * PAGE] + bytes(PAGE) + data[page * PAGE :])
        for key in first.keys() - set(map(key_of, gathered([path]))):
            on.setdefault(key, set()).add(page)
    assert on.keys() == first.keys()
    changed = 0
    for _ in range(times):
        wrong, pages = damaged(data, rng)
        path.write_bytes(wrong)
        kept = {key_of(row): without_number(row) for row in gathered([path])}
        assert list(kept) == [key for key in first if key in kept]
        assert all(kept[key] == first[key] for key in kept)
        assert kept.keys() >= {key for key in first if not on[key] & pages}
        if said(filled) != whole:
            changed += 1
            assert not is_whole(filled)
        for ending in ("-wal", "-shm"):
            path.with_name(FILE + ending).unlink(missing_ok=True)
    assert changed


def test_a_page_that_is_gone_comes_back_from_the_newest_copy_and_the_file_is_set_aside(filled):
    path, data = filled / FILE, (filled / FILE).read_bytes()
    with open_store(filled) as store:
        store.back_up("auto")
        LabelStore(store).append([make_event(EVENTS, 3, chunk_id="late", note="after the copy")])
        expected = LabelStore(store).current("demo"), LabelStore(store).history("demo")
    lost = data.find(b"c1")
    now = bytearray(path.read_bytes())
    now[100:PAGE] = bytes(PAGE - 100)  # the schema
    now[lost // PAGE * PAGE : lost // PAGE * PAGE + PAGE] = bytes(PAGE)
    path.write_bytes(now)
    assert said(filled) is None
    done = salvage(filled)
    assert (done.events, done.missing) == (EVENTS + 1, 0)
    assert said(filled) == expected
    assert is_whole(filled)
    assert bytes(now) == (filled / BACKUPS / done.aside.rsplit("/", 1)[1]).read_bytes()
    with pytest.raises(StoreError, match="is whole"):
        salvage(filled)


def test_what_is_in_the_log_alone_is_salvaged_too(filled, tmp_path):
    with open_store(filled) as store:
        LabelStore(store).append([make_event(EVENTS + n, 1, chunk_id=f"log{n}") for n in range(20)])
        copy = tmp_path / FILE
        copy.write_bytes((filled / FILE).read_bytes())
        (tmp_path / f"{FILE}-wal").write_bytes((filled / f"{FILE}-wal").read_bytes())
    assert len(gathered([copy])) == EVENTS + 20


def test_runs_that_can_be_read_come_along(filled):
    path = filled / FILE
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO run VALUES ('r', '2026', 'n', 'demo', '{}', '{}')")
    data = bytearray(path.read_bytes())
    at = data.find(b"c17")
    data[at] ^= 1
    path.write_bytes(data)
    assert noticed(filled)
    assert salvage(filled).others["run"] == 1
    assert is_whole(filled)


def test_while_people_label_copies_are_made_in_the_background_and_all_but_the_newest_go(filled, monkeypatch):
    monkeypatch.setattr(sqlite, "COPIES_KEPT", 2)
    with open_store(filled) as store:
        labels = LabelStore(store)
        for n in range(4):
            for made in [filled / holding.FILE, *sqlite.copies(filled)]:
                os.utime(made, (0, 0))
            labels.append([make_event(EVENTS + n, 2, chunk_id=f"late{n}")])
            labels.append([make_event(EVENTS + 100 + n, 2, chunk_id=f"later{n}")])  # a copy is being made, or new
            wait_for(lambda n=n: len(sqlite.copies(filled)) == min(n + 1, 2) and not database._copying.locked())
    assert len(gathered(sqlite.copies(filled)[-1:])) >= EVENTS + 7


def wait_for(what):
    deadline = time.monotonic() + 20
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_emptied_file_is_refused_and_brought_back_from_its_copy(filled):
    """The restore drill: the copy that was made while people labelled is all there is."""
    expected = said(filled)
    with open_store(filled) as store:
        sqlite.copy_and_prune(store.engine, filled)
    (filled / FILE).write_bytes(b"")
    with pytest.raises(StoreError, match="is empty though there are copies"):
        open_store(filled)
    assert main(["doctor", "--salvage", "--workspace", str(filled)]) == 0
    assert said(filled) == expected
    assert deeds.log(filled)[-1]["deed"] == "salvage"


def test_a_store_in_use_is_not_salvaged(filled):
    data = bytearray((filled / FILE).read_bytes())
    data[data.find(b"c17")] ^= 1
    (filled / FILE).write_bytes(data)
    with open_store(filled), pytest.raises(StoreError, match="is in use by process"):
        salvage(filled)
