"""Runs in the store: immutable snapshots, and notes that are only ever added.

A run is kept as the text of its file; nothing here looks into it. What a run holds is compare/run_file.py's business.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, func, select

from rag_core.errors import InputError, StoreError
from rag_core.files import parse_json
from rag_core.store.database import Store
from rag_core.store.schema import run, run_note

MAX_NOTE = 10_000


@dataclass(frozen=True, slots=True)
class StoredRun:
    """What a list of runs shows. `summary` is what was given when it was saved."""

    id: str
    at: str
    name: str
    eval_set: str
    summary: Mapping[str, Any]
    notes: int = 0


@dataclass(frozen=True, slots=True)
class Note:
    """A remark on a run."""

    at: str
    author: str
    note: str


class RunStore:
    """Runs in an open store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def save(self, document: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
        """Keep a run under its own id, which is returned; the very same run again is harmless.

        A StoreError where another run has that id.
        """
        snapshot = json.dumps(document, ensure_ascii=False, allow_nan=False)
        row = {name: str(document[name]) for name in ("id", "at", "name", "eval_set")}
        with self.store.writing() as connection:
            known = connection.scalar(select(run.c.snapshot).where(run.c.id == row["id"]))
            if known is None:
                told = json.dumps(dict(summary), ensure_ascii=False, allow_nan=False)
                connection.execute(run.insert().values(**row, summary=told, snapshot=snapshot))
            elif known != snapshot:
                raise StoreError(f"run {row['id']} is stored already with other contents, expected a run of its own id")
        return row["id"]

    def listed(self, eval_set: str | None = None) -> list[StoredRun]:
        """The runs, newest first; of one eval set where it is named."""
        notes = select(run_note.c.run, func.count().label("notes")).group_by(run_note.c.run).subquery()
        columns = (run.c.id, run.c.at, run.c.name, run.c.eval_set, run.c.summary, notes.c.notes)
        query = select(*columns).join(notes, notes.c.run == run.c.id, isouter=True)
        if eval_set is not None:
            query = query.where(run.c.eval_set == eval_set)
        with self.store.reading() as connection:
            rows = connection.execute(query.order_by(run.c.at.desc(), run.c.id)).all()
        return [StoredRun(*row[:4], json.loads(row[4]), row[5] or 0) for row in rows]

    def document(self, wanted: str) -> dict[str, Any]:
        """The run file's contents, by id or by a beginning of it that fits one run only."""
        with self.store.reading() as connection:
            text = connection.scalar(select(run.c.snapshot).where(run.c.id == self._id(wanted)))
        return dict(parse_json(str(text), f"run {wanted[:80]}"))

    def _id(self, wanted: str) -> str:
        """The one stored id that begins so, or an InputError."""
        with self.store.reading() as connection:
            ids = [str(one) for one in connection.scalars(select(run.c.id).order_by(run.c.id))]
        fitting = [one for one in ids if wanted and one.startswith(wanted)]
        if wanted in ids:
            return wanted
        if len(fitting) != 1:
            problem = f"fits {len(fitting)} runs" if fitting else "is not among the stored runs"
            raise InputError(f"run {wanted[:80]!r} {problem}, expected one of {', '.join(ids[-20:]) or 'none yet'}")
        return fitting[0]

    def add_note(self, wanted: str, author: str, note: str) -> str:
        """Add a remark to a run; the run's id. Notes are never changed."""
        text = note.strip()
        if not text or len(text) > MAX_NOTE:
            raise InputError(f"a note has {len(text):,} characters, expected 1 to {MAX_NOTE:,}")
        chosen = self._id(wanted)
        at = datetime.now(UTC).isoformat(timespec="seconds")
        with self.store.writing() as connection:
            connection.execute(run_note.insert().values(run=chosen, at=at, author=author.strip()[:200], note=text))
        return chosen

    def notes(self, wanted: str) -> list[Note]:
        """The remarks on a run, oldest first."""
        query = select(run_note.c.at, run_note.c.author, run_note.c.note).where(run_note.c.run == self._id(wanted))
        with self.store.reading() as connection:
            return [Note(*row) for row in connection.execute(query.order_by(run_note.c.position))]

    def delete(self, wanted: str) -> str:
        """Take a run and its notes out of the store; the run's id."""
        chosen = self._id(wanted)
        with self.store.writing() as connection:
            connection.execute(delete(run_note).where(run_note.c.run == chosen))
            connection.execute(delete(run).where(run.c.id == chosen))
        return chosen
