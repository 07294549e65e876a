"""Open the one SQLite file of a workspace safely: durable, one writer at a time, never changed when it is damaged.

Here: connections, transactions, errors in plain words, back-ups. The schema's steps are in migrate.py, what is stored
in labels.py. Durability follows https://sqlite.org/wal.html: WAL with synchronous=FULL keeps a commit across a power
cut.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event
from sqlalchemy.exc import DBAPIError

from rag_core.errors import StoreError
from rag_core.store.migrate import migrate, refuse_unknown, revision
from rag_core.store.place import refuse_network_folder

FILE = "winnow.db"
BACKUPS = "backups"
BUSY_SECONDS = 30.0

CAUSES = (  # what SQLite says → what to tell
    ("locked", "is held by another writer for too long, expected it to be free within {busy:g} s"),
    ("full", "cannot grow: the disk or its quota is full"),
    ("readonly", "is read-only, expected to be allowed to write"),
    ("unable to open", "cannot be opened, expected a readable file in a readable folder"),
    ("not a database", "is not an SQLite database; it was left as it is"),
    ("malformed", "is damaged; it was left as it is, restore a back-up"),
    ("disk i/o error", "cannot be read or written: the disk reports an error"),
)


@dataclass(frozen=True)
class Store:
    """An open label store. `unwritable` is '' or the sentence why only reading is allowed; close it when done."""

    workspace: Path
    engine: Engine
    unwritable: str = ""
    busy_seconds: float = BUSY_SECONDS

    @property
    def path(self) -> Path:
        """The database file."""
        return self.workspace / FILE

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state of the store and waits for nobody."""
        with plain_errors(self.path, self.busy_seconds), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that alone may write; only after the block has ended without an error is it on disk."""
        if self.unwritable:
            raise StoreError(self.unwritable)
        immediate = self.engine.execution_options(immediate=True)
        with plain_errors(self.path, self.busy_seconds), immediate.begin() as connection:
            yield connection

    def back_up(self, reason: str) -> Path:
        """A whole copy in `backups`, named by time and reason; returns its path once it is on disk."""
        with plain_errors(self.path, self.busy_seconds):
            return back_up(self.engine, self.workspace, reason)

    def close(self) -> None:
        """Give the file back."""
        self.engine.dispose()

    def __enter__(self) -> Store:
        """The store itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


def open_store(workspace: Path, *, create: bool = True, busy_seconds: float = BUSY_SECONDS) -> Store:
    """The label store of a workspace: checked, brought to this schema (after a back-up), ready to write.

    A damaged or write-protected file opens for reading and says why in `unwritable`. A file that cannot be read at all,
    a schema newer than this code, a network folder, or (without `create`) a missing file is a StoreError.
    """
    path = workspace / FILE
    if not create and not path.is_file():
        raise StoreError(f"no label store at {path}, expected one made by labelling or importing")
    refuse_network_folder(workspace)
    with plain_errors(path, busy_seconds):
        workspace.mkdir(parents=True, exist_ok=True)
        if path.is_file() and not _writable(path):
            return _open_for_reading(workspace, f"label store {path} is write-protected", busy_seconds)
        damage = _damage(path, busy_seconds) if path.is_file() else ""
        if damage:
            return _open_for_reading(workspace, f"label store {path} is damaged ({damage})", busy_seconds)
        engine = _engine(path, busy_seconds)
        return _brought_up(Store(workspace, engine, busy_seconds=busy_seconds))


def _brought_up(store: Store) -> Store:
    try:
        migrate(store)
    except BaseException:
        store.close()
        raise
    return store


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _open_for_reading(workspace: Path, why: str, busy_seconds: float) -> Store:
    # A write-ahead log needs a writable folder even to be read; without one the file alone is read as it stands.
    writable_folder = os.access(workspace, os.W_OK)
    engine = _engine(workspace / FILE, busy_seconds, "mode=ro" if writable_folder else "immutable=1")
    store = Store(workspace, engine, f"{why}: labels can be read and exported, not changed", busy_seconds)
    try:
        with store.reading() as connection:
            refuse_unknown(store, revision(connection))
    except BaseException:
        store.close()
        raise
    return store


def _damage(path: Path, busy_seconds: float) -> str:
    """What PRAGMA quick_check complains about, '' where the file is whole."""
    engine = _engine(path, busy_seconds, "mode=ro")
    try:
        with closing(engine.raw_connection()) as connection:
            found = [str(row[0]) for row in connection.cursor().execute("PRAGMA quick_check(1)").fetchall()]
        return "" if found == ["ok"] else "; ".join(found)[:200].replace("\n", " ")
    except Exception as error:  # a page so broken that the check itself stops
        if "malformed" in str(error):
            return "database disk image is malformed"
        raise
    finally:
        engine.dispose()


def _engine(path: Path, busy_seconds: float, mode: str = "") -> Engine:
    """`mode` is '' for a connection that may write, else the URI parameter of one that may not."""
    uri = f"file:{quote(str(path.absolute()))}?{mode or 'mode=rwc'}"

    def connect() -> sqlite3.Connection:
        # isolation_level: the driver begins nothing by itself; _begin does. The pool hands connections to any thread.
        connection = sqlite3.connect(uri, busy_seconds, isolation_level=None, check_same_thread=False, uri=True)
        if not mode:
            _write_ahead(connection, time.monotonic() + busy_seconds)
            connection.execute("PRAGMA synchronous=FULL")
        return connection

    # hide_parameters: an error must never carry a note or an id's text.
    engine = create_engine("sqlite+pysqlite://", creator=connect, poolclass=QueuePool, hide_parameters=True)
    event.listen(engine, "begin", _begin)
    return engine


def _write_ahead(connection: sqlite3.Connection, deadline: float) -> None:
    """Set WAL; that step alone does not wait for others by itself, so wait here."""
    while True:
        try:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _begin(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def back_up(engine: Engine, workspace: Path, reason: str) -> Path:
    """Copy the store whole into `backups` (VACUUM INTO a temporary name, fsync, rename)."""
    folder = workspace / BACKUPS
    folder.mkdir(exist_ok=True)
    final = folder / f"winnow-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}-{reason}.db"
    partial = final.with_suffix(".partial")
    try:
        with closing(engine.raw_connection()) as connection:
            connection.cursor().execute("VACUUM INTO ?", (str(partial),))
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        return partial.replace(final)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def plain_errors(path: Path, busy_seconds: float = BUSY_SECONDS) -> Iterator[None]:
    """Turn what the database says into one StoreError sentence, without its statement or values."""
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        said = str(error.orig if isinstance(error, DBAPIError) else error)
        known = (text for sign, text in CAUSES if sign in said.lower())
        told = next(known, f"refused the work ({said[:200]})").format(busy=busy_seconds)
        raise StoreError(f"label store {path} {told}") from None
    except OSError as error:
        raise StoreError(f"workspace {path.parent} cannot be used ({error.strerror or error})") from None
