"""The tables as SQLAlchemy sees them: append-only label events with a view of what counts now, runs, and the history.

The migrations make them; a test holds the two together. The SQL is kept to what SQLite and PostgreSQL share.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Index, Integer, MetaData, Table, Text, UniqueConstraint, column, table

from rag_core.store.events import ORIGIN

HEAD = "0005"
"""The revision this code reads and writes; the newest one under migrations/versions."""

metadata = MetaData()

label_event = Table(
    "label_event",
    metadata,
    # The order of commits, which no clock gives. (session, seq) is the key that makes a replay harmless.
    Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("session", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("eval_set", Text, nullable=False),
    Column("query_id", Text, nullable=False),
    Column("query_hash", Text, nullable=False),
    Column("chunk_id", Text, nullable=False),
    Column("text_hash", Text, nullable=False),
    Column("chunk_key", Text, nullable=False),
    Column("annotator", Text, nullable=False),
    Column("grade", Integer),
    Column("note", Text, nullable=False),
    Column("batch", Text, nullable=False),
    Column("undoes_session", Text),
    Column("undoes_seq", BigInteger),
    Column("at", Text, nullable=False),
    # How it came into the store: events.ORIGIN. Rows from before schema 0005 have none of it, and no checksum.
    Column("author", Text),
    Column("actor", Text),
    Column("pressed_at", Text),
    Column("arrived_at", Text),
    Column("base_position", BigInteger),
    Column("inclusion_p", Float),
    Column("sampler", Text),
    Column("checksum", Text),
    UniqueConstraint("session", "seq", name="label_event_key"),
    Index("label_event_about", "eval_set", "annotator", "query_id", "chunk_key"),
    Index("label_event_undoes", "undoes_session", "undoes_seq"),
    Index("label_event_batch", "batch"),
    sqlite_autoincrement=True,
)

PAYLOAD = tuple(
    column.name for column in label_event.columns if column.name not in ("position", "at", *ORIGIN, "checksum")
)
"""What two events under one (session, seq) must share; when and how they came is not part of it.

Else a press that an older version stored and a newer one is sent again would hold up its stream.
"""

label_live = table("label_live", *(column(c.name, c.type) for c in label_event.columns))
label_current = table("label_current", *(column(c.name, c.type) for c in label_event.columns))

run = Table(
    "run",
    metadata,
    Column("id", Text, primary_key=True),
    Column("at", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("eval_set", Text, nullable=False),
    Column("summary", Text, nullable=False),  # JSON: what a list of runs shows
    Column("snapshot", Text, nullable=False),  # JSON: the run file
    Index("run_about", "eval_set", "at"),
)

run_note = Table(
    "run_note",
    metadata,
    Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("run", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("note", Text, nullable=False),
    Index("run_note_about", "run"),
)

query_history = Table(
    "query_history",
    metadata,
    Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("at", Text, nullable=False),
    Column("asked_by", Text, nullable=False),
    Column("collection", Text, nullable=False),
    Column("query", Text, nullable=False),
    Column("pipeline", Text, nullable=False),  # JSON: the spec
    Column("result", Text, nullable=False),  # JSON: kept ids with distances, drops counted by stage
    Column("hops", Text, nullable=False),  # JSON: each hop's evaluation
    Column("milliseconds", Float, nullable=False),
    Column("tokens", BigInteger),
    Column("cost", Float),
    Index("query_history_about", "collection", "at"),
)
