"""CSV and Parquet → records as JSON lines would hold them. Cells of a CSV stay text: 007 is no number, NA no gap.

Strict: a row with another number of cells than the header, a column name that stands twice or a field of more than
131,072 characters refuses the file, naming the place. What a record must hold is checked in jsonl.py.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_core.corpus.columns import Columns, check_present
from rag_core.errors import InputError, RecordError
from rag_core.files import parse_json

MAX_ROWS = 500_000
MAX_COLUMNS = 1_000
MAX_PARQUET_BYTES = 2_000_000_000  # of what it says it holds, unpacked
DELIMITERS = (",", ";", "\t")
BATCH = 1_000  # rows
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")

Record = tuple[str, dict[str, Any]]
"""(where it stands, its fields)."""


def read_csv(text: str, where: str, columns: Columns | None = None) -> Iterator[Record]:
    """The rows of a CSV (comma, semicolon or tab, as its header has them) as records; empty cells are left out.

    The whole file is checked before the first record is given.
    """
    names = csv_columns(text, where)
    check_present(columns or {}, names, where)
    for number, row in _rows(text, where):
        if number > MAX_ROWS:
            raise InputError(f"{where} has more than {MAX_ROWS:,} rows, expected at most that many")
        if len(row) != len(names):
            raise RecordError(f"{where} row {number} has {len(row)} cells, expected {len(names)} as its header has")
    for number, row in _rows(text, where):
        place = f"{where} row {number}"
        cells = {name: cell for name, cell in zip(names, row, strict=True) if cell != ""}
        yield place, _typed(cells, columns or {}, place)


def csv_columns(text: str, where: str) -> list[str]:
    """The column names of a CSV, or an InputError where they cannot name columns."""
    names = next(iter(_reader(text, where)), [])
    return _checked_names(names, where)


def _rows(text: str, where: str) -> Iterator[tuple[int, list[str]]]:
    """(number from 1, cells) of every row below the header that is not blank."""
    rows = _reader(text, where)
    next(rows, None)
    yield from enumerate((row for row in rows if row), 1)


def _reader(text: str, where: str) -> Iterator[list[str]]:
    head = text[: text.find("\n")] if "\n" in text else text
    delimiter = max(DELIMITERS, key=head.count)  # the first of them where none stands there
    broken = (line[0] for line in _LINE.finditer(text))  # as a file would give them, without a second copy of it
    reader = csv.reader(broken, delimiter=delimiter, strict=True)
    try:
        yield from reader
    except csv.Error as error:
        raise RecordError(f"{where} line {reader.line_num} is no CSV ({error})") from None


def _checked_names(names: Sequence[str], where: str) -> list[str]:
    if not names or not any(name.strip() for name in names):
        raise InputError(f"{where} has no header, expected column names in its first line")
    if len(names) > MAX_COLUMNS:
        raise InputError(f"{where} has {len(names):,} columns, expected at most {MAX_COLUMNS:,}")
    for position, name in enumerate(names):
        if not name.strip():
            raise InputError(f"{where} has no name for column {position + 1}, expected one")
        if name in names[:position]:
            raise InputError(f"{where} has the column {name[:80]!r} twice, expected each name once")
    return list(names)


def _typed(cells: dict[str, Any], columns: Columns, place: str) -> dict[str, Any]:
    """The cells with those that hold lists or objects read: ref_ids as JSON or separated words, metadata as JSON."""
    references, metadata = columns.get("ref_ids", "ref_ids"), "metadata"
    if references in cells:
        cell = cells[references]
        is_list = cell.lstrip().startswith("[")
        cells[references] = parse_json(cell, place) if is_list else cell.replace(";", " ").split()
    if str(cells.get(metadata, "")).lstrip().startswith("{"):
        cells[metadata] = parse_json(cells[metadata], place)
    return cells


def read_parquet(path: Path, where: str, columns: Columns | None = None) -> Iterator[Record]:
    """The rows of a Parquet file as records; nulls are left out, dates and decimals become text."""
    with _opened(path, where) as file:
        check_present(columns or {}, _checked_names(file.schema_arrow.names, where), where)
        number = 0
        try:
            for batch in file.iter_batches(batch_size=BATCH):
                for row in batch.to_pylist():
                    number += 1
                    place = f"{where} row {number}"
                    yield place, {name: _plain(value, place) for name, value in row.items() if value is not None}
        except (OSError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise RecordError(f"{where} cannot be read after row {number} ({type(error).__name__})") from None


def parquet_columns(path: Path, where: str) -> list[str]:
    """The column names of a Parquet file."""
    with _opened(path, where) as file:
        return _checked_names(file.schema_arrow.names, where)


def _opened(path: Path, where: str) -> Any:
    """The file, checked for what it says it holds before anything is unpacked."""
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{where} is no Parquet file ({type(error).__name__}), expected one") from None
    meta = file.metadata
    size = sum(meta.row_group(number).total_byte_size for number in range(meta.num_row_groups))
    for found, most, what in ((meta.num_rows, MAX_ROWS, "rows"), (size, MAX_PARQUET_BYTES, "bytes unpacked")):
        if found > most:
            file.close()
            raise InputError(f"{where} has {found:,} {what}, expected at most {most:,}")
    return file


def _plain(value: Any, place: str) -> Any:
    """A cell as JSON has values: NaN is nothing, dates, times and decimals are their text, bytes are refused."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int | bool):
        return value
    if isinstance(value, bytes):
        raise RecordError(f"{place} holds bytes, expected text, numbers, dates or lists of them")
    if isinstance(value, Mapping):
        return {str(key): _plain(item, place) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, place) for item in value]
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def json_columns(text: str, where: str, lines: int = 50) -> list[str]:
    """The keys of the first lines of a JSONL file, in the order they appear; lines that are no objects give none."""
    found: dict[str, None] = {}
    for number, line in enumerate(text.split("\n", lines)[:lines], 1):
        value = parse_json(line, f"{where} line {number}") if line.strip() else None
        found |= dict.fromkeys(value) if isinstance(value, dict) else {}
    return list(found)
