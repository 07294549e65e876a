"""Open the store of a workspace safely: its SQLite file, or the team's PostgreSQL where WINNOW_DATABASE_URL names one.

Here: transactions and errors in plain words, the same for both. What each database needs is in sqlite.py and
postgres.py, the schema's steps are in migrations.py, what is stored in labels.py, portable copies in dump.py.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionFree

from rag_core.errors import StoreError
from rag_core.settings import database_settings
from rag_core.store import holding, postgres, sqlite
from rag_core.store.migrations import HEAD, migrate, refuse_unknown, revision
from rag_core.store.sqlite import BACKUPS, FILE, refuse_network_folder

BUSY_SECONDS = 30.0

__all__ = ["BACKUPS", "BUSY_SECONDS", "FILE", "Store", "has_store", "open_store", "plain_errors"]


@dataclass(frozen=True)
class Store:
    """An open label store. `unwritable` is '' or the sentence why only reading is allowed; close it when done.

    `server` is '' for the workspace's file, else the address of the database without user and password. One that may
    write holds the workspace beside others (`hold`) and knows which file it opened (`identity`).
    """

    workspace: Path
    engine: Engine
    unwritable: str = ""
    busy_seconds: float = BUSY_SECONDS
    server: str = ""
    hold: sqlite3.Connection | None = None
    identity: tuple[int, int] | None = None

    @property
    def path(self) -> Path:
        """The database file; with a server there is none there."""
        return self.workspace / FILE

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"label database {self.server}" if self.server else f"label store {self.path}"

    @property
    def away(self) -> str:
        """'' or the sentence that the file which is open is no longer the one at its path."""
        if self.identity is None or self.identity == holding.identity(self.path):
            return ""
        return f"{self.name} was moved, deleted or replaced while it was open: nothing of this counts, do it again"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state of the store and waits for nobody."""
        options = postgres.reading_options() if self.server else {}
        with plain_errors(self.name, self.busy_seconds), self.engine.execution_options(**options).begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that alone may write; only after the block has ended without an error is it on disk.

        On disk where the workspace is now: a StoreError where it is another file than the one that was written.
        """
        if why := self.unwritable or self.away:
            raise StoreError(why)
        immediate = self.engine.execution_options(immediate=True)
        with plain_errors(self.name, self.busy_seconds), immediate.begin() as connection:
            yield connection
        if why := self.away:  # moved meanwhile: what was committed went with the old file and is not acknowledged
            raise StoreError(why)

    def back_up(self, reason: str) -> Path:
        """A whole copy in `backups`, named by time and reason; returns its path once it is on disk."""
        from rag_core.store.dump import dump

        with plain_errors(self.name, self.busy_seconds):
            if self.server:
                return dump(self, sqlite.backup_path(self.workspace, reason, "jsonl"))
            return sqlite.back_up(self.engine, self.workspace, reason)

    def copy_when_due(self) -> None:
        """While people label: a copy now and then, made in the background, so that nobody waits for it."""
        if self.server or not sqlite.copy_due(self.workspace) or not _copying.acquire(blocking=False):
            return
        threading.Thread(target=_copied, args=(self.workspace,), name="copy").start()

    def close(self) -> None:
        """Give the file or the connections back, and the workspace free."""
        self.engine.dispose()
        if self.hold is not None:
            self.hold.close()

    def __enter__(self) -> Store:
        """The store itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


_copying = threading.Lock()


def _copied(workspace: Path) -> None:
    try:
        with open_store(workspace, create=False) as store, plain_errors(store.name, store.busy_seconds):
            sqlite.copy_and_prune(store.engine, workspace)
    except StoreError as error:
        logging.getLogger(__name__).warning("labels could not be copied: %s", error)
    finally:
        _copying.release()


def has_store(workspace: Path) -> bool:
    """Whether there is a store to open: a server is named, or the workspace's file is there."""
    return database_settings() is not None or (workspace / FILE).is_file()


def open_store(workspace: Path, *, create: bool = True, busy_seconds: float = BUSY_SECONDS) -> Store:
    """The label store of a workspace: checked, brought to this schema (after a back-up), ready to write.

    A damaged or write-protected file opens for reading and says why in `unwritable`. A file that cannot be read at all,
    a schema newer than this code, a network folder, a server that does not answer, or (without `create`) a missing file
    is a StoreError.
    """
    path, server = workspace / FILE, database_settings()
    name = f"label database {server.shown}" if server else f"label store {path}"
    if not server:
        if not create and not path.is_file():
            raise StoreError(f"no label store at {path}, expected one made by labelling or importing")
        refuse_network_folder(workspace)
        holding.refuse_missing(workspace)
        sqlite.refuse_emptied(path)
    with plain_errors(name, busy_seconds):
        workspace.mkdir(parents=True, exist_ok=True)
        identity = None
        if server:
            engine = postgres.engine(server.url, busy_seconds)
            why = postgres.why_unwritable(engine)
        elif why := sqlite.why_unwritable(path, busy_seconds):
            # a write-ahead log needs a writable folder even to be read; without one the file alone is read
            mode = "mode=ro" if os.access(workspace, os.W_OK) else "immutable=1"
            engine = sqlite.engine(path, busy_seconds, mode)
        else:
            identity = sqlite.made(path)
            engine = sqlite.engine(path, busy_seconds, expected=identity)
        unwritable = f"{name} {why}: labels can be read and exported, not changed" if why else ""
        shown = server.shown if server else ""
        store = Store(workspace, engine, unwritable, busy_seconds, shown, identity=identity)
        return _brought_up(store)


def _brought_up(store: Store) -> Store:
    """The store at this schema, sharing its workspace; a missing step waits until nobody else uses it.

    One that only lets read stays as it is, where its schema is one this code knows.
    """
    try:
        with store.reading() as connection:
            before = revision(connection)
        if before not in ("", HEAD) or store.unwritable:
            refuse_unknown(store, before)
        if store.unwritable:
            return store
        if before not in ("", HEAD):
            with holding.alone(store.workspace, store.busy_seconds):
                migrate(store)
        store = replace(store, hold=holding.share(store.workspace, store.busy_seconds))
        if not before:  # no label stands in an empty file: it is filled beside others, one of which may be our own deed
            migrate(store)
    except BaseException:
        store.close()
        raise
    return store


@contextmanager
def plain_errors(name: str, busy_seconds: float = BUSY_SECONDS) -> Iterator[None]:
    """Turn what the database says into one StoreError sentence, without its statement or values."""
    try:
        yield
    except (DBAPIError, NoConnectionFree, sqlite3.Error) as error:
        original = getattr(error, "orig", None) or error
        backend = postgres if type(original).__module__.startswith("psycopg") else sqlite
        raise StoreError(f"{name} {backend.told(original, busy_seconds)}") from None
    except OSError as error:
        raise StoreError(f"the workspace of {name} cannot be used ({error.strerror or error})") from None
