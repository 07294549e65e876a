"""One label event: what a person (or an import) said about one chunk of one query, or that they take it back.

Only values and their checks; labels.py stores them. What is said is `annotator` and the fields beside it; how it came
into the store (who pressed, on whose authority, when) counts for nothing and is never compared.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from sys import intern
from typing import Any

from rag_core.errors import InputError
from rag_core.store.keys import chunk_key

LABEL = "label"
UNDO = "undo"
NEEDED = ("session", "eval_set", "query_id", "chunk_id", "annotator")
PAYLOAD = (
    "session", "seq", "kind", "eval_set", "query_id", "query_hash", "chunk_id", "text_hash", "chunk_key", "annotator",
    "grade", "note", "batch", "undoes_session", "undoes_seq",
)  # fmt: skip
"""What two events under one (session, seq) must share; when and how they came is not part of it.

Else a press that an older version stored and a newer one is sent again would hold up its stream.
"""
STORED = tuple(name for name in PAYLOAD if name not in ("chunk_key", "undoes_session", "undoes_seq"))
ORIGIN = ("author", "actor", "pressed_at", "arrived_at", "base_position", "inclusion_p", "sampler")
"""How an event came into the store; each None where it is not known, as in rows from before schema 0005."""

PAGE, IMPORT, JUDGE, COMMAND = "page", "import", "judge", "command"
"""The authorities (`actor`) that an event came by."""

IN_SIGHT = "in sight"
"""The `sampler` of a label given on the Bench: nobody drew the pair, a person chose it with its verdict in sight.

It counts, and is no part of a blind sample.
"""
SEEING = "seeing "
"""How the `sampler` of a label begins that was given with the proposal of the model named after it on the screen."""

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
    '' where they are not known. An undo names the event it takes back: a label, or an undo of one, which brings the
    label back. `at` is UTC; '' is filled in when it is stored.

    Of how it came: `author` pressed, `actor` is by what authority (PAGE, IMPORT, JUDGE, COMMAND); `pressed_at` is the
    clock of whoever pressed, `arrived_at` the store's and set by it alone; `base_position` is the newest event that
    whoever pressed could have seen. A `sampler` that drew the pair says with which probability it did (`inclusion_p`).
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
    author: str | None = None
    actor: str | None = None
    pressed_at: str | None = None
    arrived_at: str | None = None
    base_position: int | None = None
    inclusion_p: float | None = None
    sampler: str | None = None

    @property
    def key(self) -> tuple[str, int]:
        """(session, seq)."""
        return (self.session, self.seq)

    @property
    def chunk_key(self) -> str:
        """What the label is about: the text where it is known, else the id."""
        return chunk_key(self.chunk_id, self.text_hash)

    @property
    def is_led(self) -> bool:
        """Whether a verdict or a model's proposal was in sight when it was given."""
        return self.sampler == IN_SIGHT or (self.sampler or "").startswith(SEEING)


@dataclass(frozen=True, slots=True)
class Signature:
    """Who pressed, by what authority and when (UTC); None where it is not known."""

    author: str | None = None
    actor: str | None = None
    pressed_at: str | None = None

    def on(self, event: Event) -> Event:
        """The event with this signature."""
        return replace(event, author=self.author, actor=self.actor, pressed_at=self.pressed_at)


UNSIGNED = Signature()
BY_IMPORT = Signature(actor=IMPORT)
BY_JUDGE = Signature(actor=JUDGE)


def is_model(annotator: str) -> bool:
    """Whether an annotator is a model and no person."""
    return annotator.startswith(MODEL)


def is_reserved(name: str) -> bool:
    """Whether no person may label under this name: it stands for a decision between people, or for a model."""
    return name == ADJUDICATED or is_model(name)


def undo_of(target: Event, session: str, seq: int, batch: str = "", by: Signature = UNSIGNED) -> Event:
    """The event that takes `target` back: a label, or an undo, after which what it took back counts again."""
    taken_back = replace(target, kind=UNDO, grade=None, note="", undoes=target.key, at="", batch=batch)
    nothing: dict[str, Any] = dict.fromkeys(ORIGIN)
    return by.on(replace(taken_back, session=session, seq=seq, **nothing))


