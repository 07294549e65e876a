"""Labels as CSV for spreadsheets (RFC 4180): a header, one label a row, no cell that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any

from rag_core.errors import InputError, RecordError
from rag_core.files import header_said
from rag_core.store.exchange.cells import guard, rows_of, unguard
from rag_core.store.exchange.line import UNSURE, LabelLine, at_line, check_line, parse_grade

NEEDED = ("query_id", "chunk_id", "grade")
COLUMNS = (*NEEDED, "annotator", "note", "query_hash", "text_hash", "at")


def write_csv(labels: Iterable[LabelLine], raw: bool = False) -> str:
    """The table; `raw` leaves cells as they are, for programs that never run formulas."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n", quoting=csv.QUOTE_MINIMAL)
    writer.writerow(COLUMNS)
    for label in labels:
        writer.writerow([_cell(getattr(label, name), raw) for name in COLUMNS])
    return text.getvalue()


def _cell(value: str | int | None, raw: bool) -> str | int:
    if value is None:
        return UNSURE
    return value if raw or isinstance(value, int) else guard(value)


def read_csv(text: str, source: str, raw: bool = False) -> list[LabelLine]:
    """The labels; columns in any order, but an unknown, repeated or missing one is a RecordError."""
    rows = rows_of(text, source, ",")
    number, header = next(rows, (1, []))
    if not set(NEEDED) <= set(header) <= set(COLUMNS) or len(set(header)) != len(header):
        raise RecordError(
            f"{source}, line {number} is no header but {header_said(header)}, "
            f"expected {', '.join(NEEDED)} and of the rest any of {', '.join(COLUMNS[3:])}, each once"
        )
    return [_read_row(header, row, number, source, raw) for number, row in rows]


def _read_row(header: list[str], row: list[str], number: int, source: str, raw: bool) -> LabelLine:
    with at_line(source, number):
        if len(row) != len(header):
            raise InputError(f"{len(row)} cells, expected {len(header)} as in the header")
        cells = dict(zip(header, row, strict=True))
        grade = parse_grade(cells.pop("grade"))
        texts: dict[str, Any] = {name: cell if raw else unguard(cell) for name, cell in cells.items()}
        return check_line(LabelLine(**texts, grade=grade, number=number))
