"""Cells of a table: read strictly as text, and kept from being run as a formula by a spreadsheet.

A cell that starts like a formula gets an apostrophe in front (OWASP ASVS 1.2.10, CWE-1236), and loses it when read
back. A cell that starts with apostrophes and then a formula gets one more, so that the way back is exact.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

from rag_core.errors import RecordError

FORMULA = re.compile(r"'*[=+\-@\t\r\n\x00＝＋－＠]")  # the last four are the full-width forms


def guard(cell: str) -> str:
    """The cell, inert in a spreadsheet."""
    return f"'{cell}" if FORMULA.match(cell) else cell


def unguard(cell: str) -> str:
    """The inverse of guard."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def rows_of(text: str, source: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """(line number, cells) of each row, every cell as text; blank lines are left out, bad quoting is a RecordError."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    while True:
        number = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise RecordError(f"{source}, line {number}: {error}, expected well quoted cells") from None
        if row is None:
            return
        if row:
            yield number, row
