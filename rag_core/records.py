"""Recorded result lists (JSONL, one query a line) ⇄ cases. Order in the file is the rank, unknown keys are metadata.

What some retriever returned is as good as a live list (docs/formats.md). A rule that cannot be read is kept as it
stands: the filter that meets it lets the chunk pass with a warning.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from rag_core.errors import InputError, RecordError
from rag_core.files import MAX_UPLOAD_BYTES, collector_at_rest, decode, lines, parse_json, read_lines
from rag_core.types import EMPTY, RANKS, SCORES, Candidates, Case, Chunk, Hit, Metric, Order, Query, chunks_in

VERSION = 1
NAMED = "scores"
"""Key of scores under names of a person's own (higher is better): several rerankers' on one list."""
QUERY_KEYS = {"version", "id", "query", "candidates", "metric", "order", "relevant_total", "labels", "tags"}
CANDIDATE_KEYS = {"id", "title", "text", "type", "query_must", "ref_ids", "relevant", NAMED, RANKS, *SCORES}

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Recorded result list, one line of a JSONL file, version 1",
    "type": "object",
    "required": ["query", "candidates"],
    "properties": {
        "version": {"const": VERSION},
        "id": {"type": "string", "minLength": 1, "description": "absent: q{line}"},
        "query": {"type": "string", "pattern": r"\S"},
        "metric": {"enum": [None, *(str(metric) for metric in Metric)], "description": "absent or null: unknown"},
        "order": {"enum": [str(order) for order in Order], "description": "distance (default) is checked"},
        "relevant_total": {"type": ["integer", "null"], "minimum": 0},
        "tags": {"type": "array", "items": {"type": "string"}},
        "labels": {
            "type": "object",
            "additionalProperties": {"type": "integer", "minimum": 0},
            "description": "grades of judged chunks that are not among the candidates: id → grade",
        },
        "candidates": {
            "type": "array",
            "items": {
                "type": "object",
                "anyOf": [{"required": [score]} for score in SCORES],
                "properties": {
                    "id": {"type": "string", "minLength": 1, "description": "absent: {query id}#{rank}"},
                    "title": {"type": ["string", "null"]},
                    "text": {"type": ["string", "null"]},
                    "type": {"type": ["string", "null"]},
                    "relevant": {"type": ["integer", "null"], "minimum": 0, "description": "grade; null: unjudged"},
                    "ref_ids": {"type": "array", "items": {"type": "string"}},
                    "query_must": {"description": "a rule; one that cannot be read keeps its chunk with a warning"},
                    **{score: {"type": "number"} for score in SCORES},
                    NAMED: {
                        "type": ["object", "null"],
                        "additionalProperties": {"type": "number"},
                        "description": "further scores by name, such as rerank; higher is better",
                    },
                    RANKS: {
                        "type": ["object", "null"],
                        "additionalProperties": {"type": "integer", "minimum": 1},
                        "description": "of a fused hit, its rank in each ranking that held it: dense, lexical",
                    },
                },
            },
        },
    },
}
"""The JSON Schema of a line, version 1."""

BARE_KEYS = {"id", "title", "text", "type", "relevant", NAMED, *SCORES}
USUAL_KEYS = {"id", "title", "text", "type", "distance", "relevant"}
MOST_WORDS = 50_000  # titles remembered while a file is read; titles that all differ would gain nothing


def load_lists(source: Path | bytes, name: str = "") -> list[Case]:
    """The cases of a recorded-list file, or of its bytes (then `name` stands in messages).

    RecordError names the line of the first thing that is wrong; nothing is returned then.
    """
    if isinstance(source, bytes):
        if len(source) > MAX_UPLOAD_BYTES:
            raise InputError(f"{name} has {len(source):,} bytes, expected at most {MAX_UPLOAD_BYTES:,}")
        where = name or "the file"
        rows = lines(decode(source, where))
    else:
        rows, where = ((number, line) for number, _, line in read_lines(source)), str(source)
    with collector_at_rest():
        cases = list(_cases(rows, where))
    if not cases:
        raise RecordError(f"{where} holds no line, expected one query with its candidates a line")
    return cases


def load_some_lists(path: Path, places: Sequence[int]) -> list[Case]:
    """Of a file of recorded lists only the cases at these places (0-based, blank lines do not count): others are not
    parsed. The file is one that `load_lists` reads.
    """
    starts = _line_starts(path, path.stat().st_mtime_ns)
    known = Known()
    with path.open("rb") as file:

        def case_at(place: int) -> Case:
            number, start = starts[place]
            file.seek(start)
            where = f"{path} line {number}"
            line = decode(file.readline(), where, start).rstrip("\r\n")
            return read_case(_object(parse_json_line(line, where), where), where, f"q{number}", known)

        with collector_at_rest():
            return [case_at(place) for place in places]


@lru_cache(maxsize=4)
def _line_starts(path: Path, changed: int) -> list[tuple[int, int]]:
    """(number, first byte) of every line that is not blank, while the file stands as it was last changed."""
    return [(number, start) for number, start, _ in read_lines(path)]


def _cases(rows: Iterable[tuple[int, str]], where: str) -> Iterator[Case]:
    """Line by line; ids are unique over the file."""
    seen: dict[str, int] = {}
    known = Known()
    for number, line in rows:
        place = f"{where} line {number}"
        if number == 1 and (line.startswith("[{") or line.rstrip() == "["):
            raise RecordError(f"{place} begins a JSON list, expected one object a line (JSONL)")
        case = read_case(_object(parse_json_line(line, place), place), place, f"q{number}", known)
        first = seen.setdefault(case.query.id, number)
        if first != number:
            raise RecordError(f"{place} has query id {case.query.id!r:.80} again (line {first}), expected unique ids")
        yield case


def with_texts(cases: Sequence[Case]) -> list[Case]:
    """The cases, with the text of another list where a hit lost its chunk's."""
    known = chunks_in(cases)

    def whole(hit: Hit) -> Hit:
        found = known[hit.chunk.id]
        if hit.chunk.text or not found.text:
            return hit
        return replace(hit, chunk=replace(hit.chunk, text=found.text, title=hit.chunk.title or found.title))

    return [
        replace(case, candidates=replace(case.candidates, hits=tuple(map(whole, case.candidates.hits))))
        if case.candidates and not all(hit.chunk.text for hit in case.candidates.hits)
        else case
        for case in cases
    ]


