"""Does a piece of work again and again, each time with the next call to the system failing; prints what it found.

    LD_PRELOAD=fails.so python each_in_turn.py WORK FOLDER EVERY

What is acknowledged is held against what can be read when nothing fails any more. One line of JSON: how often the work
was done, how often it was refused, and the first thing that was wrong.
"""

import ctypes
import errno
import json
import shutil
import sys
from itertools import count
from pathlib import Path

from rag_core import backup
from rag_core.errors import StoreError, WinnowError
from rag_core.store.database import BACKUPS, FILE, open_store
from rag_core.store.events import Event
from rag_core.store.labels import LabelStore
from rag_core.store.salvage import salvage

FAULTS = ctypes.CDLL(None)


def batch(number):
    return [
        Event(
            session="s", seq=number * 3 + n, eval_set="demo", query_id="q", chunk_id=f"c{number}.{n}", annotator="ann",
            grade=n, at="2026-01-01T00:00:00.000000Z",
        )
        for n in range(3)
    ]  # fmt: skip


def keys(workspace):
    with open_store(workspace) as store:
        return [event.key for event in LabelStore(store).history("demo")]


def put(workspace, *numbers):
    with open_store(workspace) as store:
        for number in numbers:
            LabelStore(store).append(batch(number))


def wanted(*numbers):
    return [event.key for number in numbers for event in batch(number)]


class Labels:
    """Three batches are stored in a new workspace."""

    def prepare(self, folder):
        self.acknowledged = []

    def work(self, folder):
        with open_store(folder / "w") as store:
            for number in range(3):
                LabelStore(store).append(batch(number))
                self.acknowledged.append(number)

    def check(self, folder, done):
        found = keys(folder / "w") if (folder / "w" / FILE).exists() else []
        assert found[: 3 * len(self.acknowledged)] == wanted(*self.acknowledged), "an acknowledged label is lost"
        assert len(found) % 3 == 0, "a batch is there in part"
        put(folder / "w", 0, 1, 2)  # the browser sends again what was not acknowledged
        assert keys(folder / "w") == wanted(0, 1, 2), "a label is lost or doubled"


class BackUp:
    """A workspace is backed up; the file is whole or not there."""

    def prepare(self, folder):
        put(folder / "w", 0, 1)

    def work(self, folder):
        backup.make(folder / "w", folder / "copy.zip")

    def check(self, folder, done):
        assert keys(folder / "w") == wanted(0, 1), "the workspace is changed"
        assert (folder / "copy.zip").exists() >= done, "an acknowledged copy is not there"
        if (folder / "copy.zip").exists():
            backup.restore(folder / "copy.zip", folder / "other")
            assert keys(folder / "other") == wanted(0, 1), "the copy is not whole"


class Restore:
    """A workspace is replaced by a copy; it is the old one or the new one."""

    def prepare(self, folder):
        put(folder / "w", 0)
        (folder / "w" / "note").write_text("new")
        backup.make(folder / "w", folder / "copy.zip")
        put(folder / "w", 1, 2)
        (folder / "w" / "note").write_text("old")

    def work(self, folder):
        backup.restore(folder / "copy.zip", folder / "w", force=True)

    def check(self, folder, done):
        new = ("new", wanted(0))
        assert (found := ((folder / "w" / "note").read_text(), keys(folder / "w"))) in (new, ("old", wanted(0, 1, 2)))
        assert found == new or not done, "a restore that was acknowledged is not there"
        aside = list(folder.glob("w.before-*"))
        assert found != new or [keys(one) for one in aside] == [wanted(0, 1, 2)], "what was there is not set aside"


class Migrate:
    """A store of the first schema is opened by today's code."""

    def prepare(self, folder):
        from tests.store.test_durability import at_revision

        self.before = [tuple(row) for row in at_revision(folder / "w", "0001")]

    def work(self, folder):
        open_store(folder / "w").close()

    def check(self, folder, done):
        from tests.store.test_durability import events_of

        open_store(folder / "w").close()
        assert events_of(folder / "w" / FILE) == self.before, "a label is lost or changed"


class Salvage:
    """A damaged store is salvaged; what can be gathered is never less."""

    def prepare(self, folder):
        put(folder / "w", *range(4))
        path = folder / "w" / FILE
        data = bytearray(path.read_bytes())
        data[data.find(b"c2.1") + 1] ^= 1
        path.write_bytes(data)

    def work(self, folder):
        salvage(folder / "w")

    def check(self, folder, done):
        if not done:
            try:
                salvage(folder / "w")
            except StoreError as error:
                if "is whole" not in str(error):
                    raise
        assert len(keys(folder / "w")) == 11, "an event that was whole is lost"
        assert list((folder / "w" / BACKUPS).glob("*-damaged.db")), "the damaged file is not kept"


def main(name, folder, every):
    counted = {"done": 0, "refused": 0, "calls": 0, "wrong": ""}
    for code in (errno.EIO, errno.ENOSPC):
        for n in count(1, every):
            place = folder / "place"
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            work = WORKS[name]()
            work.prepare(place)
            FAULTS.fails_at(str(place).encode(), n, code)
            done, wrong = False, ""
            try:
                work.work(place)
                done = True
            except (WinnowError, OSError):
                pass
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}"
            seen = FAULTS.fails_seen()
            FAULTS.fails_at(b"", -1, 0)
            counted["done" if done else "refused"] += 1
            counted["calls"] = max(counted["calls"], seen)
            try:
                work.check(place, done)
            except (AssertionError, WinnowError, OSError) as error:
                wrong = wrong or f"{type(error).__name__}: {error}"
            if wrong:
                return counted | {"wrong": f"call {n}, {errno.errorcode[code]}: {wrong}"}
            if seen < n:
                break
    return counted


WORKS = {"labels": Labels, "backup": BackUp, "restore": Restore, "migrate": Migrate, "salvage": Salvage}

if __name__ == "__main__":
    FAULTS.fails_at.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int]
    FAULTS.fails_seen.restype = ctypes.c_long
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))))
