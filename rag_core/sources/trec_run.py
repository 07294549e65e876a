"""A TREC run (`query Q0 chunk rank score tag`) as recorded lists: texts come from a corpus, questions from a file.

The order is that of the scores, highest first, equal ones by rank. Labels stand apart, in qrels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rag_core.corpus.load import load
from rag_core.errors import RecordError
from rag_core.files import lines, read_text
from rag_core.records import load_lists, parse_json_line
from rag_core.store.exchange.trec import unescape_id
from rag_core.types import Candidates, Case, Chunk, Hit, Order, Query

COLUMNS = 6


def read_lists(path: Path, queries: Path | None = None, corpus: Path | None = None) -> list[Case]:
    """The cases of a file of lists: a TREC run where its first line is one, else recorded lists."""
    return load_run(path, queries, corpus) if is_run(path) else load_lists(path)


def is_run(path: Path) -> bool:
    """Whether a file's first line has the six columns of a run."""
    first = next((line for _, line in lines(read_text(path))), "")
    return not first.lstrip().startswith("{") and len(first.split()) == COLUMNS


def load_run(path: Path, queries: Path | None = None, corpus: Path | None = None) -> list[Case]:
    """The cases of a run, in the order of the queries file, else of the run; a RecordError names file and line.

    Without a queries file a query's text is its id; without a corpus a chunk is its id alone.
    """
    ranked = _read(path)
    texts = read_questions(queries) if queries is not None else {}
    strange = next((one for one in ranked if queries is not None and one not in texts), None)
    if strange is not None:
        raise RecordError(f"{path} has query {strange[:80]!r}, which {queries} does not hold")
    chunks = {chunk.id: chunk for chunk in load([corpus]).chunks} if corpus is not None else {}
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


def _read(path: Path) -> dict[str, list[tuple[float, int, str]]]:
    """Query id → (−score, rank, chunk id), in order."""
    found: dict[str, dict[str, tuple[float, int, str]]] = {}
    for number, line in lines(read_text(path)):
        place, cells = f"{path} line {number}", line.split()
        if len(cells) != COLUMNS:
            raise RecordError(f"{place} has {len(cells)} columns, expected 6: query, Q0, chunk, rank, score, tag")
        query, chunk = unescape_id(cells[0]), unescape_id(cells[2])
        rank, score = _number(cells[3], "rank", place), _number(cells[4], "score", place)
        if chunk in found.setdefault(query, {}):
            raise RecordError(f"{place} has chunk {chunk[:80]!r} of query {query[:80]!r} again, expected it once")
        found[query][chunk] = (-score, int(rank), chunk)
    if not found:
        raise RecordError(f"{path} holds no line, expected a run")
    return {query: sorted(rows.values()) for query, rows in found.items()}


def _number(cell: str, name: str, place: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise RecordError(f"{place} has {name} {cell[:40]!r}, expected a number")
    return value


def _case(query: Query, rows: list[tuple[float, int, str]], chunks: Mapping[str, Any]) -> Case:
    hits = tuple(
        Hit(chunks.get(identity) or Chunk(identity), place, {"score": -score})
        for place, (score, _, identity) in enumerate(rows, 1)
    )
    return Case(query, candidates=Candidates(query, hits, order=Order.DISTANCE, recorded=True))
