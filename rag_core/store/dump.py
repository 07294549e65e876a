"""A portable copy of the whole database: one JSON line per row, the same from SQLite and PostgreSQL and into either.

The first line says the schema, the last how many rows each table has, so that a copy cut short is told. What is read
back goes through the schema's own steps up to today's. Folders, manifests and when to copy are for others.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sqlalchemy import Connection, MetaData, Table, inspect, select, text

from rag_core.errors import InputError, StoreError
from rag_core.store.migrations import STEPS, revision, upgrade

if TYPE_CHECKING:
    from rag_core.store.database import Store

KIND = "winnow database"
VERSION = 1
AT_ONCE = 500  # rows per statement
REVISIONS = "alembic_version"


def dump(store: Store, path: Path) -> Path:
    """Write one state of the whole database to `path`; it appears under that name only when it is whole and on disk."""
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file, store.reading() as connection:
            _write(connection, file)
            file.flush()
            os.fsync(file.fileno())
        return partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _write(connection: Connection, file: IO[str]) -> None:
    file.write(_line({"kind": KIND, "version": VERSION, "schema": revision(connection)}))
    counts: dict[str, int] = {}
    for table in _tables(connection):
        counts[table.name] = 0
        order = list(table.primary_key.columns)
        rows = connection.execution_options(yield_per=AT_ONCE).execute(select(table).order_by(*order)).mappings()
        for row in rows:
            file.write(_line({"table": table.name, "row": dict(row)}))
            counts[table.name] += 1
    file.write(_line({"rows": counts}))


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True) + "\n"


def _tables(connection: Connection) -> list[Table]:
    names = sorted(name for name in inspect(connection).get_table_names() if name not in (REVISIONS, "sqlite_sequence"))
    metadata = MetaData()
    return [Table(name, metadata, autoload_with=connection) for name in names]


def restore(
    store: Store, path: Path, *, force: bool = False, last: Callable[[], None] = lambda: None
) -> dict[str, int]:
    """Read a copy back, whole or not at all; rows by table. A database with rows of its own needs `force`.

    `last` is done when all rows are in and none of them counts yet; what it raises takes them back.
    InputError: the file is no such copy or was cut short. StoreError: the database holds rows, or a newer schema.
    """
    schema, counts = check(path)
    with store.writing() as connection:
        held = count_rows(connection)
        if any(held.values()) and not force:
            listed = ", ".join(f"{name}: {count:,}" for name, count in held.items() if count)
            raise StoreError(f"{store.name} holds rows already ({listed}), expected an empty one or --force")
        for view in ("label_current", "label_live"):  # of an older state; the guards only refuse the change of rows
            connection.execute(text(f"DROP VIEW IF EXISTS {view}"))
        for name in (*held, REVISIONS):
            connection.execute(text(f'DROP TABLE IF EXISTS "{name}"'))
        upgrade(connection, schema)
        tables = {table.name: table for table in _tables(connection)}
        for name, rows in _batches(path):
            if name not in tables:
                raise InputError(f"{path.name} has rows of a table {name[:40]!r}, expected one of {', '.join(tables)}")
            connection.execute(tables[name].insert(), rows)
        for name, table in tables.items():
            if connection.dialect.name == "postgresql" and "position" in table.c:
                # it numbers rows by a sequence that knows nothing of rows that brought their number along
                largest = f'SELECT COALESCE(MAX(position), 0) + 1 FROM "{name}"'  # noqa: S608 — a table of ours
                sequence = f"pg_get_serial_sequence('{name}', 'position')"
                connection.execute(text(f"SELECT setval({sequence}, ({largest}), false)"))
        upgrade(connection)
        last()
    return counts


def check(path: Path) -> tuple[str, dict[str, int]]:
    """The schema and the rows by table of a copy, counted line by line; an InputError where it is none or not whole."""
    counted = Counter[str]()
    said: dict[str, int] | None = None
    schema = ""
    for number, line in _lines(path):
        if number == 1:
            if line.get("kind") != KIND or line.get("version") != VERSION:
                raise InputError(f"{path.name} is no copy of a Winnow database, version {VERSION}")
            schema = str(line.get("schema"))
            if schema not in STEPS:
                raise StoreError(f"{path.name} has schema {schema[:20]}, expected one of {', '.join(STEPS)}")
        elif "rows" in line:
            said = line["rows"]
        else:
            counted[str(line.get("table"))] += 1
    if said is None or {name: count for name, count in said.items() if count} != counted:
        raise InputError(f"{path.name} was cut short, expected the rows its last line counts")
    return schema, said


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open(encoding="utf-8") as file:
        for number, text_line in enumerate(file, 1):
            try:
                line = json.loads(text_line)
            except ValueError:
                line = None
            if not isinstance(line, dict):
                raise InputError(f"{path.name} line {number} is no JSON object, expected one")
            yield number, line


def _batches(path: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The rows in their order, up to AT_ONCE of one table together."""
    name, rows = "", list[dict[str, Any]]()
    for _, line in _lines(path):
        if "row" not in line:
            continue
        if rows and (line["table"] != name or len(rows) == AT_ONCE):
            yield name, rows
            rows = []
        name = str(line["table"])
        rows.append(line["row"])
    if rows:
        yield name, rows


def count_rows(connection: Connection) -> dict[str, int]:
    """How many rows each table holds."""
    names = [table.name for table in _tables(connection)]
    counted = {name: connection.exec_driver_sql(f'SELECT count(*) FROM "{name}"').scalar() for name in names}  # noqa: S608
    return {name: int(count or 0) for name, count in counted.items()}
