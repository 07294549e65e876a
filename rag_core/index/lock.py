"""One writer at a time per collection; who holds the lock is named. Readers never ask for it.

The lock is SQLite's own on a file of its own, so the system frees it when its process dies, however it dies.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rag_core.errors import StoreError
from rag_core.files import write_whole

WAIT_SECONDS = 0.3


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Hold the folder's writer lock; a StoreError naming process and host within a second where another holds it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder} cannot be made ({error.strerror}), expected a folder that can be written") from None
    connection = sqlite3.connect(folder / "writer.sqlite", timeout=WAIT_SECONDS, isolation_level=None)
    try:
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            holder = "another process"
            with suppress(OSError, ValueError, KeyError, TypeError):
                said = json.loads((folder / "writer.json").read_text(encoding="utf-8"))
                holder = f"process {int(said['pid'])} on {str(said['host'])[:100]}"
            raise StoreError(f"{folder.name} is being written by {holder} ({error}); wait or stop it") from None
        write_whole(folder / "writer.json", json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        yield
    finally:
        with suppress(sqlite3.Error):
            connection.rollback()
        connection.close()
