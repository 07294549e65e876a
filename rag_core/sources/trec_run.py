"""A TREC run (`query Q0 chunk rank score tag`) as recorded lists: texts come from a corpus, questions from a file.

The order is that of the scores, highest first; equal ones by rank, or as trec_eval orders them. Labels stand apart, in
qrels (`read_qrels`); the questions of theirs that a run lacks count 0 (`unanswered`).
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from ctypes import c_float
from pathlib import Path
from typing import Any, Literal

from rag_core.corpus.load import load
from rag_core.errors import RecordError
from rag_core.files import lines, read_text
from rag_core.records import load_lists, parse_json_line
from rag_core.store.exchange.formats import meant_id, read_beir, read_trec, without_comments
from rag_core.types import Candidates, Case, Chunk, Hit, Order, Query

COLUMNS, NUMBERS = 6, (3, 4)
Labels = dict[str, dict[str, int]]
Row = tuple[float, int, str]  # score, rank, chunk id
Ties = Literal["rank", "trec"]


def read_lists(path: Path, queries: Path | None = None, corpus: Path | None = None, ties: Ties = "rank") -> list[Case]:
    """The cases of a file of lists: a TREC run where its first line is one, else recorded lists."""
    return load_run(path, queries, corpus, ties) if is_run(path) else load_lists(path)


def is_run(path: Path) -> bool:
    """Whether a file's first line has the six columns of a run."""
    first = next((line for _, line in without_comments(read_text(path), COLUMNS, NUMBERS)), "")
    return not first.lstrip().startswith("{") and len(first.split()) == COLUMNS


def load_run(path: Path, queries: Path | None = None, corpus: Path | None = None, ties: Ties = "rank") -> list[Case]:
    """The cases of a run, in the order of the queries file, else of the run; a RecordError names file and line.

    Without a queries file a query's text is its id; without a corpus a chunk is its id alone. Chunks of one score stand
    as their ranks say, or (`ties` trec) by id, last first, whatever the ranks say: what trec_eval measures.
    """
    texts = read_questions(queries) if queries is not None else {}
    chunks = {chunk.id: chunk for chunk in load([corpus]).chunks} if corpus is not None else {}
    ranked = _read(path, ties, texts, chunks)
    strange = next((one for one in ranked if queries is not None and one not in texts), None)
    if strange is not None:
        raise RecordError(f"{path} has query {strange[:80]!r}, which {queries} does not hold")
    ids = [one for one in texts if one in ranked] or list(ranked)
    return [_case(Query(one, texts.get(one, one)), ranked[one], chunks) for one in ids]


def read_questions(path: Path) -> dict[str, str]:
    """Query id → text of a JSONL file (id or _id; query or text) or of lines `id TAB text`."""
    found: dict[str, str] = {}
    for number, line in lines(read_text(path)):
        place = f"{path} line {number}"
        if line.lstrip().startswith("{"):
            record = parse_json_line(line, place)
            identity, text = record.get("_id", record.get("id")), record.get("query", record.get("text"))
        else:
            identity, _, text = line.partition("\t")
        if not isinstance(identity, str) or not identity or not isinstance(text, str) or not text.strip():
            raise RecordError(f"{place} is no query, expected id and text")
        if found.setdefault(identity, text.strip()) != text.strip():
            raise RecordError(f"{place} has query id {identity[:80]!r} again, expected unique ids")
    return found


def read_qrels(path: Path, queries: Container[str] = (), chunks: Container[str] = ()) -> Labels:
    """Query id → chunk id → grade of a file in BEIR form (tabs, with a header) or TREC form (`query 0 chunk grade`).

    Grades are whole numbers of any size; a negative one is not relevant. Ids of a TREC file are taken as they are where
    `queries` or `chunks` hold them so, else with their escapes read.
    """
    text, grades = read_text(path), Labels()
    beir = text.startswith("query-id\t")
    for label in read_beir(text, str(path)) if beir else read_trec(text, str(path), queries, chunks):
        if label.grade is None:
            raise RecordError(f"{path}, line {label.number} is unsure, expected a whole grade")
        grades.setdefault(label.query_id, {})[label.chunk_id] = label.grade
    return grades


def unanswered(labels: Labels, cases: Iterable[Case], queries: Path | None = None) -> list[Case]:
    """The labelled questions that a run has no line for, each with an empty list: they count 0, as with trec_eval -c.

    A file of questions says which ones were asked at all.
    """
    answered = {case.query.id for case in cases}
    texts = read_questions(queries) if queries is not None else {one: one for one in labels}
    missing = [Query(one, texts[one]) for one in labels if one in texts and one not in answered]
    return [Case(query, labels[query.id], Candidates(query, (), recorded=True)) for query in missing]


def _read(path: Path, ties: Ties, queries: Container[str], chunks: Container[str]) -> dict[str, list[Row]]:
    """Query id → its rows, in order."""
    found: dict[str, dict[str, Row]] = {}
    written: dict[str, str] = {}  # chunk id → as it stands in the file
    for number, line in without_comments(read_text(path), COLUMNS, NUMBERS):
        place, cells = f"{path} line {number}", line.split()
        if len(cells) != COLUMNS:
            raise RecordError(f"{place} has {len(cells)} columns, expected 6: query, Q0, chunk, rank, score, tag")
        query, chunk = meant_id(cells[0], queries), meant_id(cells[2], chunks)
        rank, score = _number(cells[3], "rank", place), _number(cells[4], "score", place)
        if chunk in found.setdefault(query, {}):
            raise RecordError(f"{place} has chunk {chunk[:80]!r} of query {query[:80]!r} again, expected it once")
        found[query][chunk] = (score, int(rank), chunk)
        written[chunk] = cells[2]
    if not found:
        raise RecordError(f"{path} holds no line, expected a run")

    def place_of(row: Row) -> tuple[float, Any, str]:
        score, rank, chunk = row
        # trec_eval holds scores in four bytes, so more of them are equal than the file shows.
        return (c_float(score).value, written[chunk], "") if ties == "trec" else (-score, rank, chunk)

    return {query: sorted(rows.values(), key=place_of, reverse=ties == "trec") for query, rows in found.items()}


def _number(cell: str, name: str, place: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise RecordError(f"{place} has {name} {cell[:40]!r}, expected a number")
    return value


def _case(query: Query, rows: list[Row], chunks: Mapping[str, Any]) -> Case:
    hits = tuple(
        Hit(chunks.get(identity) or Chunk(identity), place, {"score": score})
        for place, (score, _, identity) in enumerate(rows, 1)
    )
    return Case(query, candidates=Candidates(query, hits, order=Order.DISTANCE, recorded=True))
