"""Where the studies of a workspace live, so that processes and people share them: its file, or the team's PostgreSQL.

Optuna keeps its own tables and their schema number; in PostgreSQL they get a schema of their own beside the labels',
whose number they would otherwise overwrite. One process makes them, the others wait. What a study seeks is in
tune/search.py.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, text

from rag_core.settings import database_settings
from rag_core.store import postgres
from rag_core.store.database import BUSY_SECONDS, plain_errors

STUDIES = "studies.db"
SUFFIX = "_studies"
WAIT_SECONDS = 60  # for a process that writes to the file


def shared_storage(workspace: Path) -> Any:
    """Optuna's storage of this workspace: its file, or the database where WINNOW_DATABASE_URL is set; made if missing.

    A StoreError where the database cannot be reached, or lets nobody make a schema.
    """
    server = database_settings()
    if server is None:
        return file_storage(workspace / STUDIES)
    with plain_errors(f"label database {server.shown}", BUSY_SECONDS):
        engine = postgres.engine(server.url, BUSY_SECONDS)
        try:
            return _in_server(engine)
        finally:
            engine.dispose()


def file_storage(file: Path) -> Any:
    """Optuna's storage in a SQLite file, waited for while another process writes to it."""
    from optuna.storages import RDBStorage

    with plain_errors(f"studies file {file.name}", WAIT_SECONDS):
        file.parent.mkdir(parents=True, exist_ok=True)
        # while one process makes the tables the others wait: Optuna makes them one by one, each only if it is missing
        lock = file.with_name(f"{file.name}.lock")
        with closing(sqlite3.connect(lock, timeout=WAIT_SECONDS, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")  # until the connection is closed
            return RDBStorage(f"sqlite:///{file}", engine_kwargs={"connect_args": {"timeout": WAIT_SECONDS}})


def _in_server(engine: Engine) -> Any:
    """The storage in a schema named after the labels' one; made by one process while the others wait."""
    from optuna.storages import RDBStorage

    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        schema = f"{connection.execute(text('SELECT current_schema()')).scalar()}{SUFFIX}"
        connection.execute(text("SELECT pg_advisory_lock(hashtext(:name))"), {"name": f"winnow {schema}"})
        try:
            quoted = engine.dialect.identifier_preparer.quote_identifier(schema)
            connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {quoted}"))
            address = engine.url.update_query_dict({"options": f"-csearch_path={schema}"})
            arguments = {"pool_pre_ping": True, "hide_parameters": True}
            return RDBStorage(address.render_as_string(hide_password=False), engine_kwargs=arguments)
        finally:
            connection.execute(text("SELECT pg_advisory_unlock(hashtext(:name))"), {"name": f"winnow {schema}"})
