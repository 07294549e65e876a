"""Open the store of a workspace safely: its SQLite file, or the team's PostgreSQL where WINNOW_DATABASE_URL names one.

Here: transactions and errors in plain words, the same for both. What each database needs is in sqlite.py and
postgres.py, the schema's steps are in migrate.py, what is stored in labels.py, portable copies in dump.py.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionFree

from rag_core.errors import StoreError
from rag_core.settings import DatabaseSettings, database_settings
from rag_core.store import holding, postgres, sqlite
from rag_core.store.migrate import migrate, refuse_unknown, revision
from rag_core.store.schema import HEAD
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


def has_store(workspace: Path) -> bool:
    """Whether there is a store to open: a server is named, or the workspace's file is there."""
    return database_settings() is not None or (workspace / FILE).is_file()


def open_store(workspace: Path, *, create: bool = True, busy_seconds: float = BUSY_SECONDS) -> Store:
    """The label store of a workspace: checked, brought to this schema (after a back-up), ready to write.

    A damaged or write-protected file opens for reading and says why in `unwritable`. A file that cannot be read at all,
    a schema newer than this code, a network folder, a server that does not answer, or (without `create`) a missing file
    is a StoreError.
    """
    server = database_settings()
    if server:
        return _open_server(workspace, server, busy_seconds)
    path = workspace / FILE
    if not create and not path.is_file():
        raise StoreError(f"no label store at {path}, expected one made by labelling or importing")
    refuse_network_folder(workspace)
    holding.refuse_missing(workspace)
    with plain_errors(f"label store {path}", busy_seconds):
        workspace.mkdir(parents=True, exist_ok=True)
        if path.is_file() and not sqlite.writable(path):
            return _open_for_reading(workspace, f"label store {path} is write-protected", busy_seconds)
        damage = sqlite.damage(path, busy_seconds) if path.is_file() else ""
        if damage:
            return _open_for_reading(workspace, f"label store {path} is damaged ({damage})", busy_seconds)
        identity = sqlite.made(path)
        engine = sqlite.engine(path, busy_seconds, expected=identity)
        return _brought_up(Store(workspace, engine, busy_seconds=busy_seconds, identity=identity))


def _brought_up(store: Store) -> Store:
    """The store at this schema, sharing its workspace; a missing step waits until nobody else uses it."""
    try:
        with store.reading() as connection:
            before = revision(connection)
        if before not in ("", HEAD):
            refuse_unknown(store, before)
            with holding.alone(store.workspace, store.busy_seconds):
                migrate(store)
        store = replace(store, hold=holding.share(store.workspace, store.busy_seconds))
        if not before:  # no label stands in an empty file: it is filled beside others, one of which may be our own deed
            migrate(store)
    except BaseException:
        store.close()
        raise
    return store


def _open_server(workspace: Path, server: DatabaseSettings, busy_seconds: float) -> Store:
    """A server that only lets read is opened for reading, where its schema is one this code knows."""
    name = f"label database {server.shown}"
    with plain_errors(name, busy_seconds):
        workspace.mkdir(parents=True, exist_ok=True)
        store = Store(workspace, postgres.engine(server.url, busy_seconds), "", busy_seconds, server.shown)
        with store.reading() as connection:
            why = postgres.why_unwritable(connection)
            found = revision(connection)
    if not why:
        return _brought_up(store)
    refuse_unknown(store, found)
    sentence = f"{name} {why}: labels can be read and exported, not changed"
    return Store(workspace, store.engine, sentence, busy_seconds, server.shown)


def _open_for_reading(workspace: Path, why: str, busy_seconds: float) -> Store:
    # A write-ahead log needs a writable folder even to be read; without one the file alone is read as it stands.
    writable_folder = os.access(workspace, os.W_OK)
    engine = sqlite.engine(workspace / FILE, busy_seconds, "mode=ro" if writable_folder else "immutable=1")
    store = Store(workspace, engine, f"{why}: labels can be read and exported, not changed", busy_seconds)
    try:
        with store.reading() as connection:
            refuse_unknown(store, revision(connection))
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
        raise StoreError(f"{name} {_told(error, busy_seconds)}") from None
    except OSError as error:
        raise StoreError(f"the workspace of {name} cannot be used ({error.strerror or error})") from None


def _told(error: Exception, busy_seconds: float) -> str:
    original = getattr(error, "orig", None) or error
    if type(original).__module__.startswith("psycopg"):
        return postgres.told(error, busy_seconds)
    said = str(original)
    known = (words for sign, words in sqlite.CAUSES if sign in said.lower())
    return next(known, f"refused the work ({said[:200]})").format(busy=busy_seconds)
