"""The schema of a store in numbered steps, oldest first, and how a store is brought to this code's: back up, then every
missing step in one transaction.

A released step is never edited. A schema this code does not know is refused, never changed; going back is a back-up of
the older schema, in `backups`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect

from rag_core.errors import StoreError

if TYPE_CHECKING:
    from rag_core.store.database import Store

COUNTED = {"sqlite": "INTEGER NOT NULL PRIMARY KEY", "postgresql": "BIGSERIAL PRIMARY KEY"}
"""The type of `position`: the order of commits, which no clock gives."""

EVENT = """position, session, seq, kind, eval_set, query_id, query_hash, chunk_id, text_hash, chunk_key,
    annotator, grade, note, batch, undoes_session, undoes_seq, at"""
ORIGIN = "author, actor, pressed_at, arrived_at, base_position, inclusion_p, sampler, checksum"


def label_events(connection: Connection) -> None:
    """The append-only table of label events. (session, seq) is the key that makes a replay harmless."""
    position = COUNTED[connection.dialect.name]
    if connection.dialect.name == "sqlite":
        position += " AUTOINCREMENT"
    connection.exec_driver_sql(f"""
        CREATE TABLE label_event (
            position {position},
            session TEXT NOT NULL,
            seq BIGINT NOT NULL,
            kind TEXT NOT NULL CONSTRAINT label_event_kind CHECK (kind IN ('label', 'undo')),
            eval_set TEXT NOT NULL,
            query_id TEXT NOT NULL,
            query_hash TEXT NOT NULL,
            chunk_id TEXT NOT NULL,
            text_hash TEXT NOT NULL,
            chunk_key TEXT NOT NULL,
            annotator TEXT NOT NULL,
            grade INTEGER CONSTRAINT label_event_grade CHECK (grade BETWEEN 0 AND 3),
            note TEXT NOT NULL,
            batch TEXT NOT NULL,
            undoes_session TEXT,
            undoes_seq BIGINT,
            at TEXT NOT NULL,
            CONSTRAINT label_event_key UNIQUE (session, seq))""")
    for name, columns in (
        ("about", "eval_set, annotator, query_id, chunk_key"),
        ("undoes", "undoes_session, undoes_seq"),
        ("batch", "batch"),
    ):
        connection.exec_driver_sql(f"CREATE INDEX label_event_{name} ON label_event ({columns})")
    _guard(connection, "label_event", ("UPDATE", "DELETE"), "label events are only ever added", "only_added")


def current_labels(connection: Connection) -> None:
    """Two views: the labels that were not undone, and of these the newest per annotator, query and chunk."""
    _views(connection, EVENT, "")


def runs(connection: Connection) -> None:
    """Evaluation runs: whole snapshots that are never changed, and notes on them that are only ever added."""
    connection.exec_driver_sql("""
        CREATE TABLE run (
            id TEXT NOT NULL PRIMARY KEY,
            at TEXT NOT NULL,
            name TEXT NOT NULL,
            eval_set TEXT NOT NULL,
            summary TEXT NOT NULL,
            snapshot TEXT NOT NULL)""")
    connection.exec_driver_sql(f"""
        CREATE TABLE run_note (
            position {COUNTED[connection.dialect.name]},
            run TEXT NOT NULL,
            at TEXT NOT NULL,
            author TEXT NOT NULL,
            note TEXT NOT NULL)""")
    connection.exec_driver_sql("CREATE INDEX run_about ON run (eval_set, at)")
    connection.exec_driver_sql("CREATE INDEX run_note_about ON run_note (run)")
    _guard(connection, "run", ("UPDATE",), "a run is never changed", "no_update")


def history(connection: Connection) -> None:
    """The history of questions asked: settings, result and times of each, deletable for good."""
    connection.exec_driver_sql(f"""
        CREATE TABLE query_history (
            position {COUNTED[connection.dialect.name]},
            at TEXT NOT NULL,
            asked_by TEXT NOT NULL,
            collection TEXT NOT NULL,
            query TEXT NOT NULL,
            pipeline TEXT NOT NULL,
            result TEXT NOT NULL,
            hops TEXT NOT NULL,
            milliseconds FLOAT NOT NULL,
            tokens BIGINT,
            cost FLOAT)""")
    connection.exec_driver_sql("CREATE INDEX query_history_about ON query_history (collection, at)")


def origin(connection: Connection) -> None:
    """How each label event came into the store, and a checksum of its row; an undo can be taken back as a label can."""
    connection.exec_driver_sql("DROP VIEW label_current")
    connection.exec_driver_sql("DROP VIEW label_live")
    for name in ORIGIN.split(", "):
        kind = {"base_position": "BIGINT", "inclusion_p": "FLOAT"}.get(name, "TEXT")
        connection.exec_driver_sql(f"ALTER TABLE label_event ADD COLUMN {name} {kind}")
    taken_back = """ AND NOT EXISTS (
                SELECT 1 FROM label_event AS back
                WHERE back.kind = 'undo' AND back.undoes_session = undo.session AND back.undoes_seq = undo.seq)"""
    _views(connection, f"{EVENT}, {ORIGIN}", taken_back)


STEPS = {"0001": label_events, "0002": current_labels, "0003": runs, "0004": history, "0005": origin}
HEAD = max(STEPS)
"""The revision this code reads and writes."""


def _views(connection: Connection, columns: str, unless: str) -> None:
    connection.exec_driver_sql(f"""
        CREATE VIEW label_live AS SELECT {columns} FROM label_event AS given
        WHERE given.kind = 'label' AND NOT EXISTS (
            SELECT 1 FROM label_event AS undo
            WHERE undo.kind = 'undo' AND undo.undoes_session = given.session AND undo.undoes_seq = given.seq{unless})
        """)  # noqa: S608 - all of it stands here
    connection.exec_driver_sql(f"""
        CREATE VIEW label_current AS SELECT {columns} FROM (
            SELECT label_live.*, ROW_NUMBER() OVER (
                PARTITION BY eval_set, annotator, query_id, chunk_key ORDER BY position DESC) AS recency
            FROM label_live) AS ranked
        WHERE recency = 1""")  # noqa: S608


def _guard(connection: Connection, table: str, deeds: tuple[str, ...], sentence: str, trigger: str) -> None:
    """Have the database itself refuse deeds on a table."""
    if connection.dialect.name == "sqlite":
        for deed in deeds:
            connection.exec_driver_sql(
                f"CREATE TRIGGER {table}_no_{deed.lower()} BEFORE {deed} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{sentence}'); END"
            )
        return
    refused = " OR ".join([*deeds, *(["TRUNCATE"] if "DELETE" in deeds else [])])
    connection.exec_driver_sql(
        f"CREATE OR REPLACE FUNCTION {table}_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{sentence}'; END $$"
    )
    connection.exec_driver_sql(
        f"CREATE TRIGGER {table}_{trigger} BEFORE {refused} ON {table} FOR EACH STATEMENT "
        f"EXECUTE FUNCTION {table}_refuse()"
    )


def migrate(store: Store, target: str = HEAD) -> None:
    """Run the missing steps up to `target`; a store that holds anything is first copied into `backups`."""
    with store.reading() as connection:
        before = revision(connection)
    if before == target:
        return
    refuse_unknown(store, before)
    if before:
        store.back_up(f"schema-{before}")
    with store.writing() as connection:
        if revision(connection) == before:  # else another process was faster
            upgrade(connection, target)


def upgrade(connection: Connection, target: str = HEAD) -> None:
    """Run the missing steps up to `target` in the caller's transaction."""
    before = revision(connection)
    for number, step in STEPS.items():
        if before < number <= target:
            step(connection)
    if not before:  # the table and its name are Alembic's, which made the first stores
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES ('')")
    connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{target}'")  # noqa: S608 - one of ours


def revision(connection: Connection) -> str:
    """The schema revision a store stands at, '' for an empty file."""
    names = inspect(connection).get_table_names()
    if "alembic_version" not in names:
        if names:
            raise StoreError("the database holds tables but no schema revision, expected a label store")
        return ""
    return str(connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar() or "")


def refuse_unknown(store: Store, revision: str) -> None:
    """Raise a StoreError for a revision that no step of this code makes."""
    if revision and revision not in STEPS:
        raise StoreError(
            f"{store.name} has schema {revision}, expected one of {', '.join(STEPS)}: "
            "it was written by a newer version, install that one"
        )
