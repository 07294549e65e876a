"""Labels as Quepid's ratings: CSV with the header `query,docid,rating`, the query given by its id here.

Quepid names a query by its text; a caller that has the texts maps ids to texts before writing and back after reading
(`renamed`). It has no place for annotator, note or unsure.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import replace

from rag_core.errors import InputError, RecordError
from rag_core.store.exchange.cells import guard, rows_of, unguard
from rag_core.store.exchange.line import LabelLine, at_line, check_line, judged, parse_grade

HEADER = ["query", "docid", "rating"]


def write_quepid(labels: Iterable[LabelLine]) -> str:
    """The header and one row per judged label; no cell runs as a formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(HEADER)
    for label, grade in judged(labels, "Quepid"):
        writer.writerow([guard(label.query_id), guard(label.chunk_id), grade])
    return text.getvalue()


def read_quepid(text: str, source: str) -> list[LabelLine]:
    """The labels; another header, a wrong number of cells or a rating other than 0-3 is a RecordError."""
    rows = rows_of(text, source, ",")
    number, header = next(rows, (1, []))
    if header != HEADER:
        raise RecordError(f"{source}, line {number}: no Quepid header, expected {','.join(HEADER)}")
    return [_read_row(row, number, source) for number, row in rows]


def _read_row(row: list[str], number: int, source: str) -> LabelLine:
    with at_line(source, number):
        if len(row) != len(HEADER):
            raise InputError(f"{len(row)} cells, expected {len(HEADER)}")
        query, chunk = unguard(row[0]), unguard(row[1])
        return check_line(LabelLine(query, chunk, parse_grade(row[2]), number=number))


def renamed(labels: Iterable[LabelLine], names: Mapping[str, str]) -> list[LabelLine]:
    """The labels with query ids replaced where `names` holds one: ids by texts to write, texts by ids after reading."""
    return [replace(label, query_id=names.get(label.query_id, label.query_id)) for label in labels]
