"""Lists of queries that people bring, to make an eval set of: pasted lines, CSV or JSONL; strict, each id once.

Ids that are given stay as they are; lines without one are numbered q1, q2 … past the ids that are there already. What
becomes of the queries is in writing.py.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from rag_core.errors import InputError, RecordError
from rag_core.files import header_said, lines
from rag_core.records import parse_json_line
from rag_core.retrieve.question import check_question
from rag_core.text import fold
from rag_core.types import Query

FORMS = ("lines", "csv", "jsonl")
SUFFIXES = {"txt": "lines", "csv": "csv", "jsonl": "jsonl", "ndjson": "jsonl"}
NO_LIST = frozenset(
    ("yaml", "yml", "json", "xml", "html", "toml", "ini", "pdf", "docx", "xlsx", "parquet", "run", "qrels", "trec")
)
"""Endings of files whose lines are no questions, whatever stands in them."""
MOST = 100_000
LONGEST_ID = 200
LONGEST_TAG = 60
IDS, TEXTS = ("id", "_id", "query_id"), ("query", "text", "question", "user_input")
"""What others call the two: BEIR `_id` and `text`, Ragas `user_input`."""
ANSWERS = ("expected_answer", "expected", "answer", "reference", "ground_truth")
"""What a question's expected answer is called in its metadata: ours first, then what others write."""


def read_query_list(
    text: str,
    form: str,
    source: str = "the list",
    present: Mapping[str, str] | None = None,
    skipped: list[str] | None = None,
) -> list[Query]:
    """The queries of a pasted or read text, in order, with tags and `split` where they are given.

    lines: one query a line. csv: a header with query, and id, tags (`;` or `|` between), split where wanted. jsonl: an
    object a line with the same keys; other keys are kept. A RecordError names the line; no query is an InputError.

    `present` are texts by id of the queries that the list is to join: a line without an id that asks what one of them
    asks, after folding, is that one; the others are numbered past them. With `skipped`, a line that holds no query we
    can ask (too long, empty, control characters) is left out and its error is put there.
    """
    if form not in FORMS:
        raise InputError(f"a list of queries as {form[:40]!r}, expected one of {', '.join(FORMS)}")
    known = {_folded(asked): query_id for query_id, asked in (present or {}).items()}
    found: dict[str, Query] = {}
    place = 0  # of the id given last
    for number, record in {"lines": _lines, "csv": _csv, "jsonl": _jsonl}[form](text, source):
        try:
            query = _query(record, f"{source} line {number}")
        except RecordError as error:
            if skipped is None:
                raise
            skipped.append(str(error))
            continue
        if not query.id and _folded(query.text) in known:
            same = known[_folded(query.text)]
            query = replace(query, id=same, text=(present or {})[same])
            if same in found:  # the list itself says it twice
                continue
        elif not query.id:
            place = next(at for at in count(max(place, len(found)) + 1) if f"q{at}" not in (present or {}))
            query = replace(query, id=f"q{place}")
        if query.id in found:
            raise RecordError(f"{source} line {number} has query id {query.id[:80]!r} again, expected unique ids")
        if len(found) >= MOST:
            raise RecordError(f"{source} line {number} is query {MOST + 1:,}, expected at most {MOST:,}")
        found[query.id] = query
    if not found:
        raise InputError(f"{source} holds no query, expected at least one")
    return list(found.values())


def form_of(text: str, name: str = "") -> str:
    """How a list is written: as the file's ending says, else as its first line looks.

    A brace begins JSONL, a cell named as in TEXTS is the header of a CSV; all else are plain lines. A file that can be
    no list by its ending is an InputError.
    """
    ending = name.rpartition(".")[2].lower()
    if name and ending in SUFFIXES:
        return SUFFIXES[ending]
    if "." in name and ending in NO_LIST:
        shown = name.rpartition("/")[2][:80]
        raise InputError(f"{shown} is a .{ending} file, expected plain lines (.txt), CSV or JSONL (.csv, .jsonl)")
    first = text.lstrip("\ufeff \t\r\n").partition("\n")[0].strip()
    if first.startswith("{"):
        return "jsonl"
    return "csv" if set(TEXTS) & {cell.strip(' "').lower() for cell in first.split(",")} else "lines"


