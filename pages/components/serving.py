"""What the health address asks: does the database answer? Runs outside of any page's session."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from rag_core.errors import WinnowError
from rag_core.settings import database_settings
from rag_core.store.database import Store, open_store
from rag_core.workspace import resolve_workspace


@cache
def _store(workspace: Path, url: str) -> Store:
    return open_store(workspace)


def database_answers() -> bool:
    """Whether labels can be read now."""
    from sqlalchemy import text

    server = database_settings()
    try:
        with _store(resolve_workspace(), server.url if server else "").reading() as connection:
            return connection.execute(text("SELECT 1")).scalar() == 1
    except WinnowError:
        return False
