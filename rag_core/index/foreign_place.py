"""How a Chroma store of somebody else's is reached: a copy of its folder, the folder itself, a server, or Chroma Cloud.

A folder is always served by a child process of ours, so that a crash of Chroma over a damaged store is one error and
never the end of this process. What is read there is in foreign.py.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rag_core.errors import InputError, StoreError, WinnowError
from rag_core.index.chroma_server import ANSWER_SECONDS, ChromaServer, bounded, reach_directly
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.secret import NO_KEY, Key

DATABASE = "chroma.sqlite3"
CLOUD = "https://api.trychroma.com"
SPARSE_BYTES = 1_000_000_000
SPARSE_RATIO = 20  # apparent to allocated size; the graph files of a damaged store reach thousands
IN_PLACE_WARNING = (
    "Chroma rewrites files of a store that it opens, and migrates one of an older version for good; "
    "with in-place that happens to the original, and programs of an older version may not open it afterwards"
)


@dataclass(frozen=True)
class ForeignPlace:
    """Where a foreign store is: exactly one of path, url and cloud. The key goes to the server in a header only."""

    path: Path | None = None
    url: str = ""
    cloud: bool = False
    in_place: bool = False
    tenant: str = "default_tenant"
    database: str = "default_database"
    key: Key = Key(NO_KEY)
    allow_private: bool = False

    def __post_init__(self) -> None:
        if (self.path is not None) + bool(self.url) + self.cloud != 1:
            raise InputError("the Chroma store is not named, expected one of a folder, a server's address and Cloud")
        if self.in_place and self.path is None:
            raise InputError("in-place is set for a server, expected it with a folder")

    @property
    def said(self) -> str:
        """The place as it is shown and remembered; never the key."""
        return str(self.path) if self.path is not None else self.url or f"{CLOUD} ({self.tenant}/{self.database})"


def named_place(
    path: Path | None,
    url: str,
    cloud: bool,
    in_place: bool,
    *,
    key: str,
    tenant: str,
    database: str,
    allow_private: bool,
) -> ForeignPlace:
    """The place that a person named, with what the environment says of Chroma; an InputError says what is missing.

    Key, tenant and database go to Chroma Cloud alone.
    """
    if not cloud:
        return ForeignPlace(path, url, in_place=in_place, allow_private=allow_private)
    if not key:
        raise InputError("CHROMA_API_KEY is not set, expected the key of Chroma Cloud")
    return ForeignPlace(path, url, cloud, in_place, tenant, database, Key(key), allow_private)


def named_place_of(said: str, *, key: str, tenant: str, database: str, allow_private: bool) -> ForeignPlace:
    """The place that is remembered as `said` (`ForeignPlace.said`), with what the environment says of Chroma."""
    cloud = said.startswith(CLOUD)
    url = said if "://" in said and not cloud else ""
    path = None if cloud or url else Path(said)
    return named_place(path, url, cloud, False, key=key, tenant=tenant, database=database, allow_private=allow_private)


@contextmanager
def reached(place: ForeignPlace, spare: Path) -> Iterator[Any]:
    """A Chroma client for the place; `spare` is a folder of ours that holds the copy and the server's log meanwhile.

    StoreErrors and InputErrors say what is wrong with the place, in one sentence; so does whatever Chroma does inside.
    """
    if place.path is None:
        with explained(place):
            yield _remote(place)
        return
    folder = checked_folder(place.path)
    shutil.rmtree(spare, ignore_errors=True)
    data = folder if place.in_place else _copied(folder, spare / "data")
    server = ChromaServer(spare, data)
    try:
        with explained(place, server):
            yield server.client()
    finally:
        server.stop()
        shutil.rmtree(spare, ignore_errors=True)


@contextmanager
def explained(place: ForeignPlace, server: ChromaServer | None = None) -> Iterator[None]:
    """Whatever Chroma raises as one StoreError that names the place, and says where its process died."""
    try:
        yield
    except WinnowError:
        raise
    except Exception as error:
        died = server.death() if server is not None else ""
        told = f"Chroma's process died ({died})" if died else f"Chroma failed ({type(error).__name__})"
        end = "the store may be damaged" if place.path is not None else "is a Chroma server running there?"
        raise StoreError(f"{told} while {place.said} was read; {end}") from None


def checked_folder(path: Path) -> Path:
    """The folder of a Chroma store, or an InputError: not there, no store, empty; a StoreError for a damaged one."""
    folder = path.expanduser().absolute()
    if not folder.is_dir():
        raise InputError(f"{path} is not a folder, expected one that Chroma wrote")
    if not (folder / DATABASE).is_file():
        raise InputError(f"{path} holds no {DATABASE}, expected a folder that Chroma wrote")
    if not (folder / DATABASE).stat().st_size:
        raise StoreError(f"{path}/{DATABASE} is empty: the store is damaged")
    for file in _files(folder):
        found = file.stat()
        if found.st_size > max(SPARSE_BYTES, SPARSE_RATIO * found.st_blocks * 512):
            raise StoreError(
                f"{file.name} of {path} claims {found.st_size / 1e9:,.0f} GB and holds "
                f"{found.st_blocks * 512 / 1e9:,.1f}: the store is damaged"
            )
    return folder


def stamp(folder: Path) -> str:
    """Names, sizes and times of a store's files: another stamp means that somebody wrote."""
    rows = [(str(file.relative_to(folder)), file.stat().st_size, file.stat().st_mtime_ns) for file in _files(folder)]
    return repr(sorted(rows))


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and not file.is_symlink()]


def _copied(folder: Path, target: Path) -> Path:
    """A copy of the store, the same state of every file; a StoreError where it is too large or being written."""
    size = sum(file.stat().st_size for file in _files(folder))
    target.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(target.parent).free
    if size > 0.9 * free:
        raise StoreError(
            f"{folder} holds {size / 1e9:.1f} GB and {free / 1e9:.1f} GB are free for its copy; make room, "
            "or open it in place"
        )
    for _ in range(3):
        before = stamp(folder)
        shutil.rmtree(target, ignore_errors=True)
        try:
            shutil.copytree(folder, target, symlinks=True)
        except (OSError, shutil.Error) as error:
            raise StoreError(f"{folder} cannot be copied ({type(error).__name__}), expected files to read") from None
        if stamp(folder) == before:
            return target
    raise StoreError(f"{folder} is being written while it is copied; stop its writer and connect again")


def _remote(place: ForeignPlace) -> Any:
    """The client of a server or of Cloud; its address is checked as a model endpoint's is."""
    import chromadb
    from chromadb.config import Settings

    url = place.url or CLOUD
    Endpoint("Chroma", url, "collections", allow_private=place.allow_private).check_address(resolve=True)
    parts = urlsplit(url)
    if parts.path.strip("/"):
        raise InputError(f"the address of the Chroma server has the path {parts.path[:80]}, expected http://host:port")
    secure = parts.scheme == "https"
    if parts.hostname in ("127.0.0.1", "localhost", "::1"):
        reach_directly()
    os.environ.setdefault("ANONYMIZED_TELEMETRY", "False")
    key = place.key.reveal()
    return bounded(
        chromadb.HttpClient(
            parts.hostname or "",
            parts.port or (443 if secure else 80),
            ssl=secure,
            headers={"x-chroma-token": key} if key != NO_KEY else {},
            tenant=place.tenant,
            database=place.database,
            settings=Settings(anonymized_telemetry=False),
        ),
        ANSWER_SECONDS,
    )