def check_event(event: Event) -> None:
    """Raise an InputError where the event cannot be stored."""
    for name in (*NEEDED, "note", "query_hash", "text_hash", "batch", "at", "author", "actor", "pressed_at", "sampler"):
        if name not in ORIGIN or getattr(event, name) is not None:
            check_text(getattr(event, name), name)
    if event.base_position is not None:
        check_count(event.base_position, "base_position")
    check_probability(event.inclusion_p)
    for name in NEEDED:
        if not getattr(event, name):
            raise InputError(f"a label event has no {name}, expected one")
    check_count(event.seq, "seq")
    check_grade(event.grade)
    if event.kind not in (LABEL, UNDO):
        raise InputError(f"kind is {event.kind!r}, expected {LABEL} or {UNDO}")
    if (event.kind == UNDO) != (event.undoes is not None):
        raise InputError(f"a {event.kind} event names {event.undoes!r}, expected only an undo to name another event")


def check_count(value: object, name: str) -> None:
    """Raise an InputError for what is no whole number that a browser counts exactly."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_SEQ:
        raise InputError(f"{name} is {value!r}, expected a whole number from 0 to 2^53 − 1")


def check_probability(value: Any) -> None:
    """Raise an InputError for anything but a number above 0, up to 1, or None."""
    if value is not None and not (type(value) in (float, int) and 0 < value <= 1):
        raise InputError(f"inclusion_p is {str(value)[:40]}, expected a probability above 0, up to 1")


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
    """The event as a row of label_event, arriving now, with its checksum."""
    check_event(event)
    arrived = now()
    row = {name: getattr(event, name) for name in (*STORED, "chunk_key", *ORIGIN)}
    row["undoes_session"], row["undoes_seq"] = event.undoes or (None, None)
    row |= {"at": event.at or arrived, "arrived_at": arrived}
    if event.inclusion_p is not None:
        row["inclusion_p"] = float(event.inclusion_p)  # as a database gives it back, or the checksum of 1 is not 1.0's
    return row | {"checksum": checksum(row)}


def from_row(row: Mapping[str, Any]) -> Event:
    """The event of a row of label_event or of its views."""
    undoes = None if row["undoes_session"] is None else (row["undoes_session"], row["undoes_seq"])
    values = {name: row[name] for name in (*STORED, "at", *ORIGIN)}
    for name in NEEDED:  # of 60,000 labels they are few: one text each, or what keeps a grade keeps a page of memory
        values[name] = intern(values[name])
    return Event(**values, undoes=undoes)


CHECKED = (*PAYLOAD, "at", *ORIGIN)
"""The columns a checksum covers, in its order. Checksums are stored, so neither may ever change."""


def checksum(row: Mapping[str, Any]) -> str:
    """Of a row's contents: BLAKE2b of the JSON list of its columns, 32 hexadecimal digits."""
    values = json.dumps([row[name] for name in CHECKED], ensure_ascii=True, separators=(",", ":"))
    return hashlib.blake2b(values.encode("ascii"), digest_size=16).hexdigest()


def now() -> str:
    """The time as it is stored."""
    return time_of(datetime.now(UTC))


def time_of(moment: datetime) -> str:
    """UTC, ISO 8601 with microseconds."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def graded_by(events: Iterable[Event]) -> dict[str, dict[tuple[str, str], int]]:
    """{annotator: {(query id, chunk key): grade}}, unsure left out: the same text is the same item under any id.

    A decision between people is not the word of one more person.
    """
    graded: dict[str, dict[tuple[str, str], int]] = {}
    for event in events:
        if event.grade is not None and event.annotator != ADJUDICATED:
            graded.setdefault(event.annotator, {})[event.query_id, event.chunk_key] = event.grade
    return graded
