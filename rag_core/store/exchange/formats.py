"""Labels as files of each format: how it is read and written, and what tells it. A format is an entry of FORMATS.

Three are tables with a header: our CSV for spreadsheets, BEIR's tab-separated qrels and Quepid's ratings. JSONL is the
lossless one; TREC qrels are what trec_eval, pytrec_eval and ir_measures read; a judgement list is of the OpenSearch
Search Relevance Workbench. All but JSONL and CSV have no place for annotator, note or unsure.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from rag_core.errors import InputError, RecordError
from rag_core.files import header_said, lines, parse_json
from rag_core.store.exchange.line import (
    DRAWN,
    UNSURE,
    Grades,
    LabelLine,
    at_line,
    check_line,
    graded,
    line_of,
    one_grade_each,
    parse_grade,
)
from rag_core.store.labels import LabelStore

NEEDED = ("query_id", "chunk_id", "grade")
DESCRIBED = (*NEEDED, "annotator", "note", "query_hash", "text_hash", "at")
FORMULA = re.compile(r"'*[=+\-@\t\r\n\x00＝＋－＠]")  # the last four are the full-width forms


def judged(labels: Iterable[LabelLine], format_name: str) -> Iterator[tuple[LabelLine, int]]:
    """(line, grade) of every line; an unsure one is an InputError, since the format has no word for it."""
    for line in labels:
        if line.grade is None:
            raise InputError(f"{format_name} cannot say unsure, expected grades only")
        yield line, line.grade


# JSON lines


def write_jsonl(labels: Iterable[LabelLine]) -> str:
    """One object a line; what is not known is left out, an unsure grade is null."""
    names = (*DESCRIBED[3:], *DRAWN)
    documents = (
        {name: getattr(label, name) for name in NEEDED}
        | {name: getattr(label, name) for name in names if getattr(label, name)}
        for label in labels
    )
    return "".join(json.dumps(document, ensure_ascii=False) + "\n" for document in documents)


def read_jsonl(text: str, source: str) -> Iterator[LabelLine]:
    """The labels; unknown or repeated keys, NaN and grades that are no whole number are a RecordError."""
    names = (*DESCRIBED, *DRAWN)
    for number, line in lines(text):
        with at_line(source, number):
            document = parse_json(line, "the line")
            if not isinstance(document, dict):
                raise InputError(f"a {type(document).__name__}, expected an object")
            missing = [name for name in NEEDED if name not in document]
            unknown = [name[:40] for name in document if name not in names]
            if missing or unknown:
                raise InputError(f"missing {missing}, unknown {unknown[:5]}, expected {', '.join(names)}")
            yield check_line(LabelLine(**document, number=number))


# Tables: cells are read strictly as text, and kept from being run as a formula by a spreadsheet. A cell that starts
# like a formula gets an apostrophe in front (OWASP ASVS 1.2.10, CWE-1236), and loses it when read back. A cell that
# starts with apostrophes and then a formula gets one more, so that the way back is exact.


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


def _read_table(
    text: str, source: str, delimiter: str, places_of: Callable[[list[str]], Mapping[str, int]], raw: bool
) -> Iterator[LabelLine]:
    """The labels of a table; `places_of` says where in a header each field stands, or what is wrong with it.

    In a table with columns of other programs a row without a grade is no label.
    """
    rows = rows_of(text, source, delimiter)
    number, header = next(rows, (1, []))
    try:
        places = places_of(header)
    except InputError as error:
        raise RecordError(f"{source}, line {number}{error}") from None
    for number, row in rows:
        with at_line(source, number):
            if len(row) != len(header):
                raise InputError(f"{len(row)} cells, expected {len(header)} as in the header")
            cells: dict[str, Any] = {name: row[at] if raw else unguard(row[at]) for name, at in places.items()}
            if len(places) < len(header) and not row[places["grade"]].strip():
                continue
            yield check_line(LabelLine(**cells | {"grade": parse_grade(row[places["grade"]])}, number=number))


def _written_table(rows: Iterable[Iterable[str | int]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue()


def write_csv(labels: Iterable[LabelLine], raw: bool = False) -> str:
    """Our table (RFC 4180); `raw` leaves cells as they are, for programs that never run formulas."""

    def cell(value: str | int | None) -> str | int:
        if value is None:
            return UNSURE
        return value if raw or isinstance(value, int) else guard(value)

    return _written_table([DESCRIBED, *([cell(getattr(label, name)) for name in DESCRIBED] for label in labels)])


def read_csv(text: str, source: str, raw: bool = False) -> Iterator[LabelLine]:
    """Our table; columns in any order, but an unknown, repeated or missing one is a RecordError."""

    def places_of(header: list[str]) -> Mapping[str, int]:
        if not set(NEEDED) <= set(header) <= set(DESCRIBED) or len(set(header)) != len(header):
            raise InputError(
                f" is no header but {header_said(header)}, expected {', '.join(NEEDED)} and of the rest any of "
                f"{', '.join(DESCRIBED[3:])}, each once"
            )
        return {name: at for at, name in enumerate(header)}

    return _read_table(text, source, ",", places_of, raw)


BEIR = ["query-id", "corpus-id", "score"]


def write_beir(labels: Iterable[LabelLine]) -> str:
    """BEIR's header and one line per judged label. BEIR reads it with Python's csv, so special cells are quoted."""

    def cell(said: str) -> str:
        # Not csv.writer: with "\n" as the line end it leaves a lone carriage return unquoted.
        return '"' + said.replace('"', '""') + '"' if any(mark in said for mark in '\t\r\n"') else said

    rows = [BEIR, *([label.query_id, label.chunk_id, str(grade)] for label, grade in judged(labels, "BEIR"))]
    return "".join("\t".join(map(cell, row)) + "\n" for row in rows)


def read_beir(text: str, source: str) -> Iterator[LabelLine]:
    """BEIR's qrels; a missing header, a wrong number of cells or a grade other than 0-3 is a RecordError."""

    def places_of(header: list[str]) -> Mapping[str, int]:
        if header != BEIR:
            raise InputError(f": no BEIR header, expected {', '.join(BEIR)} with tabs between")
        return {name: at for at, name in enumerate(NEEDED)}

    return _read_table(text, source, "\t", places_of, raw=True)