def expected_answer(query: Query) -> str:
    """The answer that a question expects, '' where nobody said one."""
    return next((str(query.metadata[name]) for name in ANSWERS if query.metadata.get(name)), "")


def repeated_texts(queries: Iterable[Query]) -> int:
    """How many queries ask, after folding, what an earlier one asks."""
    counts = Counter(_folded(query.text) for query in queries)
    return sum(times - 1 for times in counts.values())


def _folded(text: str) -> str:
    return " ".join(fold(text).split())


def clean_tags(tags: Iterable[object], place: str) -> tuple[str, ...]:
    """The tags without space around and each once; an InputError for one that is empty, no text or too long."""
    found: dict[str, None] = {}
    for tag in tags:
        if not isinstance(tag, str) or not 0 < len(tag.strip()) <= LONGEST_TAG or not tag.strip().isprintable():
            raise InputError(f"{place} has tag {str(tag)[:40]!r}, expected 1 to {LONGEST_TAG} printable characters")
        found[tag.strip()] = None
    return tuple(found)


def _lines(text: str, source: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    return ((number, {"query": line}) for number, line in lines(text))


def _jsonl(text: str, source: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in lines(text):
        record = parse_json_line(line, f"{source} line {number}")
        if not isinstance(record, Mapping):
            raise RecordError(f"{source} line {number} is {type(record).__name__}, expected an object with query")
        yield number, record


def _csv(text: str, source: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] | None = None
    while True:
        number = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise RecordError(f"{source} line {number}: {error}, expected well quoted cells") from None
        if row is None:
            return
        if header is None:
            header = _header(row, source, number)
        elif any(row):
            if len(row) != len(header):
                raise RecordError(f"{source} line {number} has {len(row)} cells, expected {len(header)}")
            cells = dict(zip(header, row, strict=True))
            tags = cells.pop("tags", "").replace("|", ";").split(";")
            yield number, {**cells, "tags": [tag for tag in tags if tag.strip()]}


def _header(row: list[str], source: str, number: int) -> list[str]:
    header = [name.strip().lower() for name in row]
    if len(set(header)) != len(header) or not set(TEXTS) & set(header):
        raise RecordError(
            f"{source} line {number} is no header but {header_said(row)}, "
            "expected query and, each once, any of id, tags, split"
        )
    return header


def _query(record: Mapping[str, Any], place: str) -> Query:
    """One query, checked, its id '' where none is given; its split is dev or test, other keys become metadata."""
    text = next((record[name] for name in TEXTS if name in record), None)
    if not isinstance(text, str) or "candidates" in record:
        what = "is a recorded list" if "candidates" in record else "has no query text"
        raise RecordError(f"{place} {what}, expected an object with query")
    given = next((record[name] for name in IDS if record.get(name) not in (None, "")), None)
    tags = record.get("tags") or ()
    if not isinstance(tags, list | tuple):
        raise RecordError(f"{place} has tags that are no list, expected a list of names")
    split = record.get("split") or ""
    if split not in ("", "dev", "test"):
        raise RecordError(f"{place} has split {str(split)[:40]!r}, expected dev, test or nothing")
    known = {*IDS, *TEXTS, "tags", "split", "version"}
    rest = {name: value for name, value in record.items() if name not in known and value not in (None, "")}
    try:
        metadata = {**rest, "split": split} if split else rest
        return Query(
            "" if given is None else _checked_id(given),
            check_question(text),
            tags=clean_tags(tags, "the query"),
            metadata=metadata,
        )
    except InputError as error:
        raise RecordError(f"{place}: {error}") from None


def _checked_id(given: object) -> str:
    if not isinstance(given, str | int) or isinstance(given, bool):
        raise InputError("the id is no text, expected a text")
    said = str(given).strip()
    if not 0 < len(said) <= LONGEST_ID or not said.isprintable():
        raise InputError(f"the id is {said[:40]!r}, expected 1 to {LONGEST_ID} printable characters")
    return said
