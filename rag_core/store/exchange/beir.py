"""Labels as BEIR qrels: a tab-separated file with the header `query-id, corpus-id, score`.

BEIR reads it with Python's csv reader, so a cell that holds a tab, a line end or a quote is quoted. It has no place for
annotator, note or unsure.
"""

from __future__ import annotations

from collections.abc import Iterable

from rag_core.errors import InputError, RecordError
from rag_core.store.exchange.cells import rows_of
from rag_core.store.exchange.line import LabelLine, at_line, check_line, judged, parse_grade

HEADER = ["query-id", "corpus-id", "score"]


def write_beir(labels: Iterable[LabelLine]) -> str:
    """The header and one line per judged label."""
    rows = [[label.query_id, label.chunk_id, str(grade)] for label, grade in judged(labels, "BEIR")]
    return "".join("\t".join(map(_quoted, row)) + "\n" for row in [HEADER, *rows])


def _quoted(cell: str) -> str:
    # Not csv.writer: with "\n" as the line end it leaves a lone carriage return unquoted.
    return '"' + cell.replace('"', '""') + '"' if any(character in cell for character in '\t\r\n"') else cell


def read_beir(text: str, source: str) -> list[LabelLine]:
    """The labels; a missing header, a wrong number of cells or a grade other than 0-3 is a RecordError."""
    rows = rows_of(text, source, "\t")
    number, header = next(rows, (1, []))
    if header != HEADER:
        raise RecordError(f"{source}, line {number}: no BEIR header, expected {', '.join(HEADER)} with tabs between")
    return [_read_row(row, number, source) for number, row in rows]


def _read_row(row: list[str], number: int, source: str) -> LabelLine:
    with at_line(source, number):
        if len(row) != len(HEADER):
            raise InputError(f"{len(row)} cells, expected {len(HEADER)}")
        return check_line(LabelLine(row[0], row[1], parse_grade(row[2]), number=number))
