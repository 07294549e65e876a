"""Bring a store to this code's schema: back up, then every missing step in one transaction.

The steps themselves are under migrations/. A schema this code does not know is refused, never changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from rag_core.errors import StoreError
from rag_core.store.schema import HEAD

if TYPE_CHECKING:
    from rag_core.store.database import Store

SCRIPTS = Path(__file__).parent / "migrations"


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


def revision(connection: Connection) -> str:
    """The schema revision a store stands at, '' for an empty file."""
    names = inspect(connection).get_table_names()
    if "alembic_version" not in names:
        if names:
            raise StoreError("the database holds tables but no schema revision, expected a label store")
        return ""
    return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or "")


def refuse_unknown(store: Store, found: str) -> None:
    """Raise a StoreError for a revision that no step of this code makes."""
    known = revisions()
    if found and found not in known:
        raise StoreError(
            f"{store.name} has schema {found}, expected one of {', '.join(known)}: "
            "it was written by a newer version, install that one"
        )


def revisions() -> tuple[str, ...]:
    """Every schema revision, oldest first."""
    from alembic.script import ScriptDirectory

    steps = ScriptDirectory(str(SCRIPTS)).walk_revisions()
    return tuple(step.revision for step in steps)[::-1]


def upgrade(connection: Connection, target: str) -> None:
    """Run the steps up to `target` in the caller's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, target)
