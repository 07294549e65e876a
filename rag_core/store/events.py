"""One label event: what a person (or an import) said about one chunk of one query, or that they take it back.

Only values and their checks; labels.py stores them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from rag_core.errors import InputError
from rag_core.store.keys import chunk_key

LABEL = "label"
UNDO = "undo"
NEEDED = ("session", "eval_set", "query_id", "chunk_id", "annotator")
STORED = (*NEEDED, "seq", "kind", "query_hash", "text_hash", "grade", "note", "batch")
GRADES = {0: "irrelevant", 1: "related", 2: "relevant", 3: "answers it"}
ADJUDICATED = "adjudicated"
"""The annotator of a decision between people: it counts before what anybody says, earlier or later."""

MODEL = "model:"
"""What the name of an annotator begins with that is a model: its labels count only where they are asked for by name."""

LARGEST_SEQ = 2**53 - 1  # what a browser counts exactly


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An entry of the append-only log; (session, seq) is its key, given by whoever made it.

    `grade` None means unsure, which counts as unjudged. `query_hash` and `text_hash` are keys.text_hash of the texts,
    '' where they are not known. An undo names the event it takes back. `at` is UTC; '' is filled in when it is stored.
    """

    session: str
    seq: int
    eval_set: str
    query_id: str
    chunk_id: str
    annotator: str
    grade: int | None = None
    note: str = ""
    query_hash: str = ""
    text_hash: str = ""
    kind: str = LABEL
    batch: str = ""
    undoes: tuple[str, int] | None = None
    at: str = ""

    @property
    def key(self) -> tuple[str, int]:
        """(session, seq)."""
        return (self.session, self.seq)

    @property
    def chunk_key(self) -> str:
        """What the label is about: the text where it is known, else the id."""
        return chunk_key(self.chunk_id, self.text_hash)


def is_model(annotator: str) -> bool:
    """Whether an annotator is a model and no person."""
    return annotator.startswith(MODEL)


def is_reserved(name: str) -> bool:
    """Whether no person may label under this name: it stands for a decision between people, or for a model."""
    return name == ADJUDICATED or is_model(name)


def undo_of(target: Event, session: str, seq: int, batch: str = "") -> Event:
    """The event that takes `target` back."""
    taken_back = replace(target, kind=UNDO, grade=None, note="", undoes=target.key, at="")
    return replace(taken_back, session=session, seq=seq, batch=batch)


def check_event(event: Event) -> None:
    """Raise an InputError where the event cannot be stored."""
    for name in (*NEEDED, "note", "query_hash", "text_hash", "batch", "at"):
        check_text(getattr(event, name), name)
    for name in NEEDED:
        if not getattr(event, name):
            raise InputError(f"a label event has no {name}, expected one")
    if isinstance(event.seq, bool) or not isinstance(event.seq, int) or not 0 <= event.seq <= LARGEST_SEQ:
        raise InputError(f"seq is {event.seq!r}, expected a whole number from 0 to 2^53 − 1")
    check_grade(event.grade)
    if event.kind not in (LABEL, UNDO):
        raise InputError(f"kind is {event.kind!r}, expected {LABEL} or {UNDO}")
    if (event.kind == UNDO) != (event.undoes is not None):
        raise InputError(f"a {event.kind} event names {event.undoes!r}, expected only an undo to name another event")


def check_grade(grade: object) -> None:
    """Raise an InputError for anything but 0, 1, 2, 3 or None (unsure)."""
    if grade is not None and (isinstance(grade, bool) or not isinstance(grade, int) or grade not in GRADES):
        raise InputError(f"grade is {str(grade)[:40]}, expected 0, 1, 2, 3 or unsure")


def check_text(value: object, name: str) -> None:
    """Raise an InputError for what a database cannot keep exactly: no text, a NUL or half a surrogate pair."""
    if not isinstance(value, str):
        raise InputError(f"{name} is of type {type(value).__name__}, expected text")
    if "\x00" in value:
        raise InputError(f"{name} holds a NUL character, expected text without")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise InputError(f"{name} holds half a surrogate pair, expected valid Unicode")


def to_row(event: Event) -> dict[str, Any]:
    """The event as a row of label_event."""
    check_event(event)
    session, seq = event.undoes or (None, None)
    row = {name: getattr(event, name) for name in (*STORED, "chunk_key")}
    return row | {"undoes_session": session, "undoes_seq": seq, "at": event.at or now()}


def from_row(row: Mapping[str, Any]) -> Event:
    """The event of a row of label_event or of its views."""
    undoes = None if row["undoes_session"] is None else (row["undoes_session"], row["undoes_seq"])
    return Event(**{name: row[name] for name in (*STORED, "at")}, undoes=undoes)


def now() -> str:
    """The time, UTC, ISO 8601 with microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
