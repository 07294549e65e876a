"""Who uses a workspace: everybody who writes shares it; a restore and a change of schema need it alone.

The lock is SQLite's own on a file of its own in the folder, so the system frees it when its process dies, however it
dies. It goes where the folder goes: who finds another file at its path afterwards begins anew.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag_core.errors import StoreError

FILE = "holders.lock"
RESTORING = ".restoring"  # what the folder's name ends with until it takes the place of the workspace
WAIT_SECONDS = 0.3
LOCKS = Path("/proc/locks")


def share(workspace: Path, seconds: float = WAIT_SECONDS) -> sqlite3.Connection:
    """Hold the workspace beside others until the connection is closed.

    A StoreError where somebody needs it alone for longer than that, or a restore has not put a folder there yet.
    """
    return _hold(workspace, "BEGIN", seconds, "is being restored or brought up to date")


@contextmanager
def alone(workspace: Path, seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the workspace while nobody else does; a StoreError naming the processes that use it. No folder: no lock."""
    if not workspace.is_dir():
        yield
        return
    connection = _hold(workspace, "BEGIN EXCLUSIVE", seconds, "is in use")
    try:
        yield
    finally:
        connection.close()


def _hold(workspace: Path, begin: str, seconds: float, state: str) -> sqlite3.Connection:
    path, deadline = workspace / FILE, time.monotonic() + seconds
    while True:
        if not workspace.is_dir():
            raise StoreError(_away(workspace))
        connection = None
        try:
            connection = sqlite3.connect(path, seconds, isolation_level=None, check_same_thread=False)
            opened = identity(path)
            connection.execute(begin)
            connection.execute("SELECT name FROM sqlite_master").fetchone()  # BEGIN alone locks nothing yet
            if opened is not None and opened == identity(path):
                return connection
            connection.close()  # the folder was changed for another between opening and locking
        except sqlite3.OperationalError as error:
            if connection is not None:
                connection.close()
            if "locked" in str(error):
                holders = _holders(path)
                raise StoreError(f"workspace {workspace} {state} by {holders}: stop that and try again") from None
            if workspace.is_dir() and time.monotonic() > deadline:
                raise StoreError(f"workspace {workspace} cannot be written ({error}), expected to be allowed") from None
            time.sleep(0.005)


def refuse_missing(workspace: Path) -> None:
    """Raise a StoreError where a restore is about to put the workspace, so that nobody makes an empty one there."""
    if not workspace.exists() and workspace.with_name(workspace.name + RESTORING).is_dir():
        raise StoreError(_away(workspace))


def _away(workspace: Path) -> str:
    return f"workspace {workspace} is not there, expected it once its restore is done; run that again if it was stopped"


def identity(path: Path) -> tuple[int, int] | None:
    """Device and number of the file at that path, None where there is none."""
    try:
        return identity_of(path.stat())
    except OSError:
        return None


def identity_of(stat: os.stat_result) -> tuple[int, int]:
    """What no other file has while this one is open anywhere."""
    return stat.st_dev, stat.st_ino


def _holders(path: Path) -> str:
    """The processes that hold a lock on the file, as far as the system tells: Linux does, see proc_locks(5)."""
    try:
        rows = [line.split() for line in LOCKS.read_text("ascii", "replace").splitlines()]
        number = path.stat().st_ino
    except OSError:
        return "another process"
    processes = sorted({int(row[4]) for row in rows if len(row) == 8 and row[5].endswith(f":{number}")})
    named = [f"process {process}{' (this one)' if process == os.getpid() else ''}" for process in processes]
    return ", ".join(named) or "another process"