def textless(cases: Iterable[Case]) -> int:
    """How many hits of recorded lists have no text."""
    return sum(not hit.chunk.text for case in cases if case.candidates for hit in case.candidates.hits)


class Known:
    """What stood in earlier lines, held once: a chunk is in the lists of many queries, a title on many chunks."""

    def __init__(self) -> None:
        self._chunks: dict[str, Chunk] = {}
        self._bare: dict[tuple[Any, ...], Chunk] = {}
        self._words: dict[str, str] = {}

    def chunk(self, chunk: Chunk) -> Chunk:
        """The chunk as it was first read, where it was the same to the letter (1 and 1.0 are equal, not the same)."""
        first = self._chunks.setdefault(chunk.id, chunk)
        return first if first is chunk or (first == chunk and _loose(first) == _loose(chunk)) else chunk

    def bare(self, entry: Mapping[str, Any]) -> Chunk | None:
        """The chunk of a candidate that has id, texts and scores only, where the very same was read before.

        Half of the time that 10,000 lists of 50 take to read: nothing of it is checked and built again.
        """
        try:
            return self._bare.get(_bare(entry)) if entry.keys() <= BARE_KEYS else None
        except TypeError:  # a value that is no text: it is refused where the entry is read
            return None

    def usual(self, entry: Mapping[str, Any]) -> Chunk | None:
        """The chunk of a candidate whose id and texts are ASCII, made where it was not read before; else None."""
        texts = _bare(entry)
        if not all(text is None or (type(text) is str and text.isascii()) for text in texts) or not texts[0]:
            return None
        chunk = self._bare.get(texts)
        if chunk is None:
            id_, title, text, kind = (text or "" for text in texts)
            chunk = self._bare[texts] = self.chunk(Chunk(id_, self.word(title), text, self.word(kind)))
        return chunk

    def read(self, chunk: Chunk, entry: Mapping[str, Any]) -> Chunk:
        """A chunk as it was read of an entry, held once."""
        chunk = self.chunk(chunk)
        if entry.get("id") and entry.keys() <= BARE_KEYS:
            self._bare[_bare(entry)] = chunk
        return chunk

    def word(self, text: str) -> str:
        """A title or type as it was first read."""
        return self._words.setdefault(text, text) if len(self._words) < MOST_WORDS else self._words.get(text, text)


