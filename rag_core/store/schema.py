"""The tables and views by their columns, as statements name them; their types and guards are made in migrations.py.

The SQL is kept to what SQLite and PostgreSQL share.
"""

from __future__ import annotations

from sqlalchemy import column, table

from rag_core.store.events import ORIGIN, PAYLOAD

_EVENT = ("position", *PAYLOAD, "at", *ORIGIN, "checksum")
label_event, label_live, label_current = (
    table(name, *map(column, _EVENT)) for name in ("label_event", "label_live", "label_current")
)
run = table("run", *map(column, ("id", "at", "name", "eval_set", "summary", "snapshot")))
run_note = table("run_note", *map(column, ("position", "run", "at", "author", "note")))
query_history = table(
    "query_history",
    *map(column, ("position", "at", "asked_by", "collection", "query", "pipeline", "result", "hops", "milliseconds")),
    *map(column, ("tokens", "cost")),
)
TABLES = (label_event, label_live, label_current, run, run_note, query_history)
