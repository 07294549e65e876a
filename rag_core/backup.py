"""One file that holds a workspace and its database, and the way back; every part is checked by its SHA-256.

The database is in it as portable lines (store/dump.py), so that a copy made on SQLite can go to PostgreSQL and back.
Left out is what can be made again or belongs to a running program: Chroma's cache, locks, logs, half-written files.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from rag_core import journal
from rag_core.errors import InputError, StoreError
from rag_core.settings import database_settings
from rag_core.store import dump, holding
from rag_core.store.database import BACKUPS, FILE, has_store, open_store

KIND, VERSION = "winnow back-up", 1
MANIFEST, DATABASE, FILES = "manifest.json", "database.jsonl", "workspace/"
LEFT_OUT = frozenset({BACKUPS, "chroma", "__pycache__", journal.FILE, journal.FILE_BEFORE})
ENDINGS_LEFT_OUT = (".lock", ".partial", "-wal", "-shm", "-journal")
LARGEST_MANIFEST = 64 * 1024 * 1024
MOST_RATIO, OF_ANY_RATIO = 200, 100_000_000  # bytes out of each byte of the file, and bytes that may come anyway
SQLITE = b"SQLite format 3\x00"
EARLIEST = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Report:
    """What a back-up holds or a restore brought back. `aside` is where the workspace that was there is now, or ''."""

    path: Path
    files: int
    bytes: int
    rows: Mapping[str, int]
    at: str
    aside: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def to_text(self) -> str:
        """How much, of which tables, and where."""
        rows = ", ".join(f"{name} {count:,}" for name, count in self.rows.items()) or "no database"
        aside = f"; what was there is now {self.aside}" if self.aside else ""
        return f"{self.files:,} parts, {self.bytes / 1e6:,.1f} MB ({rows}): {self.path}{aside}"


def make(workspace: Path, path: Path) -> Report:
    """Write a back-up to `path`; it appears under that name only when it is whole. StoreError: there is nothing."""
    if path.exists():
        raise InputError(f"{path} is there already, expected a new name")
    if not path.parent.is_dir() or path.resolve().is_relative_to(workspace.resolve()):
        raise InputError(f"{path} is in no folder, or in the workspace itself; expected a place beside it")
    if not workspace.is_dir() and not has_store(workspace):
        raise StoreError(f"there is no workspace {workspace}, expected one to back up")
    partial = path.with_name(path.name + ".partial")
    try:
        with (
            TemporaryDirectory(dir=path.parent) as folder,
            zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as bundle,
        ):
            manifest = _filled(bundle, workspace, Path(folder))
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return _report(path, manifest)


def _filled(bundle: zipfile.ZipFile, workspace: Path, scratch: Path) -> dict[str, Any]:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    manifest: dict[str, Any] = {"kind": KIND, "version": VERSION, "at": at, "rows": {}, "files": {}}
    if has_store(workspace):
        with open_store(workspace, create=False) as store:
            dump.dump(store, scratch / DATABASE)
        manifest["rows"] = dump.check(scratch / DATABASE)[1]
        manifest["files"][DATABASE] = _add(bundle, scratch / DATABASE, DATABASE)
    for file in _kept(workspace):
        name = FILES + file.relative_to(workspace).as_posix()
        manifest["files"][name] = _add(bundle, _still(file, scratch), name)
    bundle.writestr(MANIFEST, json.dumps(manifest, ensure_ascii=False, indent=1))
    return manifest


def _kept(workspace: Path) -> Iterator[Path]:
    for file in sorted(workspace.rglob("*")):
        parts = file.relative_to(workspace).parts
        own = len(parts) == 1 and parts[0].startswith(FILE)
        passing = own or file.name.endswith(ENDINGS_LEFT_OUT) or not LEFT_OUT.isdisjoint(parts)
        if file.is_file() and not file.is_symlink() and not passing:
            yield file


def _still(file: Path, scratch: Path) -> Path:
    """The file, or where it is an SQLite database that somebody may be writing to, a copy of one state of it."""
    with file.open("rb") as opened:
        if opened.read(len(SQLITE)) != SQLITE:
            return file
    copy = scratch / "copy.db"
    copy.unlink(missing_ok=True)
    with closing(sqlite3.connect(f"file:{file.absolute().as_posix()}?mode=ro", uri=True)) as source:
        source.execute("VACUUM INTO ?", (str(copy),))
    return copy


def _add(bundle: zipfile.ZipFile, file: Path, name: str) -> dict[str, Any]:
    digest, size = hashlib.sha256(), 0
    with file.open("rb") as source, bundle.open(_entry(name), "w", force_zip64=True) as target:
        while block := source.read(1 << 20):
            target.write(block)
            digest.update(block)
            size += len(block)
    return {"sha256": digest.hexdigest(), "bytes": size}


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, EARLIEST)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o600 << 16
    return entry


def restore(path: Path, workspace: Path, *, force: bool = False) -> Report:
    """Bring a back-up into a workspace and its database, after every part was found to be what was stored.

    What is there is never overwritten without `force`; with it, the folder is set aside under a name of its own and the
    rows of a PostgreSQL database are copied into the new one's `backups` first. Folder and rows change together or not
    at all: a back-up that is damaged, a folder that cannot be moved and a database that fails change nothing. Where a
    server or a command uses the workspace, it is a StoreError that names its process.
    """
    workspace = workspace.absolute()
    if not path.is_file():
        raise InputError(f"there is no file {path}, expected one made by backup")
    if not force and workspace.is_dir() and any(workspace.iterdir()):
        raise StoreError(f"workspace {workspace} is not empty, expected a new one or --force")
    swap = _Swap(fresh := workspace.with_name(workspace.name + holding.RESTORING), workspace)
    with holding.alone(workspace):
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        try:
            manifest = _unpacked(path, fresh)
            _database(fresh, workspace, force, swap)
            swap.do()
        except BaseException:
            swap.undo()
            raise
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return _report(path, manifest, swap.aside)


def _database(fresh: Path, workspace: Path, force: bool, swap: _Swap) -> None:
    """The rows: in a file they come with the folder; a server's count from the moment the folder is in its place."""
    lines, server = fresh / DATABASE, database_settings() is not None
    if not lines.is_file():
        return

    def last() -> None:
        lines.unlink()
        if server:
            swap.do()

    with open_store(fresh) as store:
        if server and force and workspace.is_dir():
            (fresh / BACKUPS).mkdir(exist_ok=True)
            copy = store.back_up("before-restore")
            copy.replace(fresh / BACKUPS / copy.name)
        dump.restore(store, lines, force=force, last=last)


