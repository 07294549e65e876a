"""The PostgreSQL side of the label store: a team's shared database, named by WINNOW_DATABASE_URL.

Here: connections, one writer at a time, what the server says in plain words. Nothing here shows the address's user,
password or parameters, nor a value of a row. A connection that a restart of the server has cut is made anew.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text

from rag_core.errors import StoreError

CONNECT_SECONDS = 10
CLOSED = "57P0"  # SQLSTATE of a server that shuts down; a connection that is gone has none

CAUSES = (  # the beginning of the SQLSTATE → what to tell; https://www.postgresql.org/docs/current/errcodes-appendix.html
    ("55P03", "is held by another writer for too long, expected it to be free within {busy:g} s"),
    ("53100", "cannot grow: its disk is full"),
    ("25006", "is read-only, expected to be allowed to write"),
    ("28", "refused the log-in, expected the user and password of WINNOW_DATABASE_URL to be right"),
    ("3D000", "does not exist, expected it to be made by createdb"),
    ("53300", "has no connection left, expected fewer clients or a larger max_connections"),
    ("42501", "refused the work: the user lacks a privilege, expected the owner of the database"),
    (CLOSED, "was restarted or shut down meanwhile; nothing of this step counts, do it again"),
)
GONE = "cannot be reached, or the connection was cut; nothing of this step counts, do it again"


def engine(url: str, busy_seconds: float) -> Engine:
    """An engine on a PostgreSQL address; a StoreError where the driver is not installed. Connects at the first use."""
    address = make_url(url.replace("postgres://", "postgresql://", 1)).set(drivername="postgresql+psycopg")
    arguments = {"connect_timeout": CONNECT_SECONDS, "application_name": "winnow"}
    given = {name: value for name, value in arguments.items() if name not in address.query}
    try:
        # pool_pre_ping: after a restart of the server the next transaction opens a connection instead of failing.
        made = create_engine(address, connect_args=given, pool_pre_ping=True, hide_parameters=True, pool_size=10)
    except ImportError:
        raise StoreError(
            "PostgreSQL needs the package psycopg, expected `pip install -r requirements-server.txt`"
        ) from None

    def begin(connection: Connection) -> None:
        """One writer at a time: `position` is then the order of commits, and what it read is still so when it writes.

        The lock goes with the transaction: one that dies gives it back. The number names this schema's store.
        """
        if connection.get_execution_options().get("immediate", False):
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {max(1, round(busy_seconds * 1000))}")
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('winnow ' || current_schema()))")

    event.listen(made, "connect", _durable)
    event.listen(made, "begin", begin)
    return made


def reading_options() -> dict[str, Any]:
    """What makes a transaction see one state of the database."""
    return {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}


def _durable(connection: Any, _: object) -> None:
    """A server that acknowledges before its disk has it is told to wait; one that does more is left as it is."""
    with connection.cursor() as cursor:
        if cursor.execute("SHOW synchronous_commit").fetchone()[0] == "off":
            cursor.execute("SET synchronous_commit = on")
    connection.commit()


def why_unwritable(engine: Engine) -> str:
    """'' or why this server only lets read: a standby, or a database set to read only."""
    with engine.connect() as connection:
        if connection.execute(text("SELECT pg_is_in_recovery()")).scalar():
            return "is a standby"
        only_reads = connection.execute(text("SHOW default_transaction_read_only")).scalar() == "on"
    return "is set to read only" if only_reads else ""


def told(error: BaseException, busy_seconds: float) -> str:
    """What the database said, in plain words and without a row's values (its DETAIL holds them)."""
    state = getattr(error, "sqlstate", None) or ""
    if not state:  # a failed first contact: the server's words tell a refused log-in from a server that is away
        signs = (("authentication failed", "28"), ("no password supplied", "28"), ("does not exist", "3D000"))
        return dict(CAUSES).get(next((state for words, state in signs if words in str(error)), ""), GONE)
    known = next((words for sign, words in CAUSES if state.startswith(sign)), None)
    primary = getattr(getattr(error, "diag", None), "message_primary", None) or "no reason given"
    return known.format(busy=busy_seconds) if known else f"refused the work ({primary[:200]})"
