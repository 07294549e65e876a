"""Labels as Quepid's ratings: CSV with the header `query,docid,rating`, the query given by its id here.

Read are also tables with further columns and the headers of its other exports (`Query Text`, `Doc ID`): there a row
without a rating is no label, and the other columns are left out. Quepid names a query by its text; a caller that has
the texts maps ids to texts before writing and back after reading (`renamed`). It has no place for annotator, note or
unsure.
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
NAMES = {"query": ("query", "querytext"), "docid": ("docid", "documentid"), "rating": ("rating", "judgement")}
"""What each column may be called, folded: case, spaces and underscores do not matter."""


def write_quepid(labels: Iterable[LabelLine]) -> str:
    """The header and one row per judged label; no cell runs as a formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(HEADER)
    for label, grade in judged(labels, "Quepid"):
        writer.writerow([guard(label.query_id), guard(label.chunk_id), grade])
    return text.getvalue()


def read_quepid(text: str, source: str) -> list[LabelLine]:
    """The labels; a header without the three, a wrong number of cells or a rating other than 0-3 is a RecordError."""
    rows = rows_of(text, source, ",")
    number, header = next(rows, (1, []))
    places = _places(header)
    if places is None:
        raise RecordError(f"{source}, line {number}: no Quepid header, expected {','.join(HEADER)}, each once")
    read = (_read_row(row, places, len(header), number, source) for number, row in rows)
    return [line for line in read if line is not None]


def _places(header: list[str]) -> list[int] | None:
    """Where query, docid and rating stand; None unless each stands there once."""
    folded = ["".join(name.casefold().replace("_", " ").split()) for name in header]
    found = [[at for at, name in enumerate(folded) if name in NAMES[wanted]] for wanted in HEADER]
    return [places[0] for places in found] if all(len(places) == 1 for places in found) else None


def _read_row(row: list[str], places: list[int], width: int, number: int, source: str) -> LabelLine | None:
    with at_line(source, number):
        if len(row) != width:
            raise InputError(f"{len(row)} cells, expected {width}")
        query, chunk, rating = (row[place] for place in places)
        if width > len(HEADER) and not rating.strip():
            return None
        return check_line(LabelLine(unguard(query), unguard(chunk), parse_grade(rating), number=number))


def renamed(labels: Iterable[LabelLine], names: Mapping[str, str]) -> list[LabelLine]:
    """The labels with query ids replaced where `names` holds one: ids by texts to write, texts by ids after reading."""
    return [replace(label, query_id=names.get(label.query_id, label.query_id)) for label in labels]
