"""Where the studies of a workspace live, so that processes and people share them: its file, or the team's PostgreSQL.

Optuna keeps its own tables and their schema number; in PostgreSQL they get a schema of their own beside the labels',
whose number they would otherwise overwrite. What a study seeks is in evaluate/search.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Engine, text

from rag_core.settings import database_settings
from rag_core.store import postgres
from rag_core.store.database import BUSY_SECONDS, plain_errors

STUDIES = "studies.db"
SUFFIX = "_studies"


def shared_storage(workspace: Path) -> Path | Any:
    """What `search` takes as storage: a file of the workspace, or Optuna's storage where WINNOW_DATABASE_URL is set.

    A StoreError where the database cannot be reached, or lets nobody make a schema.
    """
    server = database_settings()
    if server is None:
        return workspace / STUDIES
    with plain_errors(f"label database {server.shown}", BUSY_SECONDS):
        engine = postgres.engine(server.url, BUSY_SECONDS)
        try:
            return _in_server(engine)
        finally:
            engine.dispose()


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
