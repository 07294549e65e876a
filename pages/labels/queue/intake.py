"""What the browser sent, checked and stored: every entry once, acknowledged only after it is on disk.

The browser is not trusted: an entry is read field by field. An entry that comes again is harmless. One that can never
be stored is named as unfit, which puts it into the browser's tray, and the others go on; where the store fails, nothing
of that stream is acknowledged from there on, so that the order holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from rag_core.errors import InputError, StoreError, UnfitError
from rag_core.project.deeds import Deed, perform
from rag_core.store.events import LABEL, LARGEST_SEQ, PAGE, UNDO, Event, check_event, time_of
from rag_core.store.labels import LabelStore

TEXTS = ("session", "eval_set", "query_id", "chunk_id", "annotator", "query_hash", "text_hash", "note", "kind")
LONGEST = 4000  # characters of a field
MOST = 1000  # entries of a batch, and chunks that share a label


@dataclass(frozen=True, slots=True)
class Entry:
    """One press: the pair it was for, and the events it makes (one per chunk that shares the label)."""

    pair: str
    events: tuple[Event, ...]

    @property
    def event(self) -> Event:
        """The event of the chunk that was shown."""
        return self.events[0]


@dataclass(frozen=True, slots=True)
class Unfit:
    """An entry that can never be stored as it is, and why."""

    session: str
    seq: int
    why: str


@dataclass(frozen=True, slots=True)
class Batch:
    """What came in one message. `later` are the pairs put off, `unfit` the entries that cannot be read."""

    entries: tuple[Entry, ...] = ()
    later: tuple[str, ...] = ()
    stream: str = ""
    attempt: int = 0
    unfit: tuple[Unfit, ...] = ()


@dataclass(slots=True)
class Taken:
    """What became of a batch: the entries now on disk, acknowledgements by stream, and why the rest is not.

    `unfit` never will be; `problem` holds the others up and may pass.
    """

    entries: list[Entry] = field(default_factory=list)
    acks: dict[str, int] = field(default_factory=dict)
    unfit: list[Unfit] = field(default_factory=list)
    problem: str = ""


def read_batch(sent: Any, annotator: str = "") -> Batch:
    """The message as a batch.

    `annotator` is who logged in, where people do: an entry in another name is refused.
    """
    if not isinstance(sent, Mapping):
        return Batch()
    entries: list[Entry] = []
    unfit: list[Unfit] = []
    for raw in _listed(sent.get("entries"))[:MOST]:
        try:
            entry = read_entry(raw)
            if annotator and entry.event.annotator != annotator:
                raise InputError(f"a label from the browser is by {entry.event.annotator!r}, expected {annotator!r}")
            entries.append(entry)
        except InputError as error:
            unfit.append(Unfit(*_named(raw), str(error)))
    later = tuple(one for one in _listed(sent.get("later")) if isinstance(one, str))
    stream, attempt = sent.get("stream"), sent.get("attempt")
    return Batch(
        tuple(entries),
        later,
        stream if isinstance(stream, str) else "",
        attempt if isinstance(attempt, int) else 0,
        tuple(unfit),
    )


def _named(raw: Any) -> tuple[str, int]:
    """Stream and number by which the browser knows an entry, as far as it says them."""
    session, seq = (raw.get("session"), raw.get("seq")) if isinstance(raw, Mapping) else (None, None)
    return session if isinstance(session, str) else "", seq if type(seq) is int else -1


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def read_entry(raw: Any) -> Entry:
    """One press, checked; an InputError says what is wrong with it."""
    if not isinstance(raw, Mapping) or not isinstance(raw.get("pair"), str):
        raise InputError("a label from the browser is no object with a pair, expected one")
    for name in TEXTS:
        if not isinstance(raw.get(name), str) or len(raw[name]) > LONGEST:
            raise InputError(f"a label from the browser has no usable {name}, expected up to {LONGEST} characters")
    undoes = _undoes(raw) if raw["kind"] == UNDO else None
    grade = raw.get("grade") if raw["kind"] == LABEL else None
    first = Event(
        **{name: raw[name] for name in TEXTS},
        seq=raw.get("seq", -1),
        grade=grade,
        undoes=undoes,
        actor=PAGE,
        pressed_at=_pressed_at(raw.get("pressed")),
        base_position=base if type(base := raw.get("base")) is int and 0 <= base <= LARGEST_SEQ else None,
    )
    events = (first, *_shared(first, raw))
    for event in events:
        check_event(event)
    return Entry(raw["pair"], events)


def _pressed_at(milliseconds: Any) -> str | None:
    """The browser's clock as UTC; None where it says nothing usable, which holds no label up."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    with suppress(ValueError, OverflowError, OSError):
        return time_of(datetime.fromtimestamp(milliseconds / 1000, UTC))
    return None


def _undoes(raw: Mapping[str, Any]) -> tuple[str, int]:
    named = _listed(raw.get("undoes"))
    if len(named) != 2 or not isinstance(named[0], str) or not isinstance(named[1], int):
        raise InputError("an undo from the browser names no label, expected a stream and a number")
    return (named[0], named[1])


def _shared(first: Event, raw: Mapping[str, Any]) -> Iterable[Event]:
    """The same said of every further chunk of the pair, in streams of their own beside the first's."""
    for number, other in enumerate(_listed(raw.get("others"))[:MOST], 1):
        chunk_id, digest = (
            (other.get("chunk_id"), other.get("text_hash")) if isinstance(other, Mapping) else (None, None)
        )
        if not isinstance(chunk_id, str) or not isinstance(digest, str):
            raise InputError("a label from the browser shares a chunk without an id, expected ids")
        undoes = (f"{first.undoes[0]}+{number}", first.undoes[1]) if first.undoes else None
        yield replace(first, session=f"{first.session}+{number}", chunk_id=chunk_id, text_hash=digest, undoes=undoes)


def take(labels: LabelStore, batch: Batch, deed: Deed) -> Taken:
    """Store a batch in its order, as this deed of whoever sent it; when this returns, what `acks` names is on disk."""
    taken, author = Taken(unfit=list(batch.unfit)), deed.person.name
    entries = [Entry(one.pair, tuple(replace(event, author=author) for event in one.events)) for one in batch.entries]
    try:
        with perform(deed, labels.store.workspace):
            taken.entries = _stored(labels, entries, taken)
    except InputError as error:  # a right that was taken away since the page was drawn
        taken.problem = str(error)
    for entry in taken.entries:
        taken.acks[entry.event.session] = entry.event.seq
    return taken


def _stored(labels: LabelStore, entries: Sequence[Entry], taken: Taken) -> list[Entry]:
    """The entries that are stored: all at once, or one by one where that cannot be; why is kept in `taken`."""
    try:
        labels.append([event for entry in entries for event in entry.events])
        return list(entries)
    except (InputError, UnfitError):
        return _one_by_one(labels, entries, taken)
    except StoreError as error:
        taken.problem = str(error)
        return [] if labels.store.unwritable else _one_by_one(labels, entries, taken)


def _one_by_one(labels: LabelStore, entries: Iterable[Entry], taken: Taken) -> list[Entry]:
    """The entries that can be stored, past those that never can be, up to the first of each stream where it fails."""
    stored: list[Entry] = []
    stopped: set[str] = set()
    for entry in entries:
        if entry.event.session in stopped:
            continue
        try:
            labels.append(entry.events)
            stored.append(entry)
        except (InputError, UnfitError) as error:
            taken.unfit.append(Unfit(*entry.event.key, str(error)))
        except StoreError as error:
            taken.problem = str(error)
            stopped.add(entry.event.session)
    return stored