QUEPID = {"query": ("query", "querytext"), "docid": ("docid", "documentid"), "rating": ("rating", "judgement")}
"""What each column may be called in Quepid's exports, folded: case, spaces and underscores do not matter."""


def write_quepid(labels: Iterable[LabelLine]) -> str:
    """Quepid's header and one row per judged label, the query given by its id; no cell runs as a formula."""
    rows = ((guard(label.query_id), guard(label.chunk_id), grade) for label, grade in judged(labels, "Quepid"))
    return _written_table([tuple(QUEPID), *rows])


def read_quepid(text: str, source: str) -> Iterator[LabelLine]:
    """Quepid's ratings, also its other exports with further columns, which are left out."""

    def places_of(header: list[str]) -> Mapping[str, int]:
        folded = ["".join(name.casefold().replace("_", " ").split()) for name in header]
        found = [[at for at, name in enumerate(folded) if name in spellings] for spellings in QUEPID.values()]
        if not all(len(places) == 1 for places in found):
            raise InputError(f": no Quepid header, expected {','.join(QUEPID)}, each once")
        return {name: at for name, (at,) in zip(NEEDED, found, strict=True)}

    return _read_table(text, source, ",", places_of, raw=False)


def renamed(labels: Iterable[LabelLine], names: Mapping[str, str]) -> list[LabelLine]:
    """The labels with query ids replaced where `names` holds one: ids by texts to write, texts by ids after reading.

    Quepid names a query by its text.
    """
    return [replace(label, query_id=names.get(label.query_id, label.query_id)) for label in labels]