def _bare(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    return (entry.get("id"), entry.get("title"), entry.get("text"), entry.get("type"))


def _loose(chunk: Chunk) -> str:
    """What of a chunk may hold values of any type, as text."""
    return repr((chunk.query_must, chunk.metadata)) if chunk.metadata or chunk.query_must is not None else ""


def parse_json_line(line: str, place: str) -> Any:
    """The JSON value of one line; a RecordError that names the line."""
    try:
        return parse_json(line, place)
    except InputError as error:
        raise RecordError(str(error)) from None


def _object(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise RecordError(f"{place} is {type(value).__name__}, expected an object")
    return value


def read_case(record: Mapping[str, Any], place: str, default_id: str, known: Known | None = None) -> Case:
    """One parsed line as a case; a RecordError names `place` and the key. `known` are the lines read before."""
    if record.get("version", VERSION) != VERSION:
        raise RecordError(f"{place} has version {record['version']!r:.80}, expected {VERSION}")
    text = record.get("query")
    if not isinstance(text, str) or not text.strip():
        raise RecordError(f"{place} has query {text!r:.80}, expected the text of the query")
    query_id = _text(record, "id", place) or default_id
    metric = _choice(record.get("metric"), Metric, Metric.UNKNOWN, "metric", place)
    order = _choice(record.get("order"), Order, Order.DISTANCE, "order", place)
    entries = record.get("candidates")
    if not isinstance(entries, list):
        raise RecordError(f"{place} has candidates {_kind(entries)}, expected a list")
    known = known or Known()
    pairs = [
        _usual(entry, rank, known) or _candidate(entry, f"{place} candidate {rank}", rank, query_id, metric, known)
        for rank, entry in enumerate(entries, 1)
    ]
    hits, seen = tuple(hit for hit, _ in pairs), dict[str, int]()
    for hit in hits if len({hit.chunk.id for hit in hits}) < len(hits) else ():
        first = seen.setdefault(hit.chunk.id, hit.rank)
        if first != hit.rank:
            said = f"{place} candidate {hit.rank} has id {hit.chunk.id[:80]!r} again (candidate {first})"
            raise RecordError(f"{said}, expected unique ids")
    if order is Order.DISTANCE:
        _check_order(hits, place, ("rerank", *SCORES) if metric is Metric.RERANK else SCORES)
    metadata = {key: value for key, value in record.items() if key not in QUERY_KEYS}
    query = Query(query_id, text, tags=_texts(record, "tags", place), metadata=metadata)
    grades = _labels(record.get("labels"), place)
    grades |= {hit.chunk.id: grade for hit, grade in pairs if grade is not None}
    total = _count(record.get("relevant_total"), "relevant_total", place)
    return Case(query, grades, Candidates(query, hits, metric=metric, order=order, recorded=True), total)


def _labels(value: Any, place: str) -> dict[str, int]:
    """Grades of chunks that are not among the candidates."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise RecordError(f"{place} has labels {_kind(value)}, expected an object of chunk id and grade")
    graded = {chunk: _count(grade, f"the label of {chunk[:80]!r}", place) for chunk, grade in value.items()}
    return {chunk: grade for chunk, grade in graded.items() if grade is not None}


def _usual(entry: Any, rank: int, known: Known) -> tuple[Hit, int | None] | None:
    """A candidate of id, plain texts, a distance and a grade, as most are: half the time of `_candidate`, else None."""
    if type(entry) is not dict or not entry.keys() <= USUAL_KEYS:
        return None
    distance, grade = entry.get("distance"), entry.get("relevant")
    if type(distance) is not float or not math.isfinite(distance) or not (grade is None or type(grade) is int):
        return None
    if (grade is not None and grade < 0) or (chunk := known.usual(entry)) is None:
        return None
    return Hit(chunk, rank, {"distance": distance}), grade


def _candidate(
    given: Any, place: str, rank: int, query_id: str, metric: Metric, known: Known
) -> tuple[Hit, int | None]:
    """One candidate as a hit and its grade."""
    entry = _object(given, place)
    scores = {kind: _score(value, kind, place) for kind in SCORES if (value := entry.get(kind)) is not None}
    scores |= _named_scores(entry.get(NAMED), place)
    if not scores:
        raise RecordError(f"{place} has no score, expected one of {', '.join(SCORES)}")
    if "distance" not in scores and "similarity" in scores and metric is Metric.COSINE:
        scores["distance"] = 1.0 - scores["similarity"]
    if (chunk := known.bare(entry)) is not None:
        return Hit(chunk, rank, scores), _count(entry.get("relevant"), "relevant", place)
    more = entry.keys() - CANDIDATE_KEYS
    chunk = Chunk(
        id=_text(entry, "id", place) or f"{query_id}#{rank}",
        title=known.word(_text(entry, "title", place)),
        text=_text(entry, "text", place),
        type=known.word(_text(entry, "type", place)),
        query_must=entry.get("query_must"),
        ref_ids=_texts(entry, "ref_ids", place),
        metadata={key: value for key, value in entry.items() if key in more} if more else EMPTY,
    )
    ranks = _ranks(entry.get(RANKS), place)
    notes = {RANKS: ranks} if ranks else EMPTY
    return Hit(known.read(chunk, entry), rank, scores, notes=notes), _count(entry.get("relevant"), "relevant", place)


def _named_scores(value: Any, place: str) -> dict[str, float]:
    """Further scores by name."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(name, str) and 0 < len(name) <= 64 for name in value):
        raise RecordError(f"{place} has scores {_kind(value)}, expected an object of name and number")
    return {name: _score(number, name, place) for name, number in value.items()}


def _ranks(value: Any, place: str) -> dict[str, int]:
    """The ranks of a fused hit in the rankings that held it."""
    if value is None:
        return {}
    whole = isinstance(value, Mapping) and all(type(rank) is int and rank >= 1 for rank in value.values())
    if not whole:
        raise RecordError(f"{place} has ranks {_kind(value)}, expected an object of whole numbers of at least 1")
    return dict(value)


def _score(value: Any, kind: str, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise RecordError(f"{place} has {kind} {_kind(value)}, expected a finite number")
    return float(value)


def _count(value: Any, key: str, place: str) -> int | None:
    """A whole number of at least 0, or None where it is absent; true and false count as 1 and 0."""
    if value is None:
        return None
    if not isinstance(value, int | float) or value != value or value < 0 or value != int(value):
        raise RecordError(f"{place} has {key} {_kind(value)}, expected a whole number of at least 0, or null")
    return int(value)


def _text(record: Mapping[str, Any], key: str, place: str) -> str:
    value = record.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise RecordError(f"{place} has {key} {_kind(value)}, expected text")
    if value.isascii():
        return value
    return value.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate would break every later writer


def _texts(record: Mapping[str, Any], key: str, place: str) -> tuple[str, ...]:
    value = record.get(key)
    if not value:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise RecordError(f"{place} has {key} {_kind(value)}, expected a list of texts")
    return tuple(value)


def _choice(value: Any, kind: Any, default: Any, key: str, place: str) -> Any:
    if value is None:
        return default
    if value not in list(kind):
        raise RecordError(f"{place} has {key} {_kind(value)}, expected one of {', '.join(kind)}")
    return kind(value)


def _kind(value: Any) -> str:
    """A short, safe picture of a wrong value: numbers as they are, anything long by its type."""
    shown = json.dumps(value, ensure_ascii=True, default=str)
    return shown if len(shown) <= 40 else f"of type {type(value).__name__}"


def _check_order(hits: tuple[Hit, ...], place: str, kinds: tuple[str, ...]) -> None:
    """The list must be ordered by the first of these scores that all its candidates have."""
    if not hits:
        return
    kind = next((kind for kind in kinds if all(kind in hit.scores for hit in hits)), None)
    if kind is None:
        if any("distance" in hit.scores for hit in hits):
            bare = next(hit for hit in hits if "distance" not in hit.scores)
            raise RecordError(f"{place} candidate {bare.rank} has no distance, expected one as the others have")
        raise RecordError(f"{place} has no score that all candidates share, expected one, or order: fused")
    sign = 1 if kind == "distance" else -1
    word = "ascending distances" if sign == 1 else f"descending {kind}"
    for before, after in pairwise(hits):
        if sign * after.scores[kind] < sign * before.scores[kind]:
            raise RecordError(
                f"{place} candidate {after.rank} has {kind} {after.scores[kind]!r} after {before.scores[kind]!r}, "
                f"expected {word}, or order: fused"
            )


# Writing


def dump_lists(cases: Iterable[Case]) -> Iterator[str]:
    """The cases as JSONL lines without newline; `load_lists` gives the same cases back."""
    for case in cases:
        yield json.dumps(dump_case(case), ensure_ascii=False)


def dump_case(case: Case) -> dict[str, Any]:
    """One case as the plain values of its line."""
    candidates = case.candidates or Candidates(case.query)
    record: dict[str, Any] = {"version": VERSION, "id": case.query.id, "query": case.query.text}
    if candidates.metric is not Metric.UNKNOWN:
        record["metric"] = str(candidates.metric)
    if candidates.order is not Order.DISTANCE:
        record["order"] = str(candidates.order)
    if case.relevant_total is not None:
        record["relevant_total"] = case.relevant_total
    if case.query.tags:
        record["tags"] = list(case.query.tags)
    listed = {hit.chunk.id for hit in candidates.hits}
    elsewhere = {chunk: grade for chunk, grade in case.grades.items() if chunk not in listed}
    if elsewhere:
        record["labels"] = elsewhere
    record.update(case.query.metadata)
    record["candidates"] = [_dump_hit(hit, case.grades.get(hit.chunk.id)) for hit in candidates.hits]
    return record


def _dump_hit(hit: Hit, grade: int | None) -> dict[str, Any]:
    chunk = hit.chunk
    known = {name: value for name, value in hit.scores.items() if name in SCORES}
    entry: dict[str, Any] = {"id": chunk.id, "title": chunk.title, **known}
    if named := {name: value for name, value in hit.scores.items() if name not in SCORES}:
        entry[NAMED] = named
    if grade is not None:
        entry["relevant"] = grade
    if RANKS in hit.notes:
        entry[RANKS] = dict(hit.notes[RANKS])
    optional = {"text": chunk.text, "type": chunk.type, "query_must": chunk.query_must, "ref_ids": list(chunk.ref_ids)}
    entry.update({key: value for key, value in optional.items() if value})
    entry.update(chunk.metadata)
    return entry
