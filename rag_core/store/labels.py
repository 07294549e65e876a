"""The label store: add events, take them back, and say what counts now.

Nothing is ever changed or deleted: a new label hides the older one of the same annotator, query and chunk, and an undo
is an event as well. Of several people's labels the newest counts, but an adjudicated one before all others until it is
taken back. Opening the file is database.py, how labels meet chunks again is matching.py, files are exchange/.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, TableClause, case, exists, func, select, tuple_
from sqlalchemy.dialects import postgresql, sqlite

from rag_core.errors import StoreError, UnfitError
from rag_core.store.database import Store
from rag_core.store.events import (
    ADJUDICATED,
    LABEL,
    MODEL,
    PAYLOAD,
    UNDO,
    UNSIGNED,
    Event,
    Signature,
    checksum,
    from_row,
    is_model,
    to_row,
    undo_of,
)
from rag_core.store.matching import grades_by_chunk
from rag_core.store.schema import label_current, label_event, label_live

AT_ONCE = 300  # rows per statement; SQLite takes 32,766 values


@dataclass(frozen=True, slots=True)
class LabelStats:
    """How much has been labelled in one eval set: what counts now, and the events behind it."""

    eval_set: str
    labels: int
    unsure: int
    queries: int
    grades: Mapping[int, int]
    annotators: Mapping[str, int]
    events: int
    undone: int

    def to_text(self) -> str:
        """One line."""
        grades = ", ".join(str(self.grades[grade]) for grade in range(4))
        people = ", ".join(f"{name} {count}" for name, count in self.annotators.items())
        counted = f"{self.eval_set}: {self.labels} labels on {self.queries} queries"
        return f"{counted} (grades 0-3: {grades}; unsure: {self.unsure}); {people}"


class LabelStore:
    """Labels in an open store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def append(self, events: Sequence[Event]) -> tuple[int, ...]:
        """Store the events, all or none, and return their seqs: once returned they are on disk.

        An event that is there already is harmless. Another payload under its (session, seq), or an undo of what is not
        there, is a StoreError, and then nothing of the call is stored.
        """
        if rows := list(map(to_row, events)):
            with self.store.writing() as connection:
                insert(connection, rows)
            self.store.copy_when_due()
        return tuple(event.seq for event in events)

    def undo_batch(self, batch: str, by: Signature = UNSIGNED) -> int:
        """Take back what an import or a reset did, as far as it still stands; how many events that were.

        Labels of the batch are undone; where the batch itself undid labels (undo_all), these count again.
        """
        session, back = f"undo:{batch}", label_event.alias()
        taken_back = exists().where(
            back.c.undoes_session == label_event.c.session, back.c.undoes_seq == label_event.c.seq
        )
        undos = _where(label_event, {"batch": batch, "kind": UNDO}).where(label_event.c.session != session, ~taken_back)
        with self.store.writing() as connection:
            targets = _events(connection, _where(label_live, {"batch": batch}).order_by(label_live.c.position))
            targets += _events(connection, undos.order_by(label_event.c.position))
            _take_back(connection, targets, session, batch, by)
        return len(targets)

    def authors(self, batch: str) -> set[str | None]:
        """Who brought a batch in: None is somebody who is not known."""
        query = select(label_event.c.author).distinct().where(label_event.c.batch == batch)
        with self.store.reading() as connection:
            return set(connection.scalars(query))

    def undo_all(self, eval_set: str, batch: str, session: str, by: Signature = UNSIGNED) -> int:
        """Take back every label of an eval set that stands, as one batch that undo_batch takes back in turn.

        How many labels that were; a batch's name is used once, `session` takes its next numbers.
        """
        with self.store.writing() as connection:
            if connection.scalar(select(label_event.c.position).where(label_event.c.batch == batch).limit(1)):
                raise StoreError(f"batch {batch[:80]!r} is there already, expected a name of its own")
            targets = _events(connection, _where(label_live, {"eval_set": eval_set}).order_by(label_live.c.position))
            _take_back(connection, targets, session, batch, by)
        return len(targets)

    def current(
        self, eval_set: str, annotator: str | None = None, chunks: Mapping[str, str] | None = None
    ) -> dict[str, dict[str, int]]:
        """{query id: {chunk id: grade}} of what counts now; unsure is left out.

        Without an annotator the adjudicated label counts, else the newest of any person. `chunks` is {chunk id: text
        hash, '' if unknown} of the corpus at hand: labels meet chunks by text where both texts are known, else by id.
        """
        with self.store.reading() as connection:
            labels = counting_events(connection, eval_set, annotator)
            names = {} if chunks is not None else recorded_ids(connection, eval_set)
        return grades_by_chunk(labels, names, chunks)

    def labels(
        self, eval_set: str, annotator: str | None = None, queries: Collection[str] | None = None
    ) -> list[Event]:
        """The label events that count now, one per annotator, query and chunk; without a name, those of all people.

        Oldest first and adjudicated ones last: of what is said of a chunk, the last counts. A model's labels come only
        where its name is given. `queries` narrows them to at most some hundred query ids.
        """
        with self.store.reading() as connection:
            return counting_events(connection, eval_set, annotator, queries)

    def changed_since(self, eval_set: str, position: int) -> dict[str, int]:
        """{query id: position of its newest event} of the queries about which an event was stored after a position."""
        with self.store.reading() as connection:
            return changed_queries(connection, eval_set, position)

    def history(self, eval_set: str, query_id: str | None = None, chunk_id: str | None = None) -> list[Event]:
        """Every event, in the order stored; `chunk_id` also finds what was said about the same text under other ids."""
        wanted = {"eval_set": eval_set} | ({} if query_id is None else {"query_id": query_id})
        query = _where(label_event, wanted).order_by(label_event.c.position)
        if chunk_id is not None:
            keys = _where(label_event, wanted | {"chunk_id": chunk_id}).with_only_columns(label_event.c.chunk_key)
            query = query.where(label_event.c.chunk_key.in_(keys))
        with self.store.reading() as connection:
            return _events(connection, query)

    def judged(self, eval_set: str, annotator: str) -> set[tuple[str, str]]:
        """(query id, chunk key) of everything that an annotator's label stands for, unsure included.

        Without the events: 50,000 take a second to build, and a queue only asks what is done.
        """
        columns = (label_current.c.query_id, label_current.c.chunk_key)
        wanted = (label_current.c.eval_set == eval_set, label_current.c.annotator == annotator)
        with self.store.reading() as connection:
            return {(query, key) for query, key in connection.execute(select(*columns).where(*wanted))}

    def newest(self) -> int | None:
        """The position of the newest event of the store; None where there is none."""
        with self.store.reading() as connection:
            position = connection.scalar(select(func.max(label_event.c.position)))
        return None if position is None else int(position)

    def standing(self, eval_set: str) -> tuple[int, int]:
        """How many labels of people count now, and how many of them are unsure."""
        models = label_current.c.annotator.startswith(MODEL, autoescape=True)
        counts = select(func.count(), func.count().filter(label_current.c.grade.is_(None)))
        with self.store.reading() as connection:
            row = connection.execute(counts.where(label_current.c.eval_set == eval_set, ~models)).one()
        return int(row[0]), int(row[1])

    def eval_sets(self) -> list[str]:
        """The eval sets that hold an event, by name."""
        with self.store.reading() as connection:
            names = connection.scalars(select(label_event.c.eval_set).distinct())
            return sorted(names)  # each server sorts its own way

    def stats(self, eval_set: str) -> LabelStats:
        """Counts of one eval set."""
        with self.store.reading() as connection:
            labels = current_events(connection, eval_set)
            counted = select(label_event.c.kind, func.count()).where(label_event.c.eval_set == eval_set)
            kinds = Counter({kind: n for kind, n in connection.execute(counted.group_by(label_event.c.kind))})
            standing = _where(label_live, {"eval_set": eval_set}).with_only_columns(func.count())
            undone = kinds[LABEL] - int(connection.scalar(standing) or 0)
        return LabelStats(
            eval_set=eval_set,
            labels=len(labels),
            unsure=sum(label.grade is None for label in labels),
            queries=len({label.query_id for label in labels}),
            grades={grade: sum(label.grade == grade for label in labels) for grade in range(4)},
            annotators=dict(sorted(Counter(label.annotator for label in labels).items())),
            events=kinds.total(),
            undone=undone,
        )