# TREC: white space ends a column, so ids that hold any are percent-escaped, and unescaped when read back. Only what is
# escaped here is unescaped: `%41` or `%2F` in somebody else's id stays as it is, both ways, so that other tools meet
# the ids they know.


def write_trec(labels: Iterable[LabelLine]) -> str:
    """`query 0 chunk grade`, a line per judged label."""
    rows = judged(labels, "TREC qrels")
    return "".join(f"{escape_id(row.query_id)} 0 {escape_id(row.chunk_id)} {grade}\n" for row, grade in rows)


def read_trec(text: str, source: str, queries: Container[str] = (), chunks: Container[str] = ()) -> Iterator[LabelLine]:
    """The labels of a qrels file; an id that `queries` or `chunks` hold as it stands is not unescaped."""
    for number, line in without_comments(text, 4, (3,)):
        with at_line(source, number):
            cells = line.split()
            if len(cells) != 4:
                raise InputError(f"{len(cells)} columns, expected 4: query, 0, chunk, grade")
            query_id, chunk_id = meant_id(cells[0], queries), meant_id(cells[2], chunks)
            yield check_line(LabelLine(query_id, chunk_id, parse_grade(cells[3]), number=number))


def without_comments(text: str, columns: int, numbers: tuple[int, ...]) -> Iterator[tuple[int, str]]:
    """(line number, line) of every line but blank ones and comments, which begin with `#`.

    A line of that many columns with numbers at these places is none: an id may begin with `#` too.
    """
    for number, line in lines(text):
        cells = line.split()
        if not cells[0].startswith("#") or (len(cells) == columns and all(_is_number(cells[at]) for at in numbers)):
            yield number, line


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def meant_id(cell: str, known: Container[str]) -> str:
    """The id that a column stands for: itself where it is `known` as it is, else unescaped."""
    return cell if cell in known else unescape_id(cell)


def escape_id(text: str) -> str:
    """The id with white space, control characters and a byte order mark percent-escaped (UTF-8).

    A % is escaped only where it would else begin what unescape_id reads as an escape.
    """
    escapes, _, escaped = _escaping()
    return escaped.sub(lambda match: "%25" + match.group()[1:], text).translate(escapes)


def unescape_id(text: str) -> str:
    """The inverse of escape_id."""
    _, unescapes, escaped = _escaping()
    return escaped.sub(lambda match: unescapes[match.group()], text)


@cache
def _escaping() -> tuple[dict[int, str], dict[str, str], re.Pattern[str]]:
    """(character → its escape, escape → its character, what matches an escape)."""
    letters = map(chr, range(sys.maxunicode + 1))
    special = [letter for letter in letters if letter.isspace() or letter < " " or letter in "\x7f\ufeff"]
    escapes = {ord(letter): quote(letter, safe="") for letter in special}
    unescapes = {"%25": "%"} | {escaped: chr(code) for code, escaped in escapes.items()}
    return escapes, unescapes, re.compile("|".join(map(re.escape, unescapes)))


# OpenSearch: ratings are text with three decimals, and a file has no lines: a refusal names the number of the rating


def write_srw(labels: Iterable[LabelLine]) -> str:
    """The judgement list in the order of the labels; one entry per query where its labels stand together."""
    rated = groupby(judged(labels, "OpenSearch SRW"), key=lambda pair: pair[0].query_id)
    ratings = [
        {"query": query, "ratings": [{"docId": label.chunk_id, "rating": f"{grade}.000"} for label, grade in pairs]}
        for query, pairs in rated
    ]
    document = {"name": "winnow", "description": "", "type": "IMPORT_JUDGMENT", "judgmentRatings": ratings}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def read_srw(text: str, source: str) -> Iterator[LabelLine]:
    """The labels; another shape or a rating that is not 0-3 is a RecordError with the rating's number."""
    with at_line(source, 1):
        document = parse_json(text, "the file")
        if not isinstance(document, Mapping) or not isinstance(document.get("judgmentRatings"), list):
            raise InputError("no judgmentRatings, expected an OpenSearch judgement list")
    number = 0
    for entry in document["judgmentRatings"]:
        ratings = entry.get("ratings") if isinstance(entry, Mapping) else None
        with at_line(source, number + 1):
            if not isinstance(ratings, list) or not isinstance(entry.get("query"), str):
                raise InputError("an entry without query and ratings, expected both")
        for rating in ratings or ():
            number += 1
            with at_line(source, number):
                if not isinstance(rating, Mapping) or not isinstance(rating.get("docId"), str):
                    raise InputError("a rating without docId, expected one")
                said = str(rating.get("rating"))
                whole, _, rest = said.partition(".")
                if rest.strip("0"):
                    raise InputError(f"rating is {said[:40]!r}, expected a whole number from 0 to 3")
                yield check_line(LabelLine(entry["query"], rating["docId"], parse_grade(whole), number=number))