class _Swap:
    """The restored folder in the place of the workspace, which is set aside; and the way back.

    With a server it happens while the rows do not count yet: an error takes both back. Where a process dies in between,
    the old rows stand beside the new folder; the same command again, with force, makes both new.
    """

    def __init__(self, fresh: Path, workspace: Path) -> None:
        self.fresh, self.workspace, self.aside, self.done = fresh, workspace, "", False

    def do(self) -> None:
        """Swap, once."""
        if self.done:
            return
        if self.workspace.is_dir():
            kept = self.workspace.with_name(f"{self.workspace.name}.before-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}")
            self.workspace.rename(kept)
            self.aside = str(kept)
        self.fresh.rename(self.workspace)
        self.done = True

    def undo(self) -> None:
        """Everything where it was, however far the swap came."""
        if self.done:
            self.workspace.rename(self.fresh)
        if self.aside:
            Path(self.aside).rename(self.workspace)


def _unpacked(path: Path, folder: Path) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(path) as bundle:
            manifest = _manifest(bundle, path, folder)
            for name, facts in manifest["files"].items():
                _take(bundle, name, facts, folder / _place(name, path), path)
            return manifest
    except InputError:
        raise
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{path.name} is damaged or no back-up ({type(error).__name__})") from None


def _manifest(bundle: zipfile.ZipFile, path: Path, folder: Path) -> dict[str, Any]:
    if bundle.getinfo(MANIFEST).file_size > LARGEST_MANIFEST:
        raise InputError(f"{path.name} has a list of parts that is too long, expected up to 64 MB")
    try:
        manifest = json.loads(bundle.read(MANIFEST))
    except ValueError:
        manifest = None
    if not isinstance(manifest, dict) or (manifest.get("kind"), manifest.get("version")) != (KIND, VERSION):
        raise InputError(f"{path.name} is no back-up of this program, version {VERSION}")
    if sorted(bundle.namelist()) != sorted([MANIFEST, *manifest["files"]]):
        raise InputError(f"{path.name} does not hold the parts it lists, expected exactly those")
    listed, most = sum(int(facts["bytes"]) for facts in manifest["files"].values()), shutil.disk_usage(folder).free
    most = min(most, path.stat().st_size * MOST_RATIO + OF_ANY_RATIO)
    if listed > most:
        raise InputError(f"{path.name} would unpack to {listed:,} bytes, expected at most {most:,}")
    return manifest


def _place(name: str, path: Path) -> str:
    parts = PurePosixPath(name).parts
    if name != DATABASE and (len(parts) < 2 or parts[0] + "/" != FILES or {"..", "/"} & set(parts) or "\\" in name):
        raise InputError(f"{path.name} holds a part named {name[:80]!r}, expected one under {FILES}")
    return name if name == DATABASE else "/".join(parts[1:])


def _take(bundle: zipfile.ZipFile, name: str, facts: Mapping[str, Any], target: Path, path: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, left = hashlib.sha256(), int(facts["bytes"])
    with bundle.open(name) as source, target.open("wb") as file:
        while left >= 0 and (block := source.read(1 << 20)):
            left -= len(block)  # a part longer than listed stops here, however much it would unpack to
            file.write(block)
            digest.update(block)
    if left or digest.hexdigest() != facts["sha256"]:
        raise InputError(f"{path.name} is damaged: {name[:80]!r} is not what was stored")


def _report(path: Path, manifest: Mapping[str, Any], aside: str = "") -> Report:
    sizes = [int(facts["bytes"]) for facts in manifest["files"].values()]
    return Report(path, len(sizes), sum(sizes), dict(manifest["rows"]), str(manifest["at"]), aside)