def _take_back(connection: Connection, targets: Sequence[Event], session: str, batch: str, by: Signature) -> None:
    largest = connection.scalar(select(func.max(label_event.c.seq)).where(label_event.c.session == session))
    first = 0 if largest is None else int(largest) + 1
    undos = (undo_of(target, session, first + n, batch, by) for n, target in enumerate(targets))
    insert(connection, list(map(to_row, undos)))


def insert(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Add what is not there yet, inside a transaction of the caller; what is there must be the same.

    The rows are made before it (events.to_row), since others who label wait for it; so they go to the driver as they
    are, in half the time of a statement with its parameters each.
    """
    if not rows:
        return
    statement = insert_or_keep(connection.dialect.name).compile(dialect=connection.dialect, column_keys=list(rows[0]))
    names = getattr(statement, "positiontup", None)
    values: Any = [tuple(map(row.__getitem__, names)) for row in rows] if names else [dict(row) for row in rows]
    new = connection.exec_driver_sql(str(statement), values).rowcount
    # what was added is what is stored: only where a key was taken must it be looked at
    stored = _stored(connection, [(row["session"], row["seq"]) for row in rows]) if new != len(rows) else {}
    for row in rows if stored else ():
        there = stored[row["session"], row["seq"]]
        if differing := [name for name in PAYLOAD if there[name] != row[name]]:
            raise UnfitError(
                f"event {row['seq']} of session {row['session']!r} is stored with another {', '.join(differing)}, "
                "expected each (session, seq) to be used once; nothing of this call was stored"
            )
    _refuse_stray_undo(connection, [row for row in rows if row["kind"] == UNDO])


@dataclass(frozen=True, slots=True)
class RowCheck:
    """Label events held against their checksums: how many match, how many have none, and where the others stand."""

    whole: int
    without: int
    broken: tuple[int, ...]


def check_rows(connection: Connection) -> RowCheck:
    """Hold every label event against the checksum stored with it; rows from before schema 0005 have none."""
    whole, without, broken = 0, 0, list[int]()
    rows = connection.execution_options(yield_per=AT_ONCE).execute(select(label_event)).mappings()
    for row in map(dict, rows):
        if row["checksum"] is None and row["arrived_at"] is None:
            without += 1
        elif row["checksum"] == checksum(row):
            whole += 1
        else:
            broken.append(row["position"])
    return RowCheck(whole, without, tuple(sorted(broken)))


def insert_or_keep(dialect: str) -> Any:
    """INSERT … ON CONFLICT DO NOTHING in the words of SQLite or PostgreSQL."""
    add = postgresql.insert(label_event) if dialect == "postgresql" else sqlite.insert(label_event)
    return add.on_conflict_do_nothing(index_elements=["session", "seq"])


def _refuse_stray_undo(connection: Connection, undos: Sequence[Mapping[str, Any]]) -> None:
    """An undo takes back a label, or such an undo: what takes back more is nothing that the views know."""
    targets = _stored(connection, [(row["undoes_session"], row["undoes_seq"]) for row in undos])
    named = [target for target in targets.values() if target["kind"] == UNDO]
    behind = _stored(connection, [(target["undoes_session"], target["undoes_seq"]) for target in named])
    third = {(target["session"], target["seq"]) for target in named}
    third = {key for key in third if behind[targets[key]["undoes_session"], targets[key]["undoes_seq"]]["kind"] == UNDO}
    for row in undos:
        key = (row["undoes_session"], row["undoes_seq"])
        about = ("eval_set", "annotator", "query_id", "chunk_key")
        if key not in targets or key in third or any(targets[key][name] != row[name] for name in about):
            raise UnfitError(
                f"undo {row['seq']} of session {row['session']!r} names event {row['undoes_seq']} of session "
                f"{row['undoes_session']!r}, expected a label of the same annotator on the same chunk, or its undo"
            )


def _stored(connection: Connection, keys: Sequence[tuple[str, int]]) -> dict[tuple[str, int], Mapping[str, Any]]:
    found: dict[tuple[str, int], Mapping[str, Any]] = {}
    for start in range(0, len(keys), AT_ONCE):
        wanted = tuple_(label_event.c.session, label_event.c.seq).in_(keys[start : start + AT_ONCE])
        for row in connection.execute(select(label_event).where(wanted)).mappings():
            found[row["session"], row["seq"]] = dict(row)
    return found


def current_events(
    connection: Connection, eval_set: str, annotator: str | None = None, queries: Collection[str] | None = None
) -> list[Event]:
    """The label events that count now, oldest first, adjudicated ones last; of some queries, or of all."""
    wanted = {"eval_set": eval_set} | ({} if annotator is None else {"annotator": annotator})
    decided = case((label_current.c.annotator == ADJUDICATED, 1), else_=0)
    current = _where(label_current, wanted)
    if queries is not None:
        current = current.where(label_current.c.query_id.in_(queries))
    return _events(connection, current.order_by(decided, label_current.c.position))


def counting_events(
    connection: Connection, eval_set: str, annotator: str | None, queries: Collection[str] | None = None
) -> list[Event]:
    """One annotator's current events, or those of all people: a model's count only where they are asked for."""
    events = current_events(connection, eval_set, annotator, queries)
    return [event for event in events if annotator is not None or not is_model(event.annotator)]


def changed_queries(connection: Connection, eval_set: str, position: int) -> dict[str, int]:
    """{query id: position of its newest event} of the queries about which an event was stored after a position."""
    newest = func.max(label_event.c.position)
    after = (label_event.c.eval_set == eval_set, label_event.c.position > position)
    rows = connection.execute(select(label_event.c.query_id, newest).where(*after).group_by("query_id"))
    return {query_id: int(last) for query_id, last in rows}


def recorded_ids(connection: Connection, eval_set: str) -> dict[tuple[str, str], set[str]]:
    """{(query id, chunk key): every chunk id it was labelled under}."""
    columns = (label_event.c.query_id, label_event.c.chunk_key, label_event.c.chunk_id)
    ids: dict[tuple[str, str], set[str]] = {}
    for query_id, key, chunk_id in connection.execute(
        select(*columns).distinct().where(label_event.c.eval_set == eval_set)
    ):
        ids.setdefault((query_id, key), set()).add(chunk_id)
    return ids


def _where(source: TableClause, wanted: Mapping[str, str]) -> Any:
    return select(source).where(*(source.c[name] == value for name, value in wanted.items()))


def _events(connection: Connection, query: Any) -> list[Event]:
    found = connection.execute(query)
    names = tuple(found.keys())
    return [from_row(dict(zip(names, row, strict=True))) for row in found]