@dataclass(frozen=True, slots=True)
class LabelFormat:
    """How a file of labels is read and written."""

    read: Callable[..., Iterator[LabelLine]]  # text, source
    write: Callable[..., str]  # lines
    suffixes: tuple[str, ...] = ()  # endings that tell it
    grades_only: bool = True  # one grade per query and chunk and nothing else
    tables: bool = False  # cells that a spreadsheet would run are guarded, unless `raw`


FORMATS = {
    "jsonl": LabelFormat(read_jsonl, write_jsonl, (".jsonl", ".ndjson"), grades_only=False),
    "trec": LabelFormat(read_trec, write_trec, (".qrels", ".trec")),
    "beir": LabelFormat(read_beir, write_beir, (".tsv",)),
    "csv": LabelFormat(read_csv, write_csv, (".csv",), grades_only=False, tables=True),
    "quepid": LabelFormat(read_quepid, write_quepid),
    "srw": LabelFormat(read_srw, write_srw, (".json",)),
}
SUFFIXES = {suffix: name for name, format_ in FORMATS.items() for suffix in format_.suffixes}


def write_labels(labels: Iterable[LabelLine], format_name: str, raw: bool = False) -> str:
    """The labels as the text of a file."""
    format_ = FORMATS[known_format(format_name)]
    return format_.write(labels, raw) if format_.tables else format_.write(labels)


def read_labels(
    text: str, format_name: str, source: str = "the file", raw: bool = False, grades: Grades = MappingProxyType({})
) -> list[LabelLine]:
    """The labels of a file's text, each once; anything not understood is a RecordError naming the line.

    `grades` says what other grades than 0 to 3 mean here; -1 is unsure in all formats but our own.
    """
    format_ = FORMATS[known_format(format_name)]
    read = list(format_.read(text, source, raw) if format_.tables else format_.read(text, source))
    meant = grades if format_name == "jsonl" else {-1: None, **grades}
    return one_grade_each(graded(read, source, meant), source)


def known_format(name: str) -> str:
    """The name itself, or an InputError listing the formats."""
    if name not in FORMATS:
        raise InputError(f"unknown label format {name[:40]!r}, expected one of {', '.join(FORMATS)}")
    return name


def format_of(file_name: str) -> str:
    """The format a file's ending tells, or an InputError."""
    ending = "." + file_name.rpartition(".")[2].lower()
    if ending not in SUFFIXES:
        raise InputError(f"{file_name or 'a folder'} does not tell its format, expected --format {'|'.join(FORMATS)}")
    return SUFFIXES[ending]


def lines_to_export(
    labels: LabelStore, eval_set: str, annotator: str | None, format_name: str
) -> tuple[list[LabelLine], int]:
    """The lines that count now, and how many unsure labels the format has no place for."""
    events = labels.labels(eval_set, annotator)
    if not FORMATS[known_format(format_name)].grades_only:
        return [line_of(event) for event in events], 0
    grades = labels.current(eval_set, annotator)
    told = [LabelLine(query, chunk, grade) for query, of in grades.items() for chunk, grade in of.items()]
    return told, sum(event.grade is None for event in events)
