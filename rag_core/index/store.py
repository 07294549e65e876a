"""A collection's own file: chunks, their metadata and their vectors in SQLite. This is the truth; indexes are caches.

Vectors are kept by (model, hash of the text), committed batch by batch while an ingest runs; the chunks are switched
over in one transaction at its end. So a killed ingest loses at most one batch and is never searched half-written.
Batches are handed to the system at once and forced to the disk with the switch.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rag_core.errors import StoreError
from rag_core.index.embed import Vectors
from rag_core.types import Chunk

FILE = "collection.sqlite"
FORMAT = 1
ROWS = 2_000  # read at a time

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS chunk (
  id TEXT PRIMARY KEY, document TEXT NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL, type TEXT NOT NULL,
  query_must TEXT, ref_ids TEXT NOT NULL, metadata TEXT NOT NULL, text_hash TEXT NOT NULL, tokens INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS vector (
  model TEXT NOT NULL, text_hash TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (model, text_hash));
CREATE TABLE IF NOT EXISTS rule_batch (
  id INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, about TEXT NOT NULL, before TEXT NOT NULL,
  after TEXT NOT NULL, undone INTEGER NOT NULL DEFAULT 0);
"""
_SELECT = (
    "SELECT id, document, title, text, type, query_must, ref_ids, metadata, text_hash, tokens FROM chunk ORDER BY id"
)
_SELECT_ONE = _SELECT.replace("ORDER BY id", "WHERE id = ?")
_PUT = "INSERT OR REPLACE INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as it is stored: where it came from, the hash of the text that is embedded, and that text's tokens."""

    chunk: Chunk
    document: str
    text_hash: str
    tokens: int

    def values(self) -> tuple[Any, ...]:
        """The row in the order of the table's columns."""
        chunk = self.chunk
        rule = None if chunk.query_must is None else _json(chunk.query_must)
        metadata = _json(dict(chunk.metadata))
        refs = _json(list(chunk.ref_ids))
        fixed = (chunk.id, self.document, chunk.title, chunk.text, chunk.type)
        return (*fixed, rule, refs, metadata, self.text_hash, self.tokens)

    def content(self) -> tuple[Any, ...]:
        """The row without the place of its document."""
        identity, _, *rest = self.values()
        return (identity, *rest)


def embedded_text(chunk: Chunk) -> str:
    """What of a chunk is embedded: its title and text, the title only once where the text begins with it."""
    begins = chunk.text.lstrip("#=-> \n\r\t").startswith(chunk.title)
    return chunk.text if begins or not chunk.title else f"{chunk.title}\n{chunk.text}"


