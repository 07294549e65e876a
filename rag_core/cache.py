"""Results of questions, kept for a while: at most 1,000, for an hour, under a key of everything that changes them.

A key holds the question, all settings, the collection's revision and the content of every file that stages read, so a
re-ingest or an edited rule, structure or word list asks anew by itself. Nothing is kept of a run that fell back: the
next may succeed. What goes into a key for a pipeline on an index is in workbench.py.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from threading import RLock
from typing import Any
from uuid import uuid4

from cachetools import TTLCache

from rag_core.files import write_whole
from rag_core.types import Candidates

ENTRIES = 1000
SECONDS = 3600.0
FOLDER = "cache"
COUNTS, CLEARED = "results.json", "cleared"
READ_BY_STAGES = (".yaml", ".yml", ".json")
NOTED_EVERY = 1.0  # seconds between two writes of the counts


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """How often a result was there, since the process began."""

    hits: int = 0
    misses: int = 0
    entries: int = 0

    @property
    def hit_rate(self) -> float | None:
        """The share of questions answered from the cache, None before the first."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else None

    def to_json(self) -> dict[str, Any]:
        """Plain values; a share that nothing was asked for is null."""
        return {"hits": self.hits, "misses": self.misses, "entries": self.entries, "hit_rate": self.hit_rate}

    def to_text(self) -> str:
        """One line."""
        rate = "nothing was asked yet" if self.hit_rate is None else f"hit rate {self.hit_rate:.0%}"
        return f"{self.hits:,} hits, {self.misses:,} misses, {self.entries:,} entries; {rate}"


class ResultCache:
    """Candidates by key: the least recently used go first, all go after an hour. Safe for threads."""

    def __init__(
        self, entries: int = ENTRIES, seconds: float = SECONDS, timer: Callable[[], float] = time.monotonic
    ) -> None:
        self._held: TTLCache[tuple[str, str], Candidates] = TTLCache(entries, seconds, timer)
        self._states: dict[str, str] = {}  # what is asked → its state; results of another state are let go
        self._lock = RLock()
        self._hits = self._misses = 0
        self._noted = 0.0

    def result(self, group: str, state: str, key: str, make: Callable[[], Candidates]) -> Candidates:
        """What `make` gives, from the cache where it is there; `group` is what is asked, `state` its revision."""
        with self._lock:
            if self._states.get(group, state) != state:
                for old in [one for one in self._held if one[0] == group]:
                    del self._held[old]
            self._states[group] = state
            found = self._held.get((group, key))
            self._hits += found is not None
            self._misses += found is None
        if found is not None:
            return found
        made = make()
        if not made.fallbacks:
            with self._lock:
                self._held[(group, key)] = made
        return made

    def counts(self) -> CacheCounts:
        """Hits, misses and entries now."""
        with self._lock:
            return CacheCounts(self._hits, self._misses, len(self._held))

    def clear(self) -> None:
        """Let everything go; the counts stay."""
        with self._lock:
            self._held.clear()

    def note(self, workspace: Path) -> None:
        """Write the counts down for other processes, at most once a second; that they cannot be written is no error."""
        now = time.monotonic()
        if now - self._noted < NOTED_EVERY and self._noted:
            return
        self._noted = now
        counts = self.counts()
        document = {"hits": counts.hits, "misses": counts.misses, "entries": counts.entries}
        try:
            write_whole(workspace / FOLDER / COUNTS, json.dumps(document))
        except OSError:
            return


@cache
def shared() -> ResultCache:
    """The process's one cache."""
    return ResultCache()


def noted_counts(workspace: Path) -> CacheCounts:
    """The counts that the app over this workspace wrote down last; zeros where there are none."""
    try:
        found = json.loads((workspace / FOLDER / COUNTS).read_text(encoding="utf-8"))
        return CacheCounts(int(found["hits"]), int(found["misses"]), int(found["entries"]))
    except (OSError, ValueError, KeyError, TypeError):
        return CacheCounts()


def clear_everywhere(workspace: Path) -> None:
    """Make every process over this workspace ask anew: the mark it writes is part of every key."""
    write_whole(workspace / FOLDER / CLEARED, uuid4().hex)
    shared().clear()


def key_of(parts: Any, workspace: Path, folders: Iterable[Path]) -> str:
    """The key of a result: the given values, the content of the folders' small text files, and the last clearing."""
    files = [_content(path) for folder in folders for path in _read_by_stages(folder)]
    mark = workspace / FOLDER / CLEARED
    cleared = mark.read_text(encoding="utf-8") if mark.is_file() else ""
    text = json.dumps([parts, files, cleared], sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _read_by_stages(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix in READ_BY_STAGES and path.name != "writer.json" and path.is_file()
    )


def _content(path: Path) -> tuple[str, str]:
    found = path.stat()
    return str(path), _hashed(path, found.st_mtime_ns, found.st_size, found.st_ino)


@lru_cache(maxsize=256)
def _hashed(path: Path, changed_at: int, size: int, node: int) -> str:
    """The hash of a file's content, read again when its time, size or place on disk changes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
