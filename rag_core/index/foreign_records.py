"""What a foreign Chroma store holds: its collections with their facts, and the records of one as chunks with vectors.

Which metadata means what (title, type, file, references, rule) is proposed from a sample of the records. Only
reads. How a store is reached is in foreign_place.py, the mirror that is made of the records in foreign.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rag_core.corpus.columns import guess_columns
from rag_core.errors import Cancelled, RuleError, StoreError
from rag_core.index.embed import Progress, Vectors, normalise
from rag_core.index.foreign_place import ForeignPlace
from rag_core.rules.parsing import parse_rule
from rag_core.types import Chunk, Metric

PAGE = 500  # records at a time
SAMPLE = 100  # records that the meaning of metadata is read off
FIELDS = ("title", "type", "file", "ref_ids", "query_must")
"""What a key of a record's metadata may mean; the record's document is the text, every other key stays metadata."""

FILE_NAMES = ("file", "source", "path", "filename", "file_name", "file_path", "url", "document_name")
LONGEST_TITLE = 200  # characters
MOST_TYPES = 20


@dataclass(frozen=True, slots=True)
class Foreign:
    """A collection of a foreign store: its size, its space, and the model Chroma says built it, if any."""

    name: str
    count: int
    metric: Metric
    dimension: int | None
    model: str  # '' where the store does not say
    names: tuple[str, ...] = ()  # the keys of the metadata, of the sample
    fields: Mapping[str, str] = field(default_factory=dict)  # FIELDS → key, as the sample proposes

    def to_text(self) -> str:
        """One line."""
        model = self.model or "a model it does not say"
        fields = "".join(f", {one}={key}" for one, key in self.fields.items())
        return f"{self.name}: {self.count} records, {self.metric}, {self.dimension or '?'} dimensions, {model}{fields}"


def collection_named(client: Any, foreign: str, place: ForeignPlace) -> Any:
    """The collection of that name, or a StoreError that lists those there are."""
    known = {one.name: one for one in client.list_collections(limit=1000)}
    if foreign not in known:
        names = ", ".join(sorted(known)[:20]) or "none"
        raise StoreError(f"{place.said} has no collection {foreign[:80]!r}, expected one of {names}")
    return known[foreign]


def described(collection: Any) -> Foreign:
    """A collection's facts; the newer form of the configuration is read first, then the metadata of older versions."""
    settings = collection.configuration_json or {}
    graph = settings.get("hnsw") or settings.get("spann") or {}
    space = graph.get("space") or (collection.metadata or {}).get("hnsw:space") or "l2"
    if space not in ("cosine", "l2", "ip"):
        raise StoreError(f"collection {collection.name[:80]!r} has the space {str(space)[:40]!r}, which is not known")
    function = settings.get("embedding_function") or {}
    held = function.get("config") or {}
    says = str(held.get("model_name") or function.get("name") or "")
    model = "" if says in ("legacy", "unknown") else says
    some = collection.get(limit=1, include=["embeddings"])["embeddings"]
    width = None if some is None or not len(some) else len(some[0])
    sample = collection.get(limit=SAMPLE, include=["metadatas"])
    rows = [dict(one or {}) for one in sample["metadatas"] or ()]
    names = tuple(sorted({str(name) for row in rows for name in row}))
    fields = propose_fields(rows, set(sample["ids"]))
    return Foreign(collection.name, collection.count(), Metric(space), width, model, names, fields)


def propose_fields(rows: Sequence[Mapping[str, Any]], ids: Collection[str] = ()) -> dict[str, str]:
    """Which key of the metadata is title, type, file, references and rule: by its usual name, else by its values.

    A rule is a key whose values can be read as rules, references lists of ids, a type a word that repeats, a file a
    name with an ending, a title short text that tells records apart. No key stands for two fields.
    """
    columns: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in row.items():
            if value not in (None, ""):
                columns.setdefault(str(name), []).append(value)
    usual = guess_columns(columns)
    proposed = {one: usual[one] for one in FIELDS if one in usual}
    by_name = {name.strip().casefold(): name for name in columns}
    file = next((by_name[name] for name in FILE_NAMES if name in by_name), None)
    if file is not None and file not in proposed.values():
        proposed["file"] = file

    for one in ("query_must", "ref_ids", "file", "type", "title"):  # the plainest signs first
        free = (name for name in columns if name not in proposed.values())
        match = (
            None
            if one in proposed
            else next((name for name in free if _reads_as(one, columns[name], len(rows), ids)), None)
        )
        if match is not None:
            proposed[one] = match
    return {one: proposed[one] for one in FIELDS if one in proposed}


