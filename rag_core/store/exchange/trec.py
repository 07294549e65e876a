"""Labels as TREC qrels: `query 0 chunk grade`, the format trec_eval, pytrec_eval and ir_measures read.

White space ends a column, so ids that hold any are percent-escaped, and unescaped when read back. Only what this
module escapes is unescaped: `%41` or `%2F` in somebody else's id stays as it is, both ways, so that other tools meet
the ids they know. It has no place for annotator, note or unsure.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Container, Iterable, Iterator
from functools import cache
from urllib.parse import quote

from rag_core.errors import InputError
from rag_core.files import lines as numbered
from rag_core.store.exchange.line import LabelLine, at_line, check_line, judged, parse_grade

COLUMNS = 4


def write_trec(labels: Iterable[LabelLine]) -> str:
    """One qrels line per judged label."""
    rows = judged(labels, "TREC qrels")
    return "".join(f"{escape_id(row.query_id)} 0 {escape_id(row.chunk_id)} {grade}\n" for row, grade in rows)


def read_trec(text: str, source: str) -> list[LabelLine]:
    """The labels of a qrels file; relevance -1 is read as unsure, other grades than 0-3 are a RecordError."""
    return [_read_line(line, number, source) for number, line in without_comments(text, COLUMNS, (3,))]


def _read_line(line: str, number: int, source: str) -> LabelLine:
    with at_line(source, number):
        cells = line.split()
        if len(cells) != COLUMNS:
            raise InputError(f"{len(cells)} columns, expected {COLUMNS}: query, 0, chunk, grade")
        query_id, _, chunk_id, grade = cells
        return check_line(LabelLine(unescape_id(query_id), unescape_id(chunk_id), parse_grade(grade), number=number))


def without_comments(text: str, columns: int, numbers: tuple[int, ...]) -> Iterator[tuple[int, str]]:
    """(line number, line) of every line but blank ones and comments, which begin with `#`.

    A line of that many columns with numbers at these places is none: an id may begin with `#` too.
    """
    for number, line in numbered(text):
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
    return _escaped().sub(lambda found: "%25" + found.group()[1:], text).translate(_escapes())


def unescape_id(text: str) -> str:
    """The inverse of escape_id."""
    return _escaped().sub(lambda found: _unescapes()[found.group()], text)


@cache
def _escapes() -> dict[int, str]:
    special = [chr(code) for code in range(sys.maxunicode + 1) if _is_special(chr(code))]
    return {ord(character): quote(character, safe="") for character in special}


def _is_special(character: str) -> bool:
    return character.isspace() or character < " " or character in "\x7f\ufeff"


@cache
def _unescapes() -> dict[str, str]:
    return {"%25": "%"} | {escaped: chr(code) for code, escaped in _escapes().items()}


@cache
def _escaped() -> re.Pattern[str]:
    return re.compile("|".join(re.escape(escaped) for escaped in _unescapes()))
