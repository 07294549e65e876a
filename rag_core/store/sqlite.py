"""The SQLite side of the label store: one file per workspace, durable, never changed when it is damaged.

Here: connections, the check of the file, copies of it. What a store is and how it is opened is database.py. Durability
follows https://sqlite.org/wal.html: WAL with synchronous=FULL keeps a commit across a power cut.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event

from rag_core.errors import StoreError
from rag_core.store.holding import FILE as LOCK
from rag_core.store.holding import identity, identity_of

MOUNTS = Path("/proc/self/mountinfo")
NAMES = r"nfs4?|cifs|smb3|smbfs|afs|ceph|glusterfs|lustre|beegfs|davfs2?|ocfs2|gfs2|sshfs|s3fs|gcsfuse|rclone"
NETWORK = re.compile(rf"(?:fuse\.)?(?:{NAMES})")  # not 9p: containers show their local disk as that


def refuse_network_folder(folder: Path, mounts: str | None = None) -> None:
    """Raise a StoreError where the folder lies on a network file system that can be told as one."""
    if mounts is None:
        with suppress(OSError):
            mounts = MOUNTS.read_text("utf-8", "replace")
    kind = file_system(folder, mounts or "")
    if NETWORK.fullmatch(kind):
        raise StoreError(f"workspace {folder} lies on a network file system ({kind}), expected a local disk")


def file_system(folder: Path, mounts: str) -> str:
    """The file system type of the deepest mount above the folder, '' where the table does not tell.

    `mounts` is the text of /proc/self/mountinfo (proc_pid_mountinfo(5)); of two mounts on one point the later counts.
    """
    target, best, kind = folder.resolve(), Path(), ""
    for line in mounts.splitlines():
        fields, _, tail = line.partition(" - ")
        written = fields.split()[4] if len(fields.split()) > 4 else ""
        point = Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), written))
        if written and target.is_relative_to(point) and len(point.parts) >= len(best.parts):
            best, kind = point, (tail.split() or [""])[0]
    return kind


FILE = "winnow.db"
BACKUPS = "backups"

CAUSES = (  # what SQLite says → what to tell
    ("file moved", "was moved, deleted or replaced while it was open: nothing of this counts, do it again"),
    ("locked", "is held by another writer for too long, expected it to be free within {busy:g} s"),
    ("full", "cannot grow: the disk or its quota is full"),
    ("readonly", "is read-only, expected to be allowed to write"),
    ("unable to open", "cannot be opened, expected a readable file in a readable folder"),
    ("not a database", "is not an SQLite database; it was left as it is"),
    ("malformed", "is damaged; it was left as it is, restore a back-up"),
    ("disk i/o error", "cannot be read or written: the disk reports an error"),
)


def told(error: BaseException, busy_seconds: float) -> str:
    """What SQLite said, in plain words."""
    known = (words for sign, words in CAUSES if sign in str(error).lower())
    return next(known, f"refused the work ({str(error)[:200]})").format(busy=busy_seconds)


TICK = 50_000_000  # nanoseconds within which a file may change and keep its time
_whole: dict[Path, tuple[int, ...]] = {}


def why_unwritable(path: Path, busy_seconds: float) -> str:
    """'' or why a file that is there can only be read: write protection, or what PRAGMA quick_check complains about.

    A file that stands as it did when it was found whole is not checked again: at 60,000 labels it takes 30 ms, and
    every page looks at the labels.
    """
    if not path.is_file():
        return ""
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return "is write-protected"
    status = path.stat()
    stands = (*identity_of(status), status.st_size, status.st_mtime_ns)
    if _whole.get(path) == stands:
        return ""
    opened = engine(path, busy_seconds, "mode=ro")
    try:
        with closing(opened.raw_connection()) as connection:
            complaints = [str(row[0]) for row in connection.cursor().execute("PRAGMA quick_check(1)").fetchall()]
        if complaints == ["ok"]:
            if time.time_ns() - status.st_mtime_ns > TICK:
                _whole[path] = stands
            return ""
        return f"is damaged ({'; '.join(complaints)[:200]})".replace("\n", " ")
    except Exception as error:  # a page so broken that the check itself stops
        if "malformed" in str(error):
            return "is damaged (database disk image is malformed)"
        raise
    finally:
        opened.dispose()


def made(path: Path) -> tuple[int, int] | None:
    """Device and number of the file at that path, which is made where it is not there."""
    with suppress(FileExistsError):
        # never where it is there: to close a file of SQLite's gives back this process's locks on it
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            return identity_of(os.fstat(handle))
        finally:
            os.close(handle)
    return identity(path)


def engine(path: Path, busy_seconds: float, mode: str = "", expected: tuple[int, int] | None = None) -> Engine:
    """`mode` is '' for a connection that may write, else the URI parameter of one that may not.

    Each connection is to the file that is `expected`, log included, which SQLite opens by name: else it is refused.
    """
    uri = f"file:{quote(str(path.absolute()))}?{mode or 'mode=rwc'}"

    def connect() -> sqlite3.Connection:
        # isolation_level: the driver begins nothing by itself; _begin does. The pool hands connections to any thread.
        connection = sqlite3.connect(uri, busy_seconds, isolation_level=None, check_same_thread=False, uri=True)
        if not mode:
            _write_ahead(connection, time.monotonic() + busy_seconds)
            connection.execute("PRAGMA synchronous=FULL")
        if expected is not None:
            connection.execute("SELECT name FROM sqlite_master").fetchone()  # opens the log
            if identity(path) != expected:
                connection.close()
                raise sqlite3.OperationalError("file moved")
        return connection

    # hide_parameters: an error must never carry a note or an id's text.
    made = create_engine("sqlite+pysqlite://", creator=connect, poolclass=QueuePool, hide_parameters=True)
    event.listen(made, "begin", _begin)
    return made


def _write_ahead(connection: sqlite3.Connection, deadline: float) -> None:
    """Set WAL; that step alone does not wait for others by itself, so wait here."""
    while True:
        try:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _begin(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def back_up(opened: Engine, workspace: Path, reason: str) -> Path:
    """Copy the store whole into `backups` (VACUUM INTO a temporary name, fsync, rename)."""
    final = backup_path(workspace, reason, "db")
    partial = final.with_suffix(".partial")
    try:
        with closing(opened.raw_connection()) as connection:
            connection.cursor().execute("VACUUM INTO ?", (str(partial),))
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        return partial.replace(final)
    finally:
        partial.unlink(missing_ok=True)


COPY_EVERY = 600.0  # seconds in which labels came
COPIES_KEPT = 24
WHILE_LABELLING = "auto"


def copies(workspace: Path, reason: str = "*") -> list[Path]:
    """The whole copies in `backups`, the oldest first."""
    return sorted((workspace / BACKUPS).glob(f"winnow-*-{reason}.db"))


def copy_due(workspace: Path) -> bool:
    """Whether the newest copy, or where there is none the workspace itself, is older than COPY_EVERY."""
    newest = (copies(workspace) or [workspace / LOCK])[-1]
    with suppress(OSError):
        return time.time() - newest.stat().st_mtime > COPY_EVERY
    return False


def copy_and_prune(opened: Engine, workspace: Path) -> None:
    """Copy the store for whoever labels in it; of such copies the newest COPIES_KEPT stay."""
    back_up(opened, workspace, WHILE_LABELLING)
    for old in copies(workspace, WHILE_LABELLING)[:-COPIES_KEPT]:
        old.unlink(missing_ok=True)


def refuse_emptied(path: Path) -> None:
    """Raise a StoreError for a file that holds nothing though copies of it do."""
    if path.is_file() and not path.stat().st_size and copies(path.parent):
        raise StoreError(
            f"label store {path} is empty though there are copies of it in {BACKUPS}, expected labels: "
            "`winnow doctor --salvage` brings back what they hold"
        )


def backup_path(workspace: Path, reason: str, ending: str) -> Path:
    """A name in `backups` (made where it is not there) that says when and why."""
    folder = workspace / BACKUPS
    folder.mkdir(exist_ok=True)
    return folder / f"winnow-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}-{reason}.{ending}"