def _reads_as(field: str, values: Sequence[Any], records: int, ids: Collection[str]) -> bool:
    """Whether the values of one key look like those of a field; `records` is how many might have had one."""
    texts = [value for value in values if isinstance(value, str)]
    if field == "query_must":
        return all(_is_rule(value) for value in values)
    if field == "ref_ids":
        lists = [parsed for value in values if isinstance(parsed := _parsed(value), list) and parsed]
        return len(lists) == len(values) and any(str(one) in ids for listed in lists for one in listed)
    if len(texts) < len(values) or len(values) < 0.5 * records:
        return False
    if field == "file":
        return all(re.search(r"[^.\s]\.[A-Za-z0-9]{1,8}$", text) for text in texts)
    if field == "type":
        return 1 < len(set(texts)) <= min(MOST_TYPES, len(texts) // 3) and max(map(len, texts)) <= 40
    return max(map(len, texts)) <= LONGEST_TITLE and len(set(texts)) > 0.5 * len(texts)


def _is_rule(value: Any) -> bool:
    try:
        return bool(parse_rule(_parsed(value), "the record"))
    except RuleError:
        return False


def read_records(
    collection: Any,
    about: Foreign,
    place: ForeignPlace,
    progress: Progress | None,
    cancel: Callable[[], bool],
    fields: Mapping[str, str] | None = None,
) -> tuple[list[Chunk], Vectors]:
    """Every record, in the order of the ids; a StoreError where the collection changed while it was read.

    `fields` says which key of the metadata is what; without it the proposal holds.
    """
    meaning = about.fields if fields is None else fields
    chunks: dict[str, Chunk] = {}
    vectors: dict[str, Any] = {}
    for start in range(0, about.count, PAGE):
        if cancel():
            raise Cancelled(f"stopped after {start:,} of {about.count:,} records; nothing was stored")
        page = collection.get(limit=PAGE, offset=start, include=["embeddings", "documents", "metadatas"])
        for chunk, vector in _records(page, meaning):
            chunks[chunk.id], vectors[chunk.id] = chunk, np.asarray(vector, dtype=np.float32)
        if progress is not None:
            progress(min(start + PAGE, about.count), about.count)
    if len(chunks) != about.count or collection.count() != about.count:
        raise StoreError(f"{place.said} changed while it was read; connect again")
    if not chunks:
        raise StoreError(f"collection {about.name[:80]!r} of {place.said} is empty, expected records")
    ids = sorted(chunks)
    array = np.array([vectors[one] for one in ids], dtype=np.float32)
    if not np.isfinite(array).all():
        raise StoreError(f"collection {about.name[:80]!r} of {place.said} holds a vector that is not finite")
    return [chunks[one] for one in ids], normalise(array) if about.metric is Metric.COSINE else array


def _records(page: Mapping[str, Any], fields: Mapping[str, str]) -> Iterator[tuple[Chunk, Any]]:
    documents = page["documents"] or [None] * len(page["ids"])
    metadatas = page["metadatas"] or [None] * len(page["ids"])
    for identity, text, metadata, vector in zip(page["ids"], documents, metadatas, page["embeddings"], strict=True):
        yield _chunk(str(identity), text or "", dict(metadata or {}), fields), vector


def _chunk(identity: str, text: str, metadata: dict[str, Any], fields: Mapping[str, str]) -> Chunk:
    """A record as a chunk: title, type, rule and references from the metadata; the rest stays there, the file too."""
    names = {field: key for field, key in fields.items() if field != "file" and key in metadata}
    taken = {field: metadata.pop(key) for field, key in names.items()}
    rule, references = _parsed(taken.get("query_must")), _parsed(taken.get("ref_ids")) or []
    listed = references if isinstance(references, list) else [references]
    title, type_ = (_clean(str(taken.get(field, ""))) for field in ("title", "type"))
    return Chunk(_clean(identity), title, _clean(text), type_, rule or None, tuple(map(str, listed)), metadata)


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _parsed(value: Any) -> Any:
    """Chroma's metadata is flat: a rule or a list stands there as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