def text_hash(text: str) -> str:
    """The key of a text's vector: its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def read_rows(rows: Sequence[Sequence[Any]]) -> Iterator[StoredChunk]:
    """Stored rows, rules as mappings. Their JSON is read at once: a reading each takes three times as long."""
    rules, references, metadata = (
        json.loads(f"[{','.join(row[column] or 'null' for row in rows)}]") for column in (5, 6, 7)
    )
    for row, rule, refs, facts in zip(rows, rules, references, metadata, strict=True):
        identity, document, title, text, type_, _, _, _, hashed, tokens = row
        yield StoredChunk(Chunk(identity, title, text, type_, rule, tuple(refs), facts), document, hashed, tokens)


def _holds(text: str, part: str) -> bool:
    """Whether a text holds another, whatever the case of either; the part comes case folded."""
    return part in text.casefold()


class CollectionFile:
    """An open collection file; use `opened`. Methods that write are for the holder of the writer lock."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def meta(self) -> dict[str, str]:
        """The collection's facts (model, dimension, fingerprint, revision …); empty before its first ingest ended."""
        return dict(self._connection.execute("SELECT key, value FROM meta"))

    def check(self) -> None:
        """Read the whole file; a StoreError where it is damaged."""
        (found,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise StoreError(f"the collection's file is damaged ({str(found)[:100]}); force an ingest to build it anew")
        sum(1 for _ in self.rows())

    def rows(self) -> Iterator[StoredChunk]:
        """All chunks in the order of their ids."""
        selected = self._connection.execute(_SELECT)
        while some := selected.fetchmany(ROWS):
            yield from read_rows(some)

    def read(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a SELECT; what a person typed goes in as parameters. `holds(text, part)` ignores case."""
        self._connection.create_function("holds", 2, _holds, deterministic=True)
        return self._connection.execute(query, parameters).fetchall()

    def row(self, identity: str) -> StoredChunk | None:
        """One chunk, or None where there is none of that id."""
        found = self._connection.execute(_SELECT_ONE, (identity,)).fetchone()
        return None if found is None else next(read_rows([found]))

    def known_hashes(self, model: str) -> set[str]:
        """The hashes of the texts whose vectors of that model are stored."""
        found = self._connection.execute("SELECT text_hash FROM vector WHERE model = ?", (model,))
        return {hashed for (hashed,) in found}

    def vectors(self, model: str, hashes: Sequence[str], dimension: int) -> Vectors:
        """The vectors of the hashes, in their order; a StoreError where one is missing or has another width."""
        places = {hashed: place for place, hashed in enumerate(dict.fromkeys(hashes))}
        width = 4 * dimension
        data = memoryview(bytearray(len(places) * width))  # filled as it is read: vectors are in memory once
        missing = len(places)
        try:
            # the + has the table read in its own order: through the index a million rows are read here and there
            for hashed, one in self._connection.execute(
                "SELECT text_hash, data FROM vector WHERE +model = ?", (model,)
            ):
                if (place := places.get(hashed)) is not None:
                    data[place * width : (place + 1) * width] = one
                    missing -= 1
        except ValueError:
            missing = 1
        if missing:
            raise StoreError("the collection lacks vectors of some chunks; ingest again")
        found = np.frombuffer(data, dtype="<f4").reshape(len(places), dimension).astype(np.float32, copy=False)
        return found if len(places) == len(hashes) else found[[places[hashed] for hashed in hashes]]

    def add_vectors(self, model: str, hashes: Sequence[str], vectors: Vectors) -> None:
        """Store one batch of vectors, whole or not at all; committed when this returns.

        No batch waits for the disk: killing the process loses none, a power cut the last few, which are embedded again.
        """
        rows = [(model, hashed, row.astype("<f4").tobytes()) for hashed, row in zip(hashes, vectors, strict=True)]
        with self._transaction(wait_for_disk=False):
            self._connection.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?, ?)", rows)

    def rule_batches(self) -> list[tuple[int, str, str, dict[str, Any], dict[str, Any], bool]]:
        """(number, time, about, rules before, rules after, undone) of every batch of rule changes, oldest first."""
        known = self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'rule_batch'").fetchone()
        if known is None:  # written before there were batches, and only read now
            return []
        found = self._connection.execute("SELECT id, at, about, before, after, undone FROM rule_batch ORDER BY id")
        return [
            (number, at, about, json.loads(before), json.loads(after), bool(undone))
            for number, at, about, before, after, undone in found
        ]

    def change_rules(
        self, rules: Mapping[str, Any], facts: Mapping[str, str], batch: tuple[str, str, Mapping[str, Any]] | int
    ) -> int:
        """Set the rules of chunks (None: no rule) and nothing else, in one transaction; the batch's number.

        `batch` is a new one (time, about, rules before), or the number of the one that this undoes.
        """
        stored = [(None if rule is None else _json(rule), identity) for identity, rule in rules.items()]
        with self._transaction():
            self._connection.executemany("UPDATE chunk SET query_must = ? WHERE id = ?", stored)
            self._connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", facts.items())
            if isinstance(batch, int):
                self._connection.execute("UPDATE rule_batch SET undone = 1 WHERE id = ?", (batch,))
                return batch
            at, about, before = batch
            written = self._connection.execute(
                "INSERT INTO rule_batch (at, about, before, after) VALUES (?, ?, ?, ?)",
                (at, about, _json(dict(before)), _json(dict(rules))),
            )
            return int(written.lastrowid or 0)

    def switch(self, rows: Iterable[StoredChunk], removed: Iterable[str], facts: Mapping[str, str]) -> None:
        """Make the collection hold these rows besides those it has, less the removed ones; one transaction."""
        with self._transaction():
            self._connection.executemany("DELETE FROM chunk WHERE id = ?", ((identity,) for identity in removed))
            self._connection.executemany(_PUT, (row.values() for row in rows))
            self._connection.execute(
                "DELETE FROM vector WHERE model != ? OR text_hash NOT IN (SELECT text_hash FROM chunk)",
                (facts["model"],),
            )
            self._connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", facts.items())

    @contextmanager
    def reading(self) -> Iterator[None]:
        """All reads inside see one state, whatever a writer does meanwhile."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.rollback()

    @contextmanager
    def _transaction(self, wait_for_disk: bool = True) -> Iterator[None]:
        self._connection.execute(f"PRAGMA synchronous = {'FULL' if wait_for_disk else 'NORMAL'}")
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.rollback()
            raise


@contextmanager
def opened(folder: Path, write: bool = False) -> Iterator[CollectionFile]:
    """The collection's file, made where it is opened for writing; SQLite's errors come out as StoreErrors."""
    path = folder / FILE
    if not write and not path.is_file():
        raise StoreError(f"collection {folder.name} is not there, expected {path}; ingest documents into it first")
    connection = None
    try:
        uri = f"{path.absolute().as_uri()}?mode={'rwc' if write else 'ro'}"
        connection = sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None)
        if write:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.executescript(_SCHEMA)
        made = connection.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
        if made and made[0] != str(FORMAT):
            raise StoreError(
                f"the collection has format {made[0]}, expected {FORMAT}; it was written by another version"
            )
        yield CollectionFile(connection)
    except sqlite3.Error as error:
        raise StoreError(f"collection {folder.name} cannot be {'written' if write else 'read'} ({error})") from None
    finally:
        if connection is not None:
            connection.close()


@contextmanager
def in_memory(rows: Iterable[StoredChunk]) -> Iterator[CollectionFile]:
    """A file of these rows that is gone afterwards; of one id the last counts."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(_SCHEMA)
        connection.executemany(_PUT, (row.values() for row in rows))
        yield CollectionFile(connection)
