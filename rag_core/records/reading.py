"""Recorded result lists (JSONL, one query a line) → cases. Order in the file is the rank, unknown keys are metadata.

A rule that cannot be read is kept as it stands: the filter that meets it lets the chunk pass with a warning.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from rag_core.errors import InputError, RecordError
from rag_core.files import MAX_UPLOAD_BYTES, decode, lines, parse_json, read_text
from rag_core.records.schema import CANDIDATE_KEYS, QUERY_KEYS, VERSION
from rag_core.types import EMPTY, RANKS, SCORES, Candidates, Case, Chunk, Hit, Metric, Order, Query

BARE_KEYS = {"id", "title", "text", "type", "relevant", *SCORES}
MOST_WORDS = 50_000  # titles remembered while a file is read; titles that all differ would gain nothing


def load_lists(source: Path | bytes, name: str = "") -> list[Case]:
    """The cases of a recorded-list file, or of its bytes (then `name` stands in messages).

    RecordError names the line of the first thing that is wrong; nothing is returned then.
    """
    if isinstance(source, bytes):
        if len(source) > MAX_UPLOAD_BYTES:
            raise InputError(f"{name} has {len(source):,} bytes, expected at most {MAX_UPLOAD_BYTES:,}")
        text, where = decode(source, name or "the file"), name or "the file"
    else:
        text, where = read_text(source), str(source)
    cases = list(_cases(text, where))
    if not cases:
        raise RecordError(f"{where} holds no line, expected one query with its candidates a line")
    return cases


def _cases(text: str, where: str) -> Iterator[Case]:
    """Line by line; ids are unique over the file."""
    seen: dict[str, int] = {}
    known = Known()
    for number, line in lines(text):
        place = f"{where} line {number}"
        if number == 1 and (line.startswith("[{") or line.rstrip() == "["):
            raise RecordError(f"{place} begins a JSON list, expected one object a line (JSONL)")
        case = read_case(_object(parse_json_line(line, place), place), place, f"q{number}", known)
        first = seen.setdefault(case.query.id, number)
        if first != number:
            raise RecordError(f"{place} has query id {case.query.id!r:.80} again (line {first}), expected unique ids")
        yield case


class Known:
    """What stood in earlier lines, held once: a chunk is in the lists of many queries, a title on many chunks."""

    def __init__(self) -> None:
        self._chunks: dict[str, Chunk] = {}
        self._bare: dict[tuple[Any, ...], Chunk] = {}
        self._words: dict[str, str] = {}

    def chunk(self, chunk: Chunk) -> Chunk:
        """The chunk as it was first read, where it was the same to the letter (1 and 1.0 are equal, not the same)."""
        first = self._chunks.setdefault(chunk.id, chunk)
        return first if first == chunk and _loose(first) == _loose(chunk) else chunk

    def bare(self, entry: Mapping[str, Any]) -> Chunk | None:
        """The chunk of a candidate that has id, texts and scores only, where the very same was read before.

        Half of the time that 10,000 lists of 50 take to read: nothing of it is checked and built again.
        """
        try:
            return self._bare.get(_bare(entry)) if entry.keys() <= BARE_KEYS else None
        except TypeError:  # a value that is no text: it is refused where the entry is read
            return None

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
        _candidate(entry, f"{place} candidate {rank}", rank, query_id, metric, known)
        for rank, entry in enumerate(entries, 1)
    ]
    hits = tuple(hit for hit, _ in pairs)
    _check_unique(hits, place)
    if order is Order.DISTANCE:
        _check_order(hits, place)
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


def _candidate(
    given: Any, place: str, rank: int, query_id: str, metric: Metric, known: Known
) -> tuple[Hit, int | None]:
    """One candidate as a hit and its grade."""
    entry = _object(given, place)
    scores = {kind: _score(value, kind, place) for kind in SCORES if (value := entry.get(kind)) is not None}
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


def _check_unique(hits: Iterable[Hit], place: str) -> None:
    seen: dict[str, int] = {}
    for hit in hits:
        first = seen.setdefault(hit.chunk.id, hit.rank)
        if first != hit.rank:
            raise RecordError(
                f"{place} candidate {hit.rank} has id {hit.chunk.id[:80]!r} again (candidate {first}), "
                "expected unique ids"
            )


def _check_order(hits: tuple[Hit, ...], place: str) -> None:
    """The list must be ordered by the first score that all its candidates have."""
    if not hits:
        return
    kind = next((kind for kind in SCORES if all(kind in hit.scores for hit in hits)), None)
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
