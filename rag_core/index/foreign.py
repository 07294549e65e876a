"""A Chroma collection that somebody else made: what a store holds, and a mirror of one collection among our own.

Connecting reads ids, documents, metadata and vectors once and never writes to the store; from then on the mirror is
searched like any collection, exactly and in the space it was built in. Which metadata means what (title, type, file,
references, rule) is proposed from a sample of the records. How a store is reached is in foreign_place.py.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from rag_core.corpus.columns import guess_columns
from rag_core.corpus.store_record import chunk_of_record, parsed_value, references_of
from rag_core.errors import Cancelled, InputError, RuleError, StoreError
from rag_core.index.collection import fingerprints, folder_of, rules_of, rules_said
from rag_core.index.embed import CHARACTERS_PER_TOKEN, KNOWN, BundledEmbedder, Progress, Vectors, normalise
from rag_core.index.foreign_place import ForeignPlace, reached, stamp
from rag_core.index.lock import writing
from rag_core.index.rules import kept_rules
from rag_core.index.store import FILE, FORMAT, StoredChunk, embedded_text, opened
from rag_core.rules.rule import parse_rule
from rag_core.types import Chunk, Metric

PAGE = 500  # records read, and vectors stored, at a time
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
        try:
            return all(parse_rule(parsed_value(value), "the record") for value in values)
        except RuleError:
            return False
    if field == "ref_ids":
        named = [one in ids for value in values for one in references_of(value)]
        # else they are words, which may happen to be ids
        written = all(isinstance(parsed_value(value), list) for value in values)
        return any(named) if written else 2 * sum(named) > len(named)
    if len(texts) < len(values) or len(values) < 0.5 * records:
        return False
    if field == "file":
        return all(re.search(r"[^.\s]\.[A-Za-z0-9]{1,8}$", text) for text in texts)
    if field == "type":
        return 1 < len(set(texts)) <= min(MOST_TYPES, len(texts) // 3) and max(map(len, texts)) <= 40
    return max(map(len, texts)) <= LONGEST_TITLE and len(set(texts)) > 0.5 * len(texts)


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
        texts, metadatas = (page[name] or [None] * len(page["ids"]) for name in ("documents", "metadatas"))
        for identity, text, metadata, vector in zip(page["ids"], texts, metadatas, page["embeddings"], strict=True):
            chunk = chunk_of_record(str(identity), text or "", metadata or {}, meaning)
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


COPIES = "foreign"
BUNDLED_NAMES = ("default", "onnx_mini_lm_l6_v2")
"""Chroma's names of all-MiniLM-L6-v2 as it runs it; ours is the same model with int8 weights."""

ALSO_BUNDLED = ("all-MiniLM-L6-v2", "bundled", BundledEmbedder.name)


@dataclass(frozen=True, slots=True)
class Connected:
    """What connecting did."""

    collection: str
    origin: str
    chunks: int
    with_text: int
    metric: Metric
    model: str
    dimension: int
    notice: str = ""
    with_rule: int = 0  # chunks with a rule that can be read
    unreadable: int = 0
    rule_problem: str = ""  # what is wrong with the first rule that cannot
    fields: Mapping[str, str] = field(default_factory=dict)  # which metadata is what, as it is kept

    def to_text(self) -> str:
        """What came, its rules, and what there is to note."""
        lines = [
            f"{self.collection}: {self.chunks} chunks, {self.with_text} with text, {self.metric} distances, "
            f"{self.dimension} dimensions, {self.model}"
        ]
        if self.with_rule or self.unreadable:
            lines.append(rules_said(self.with_rule, self.unreadable, self.rule_problem))
        if self.fields:
            lines.append("metadata read as " + ", ".join(f"{one}={key}" for one, key in self.fields.items()))
        return "\n".join([*lines, self.notice] if self.notice else lines)


def list_foreign(place: ForeignPlace, workspace: Path) -> list[Foreign]:
    """The collections of a store, by name. A StoreError says why it cannot be read."""
    with reached(place, Path(workspace) / COPIES / "listing") as client:
        return sorted((described(one) for one in client.list_collections(limit=1000)), key=lambda one: one.name)


def connect(
    place: ForeignPlace,
    foreign: str,
    name: str,
    workspace: Path,
    model: str = "",
    progress: Progress | None = None,
    cancel: Callable[[], bool] = lambda: False,
    fields: Mapping[str, str] | None = None,
) -> Connected:
    """Mirror a foreign collection as `name`; doing it again brings the mirror up to date and keeps rules set here.

    `model` names what embeds the queries; needed where the store does not say. `fields` says which metadata is what
    (FIELDS); it is kept with the mirror, and without it that or the proposal holds. Nothing is stored
    before all was read.
    """
    folder = folder_of(workspace, name)
    meta: dict[str, str] = {}
    if (folder / FILE).is_file():
        with opened(folder) as file:
            meta = file.meta()
    if meta and "origin" not in meta:
        raise InputError(f"collection {name} was ingested here, expected another name for the Chroma collection")
    with reached(place, Path(workspace) / COPIES / name) as client:
        there = collection_named(client, foreign, place)
        about = described(there)
        if fields is None:
            fields = json.loads(meta.get("origin_facts", "{}")).get("fields") or about.fields
        chunks, vectors = read_records(there, about, place, progress, cancel, fields)
    dimension = vectors.shape[1]
    chosen, notice = model_of(about, dimension, model)
    origin = {"place": place.said, "collection": foreign, "in_place": place.in_place, "fields": dict(fields)}
    origin["stamp"] = folder_stamp(place)
    facts = {
        "metric": str(about.metric),
        "origin": f"{place.said} · {foreign}",
        "origin_facts": json.dumps({**origin, "at": datetime.now(UTC).isoformat(timespec="seconds")}),
    }
    _store(folder, chunks, vectors, chosen, about.metric, facts, fields.get("file", ""))
    rules = rules_of(workspace, name)
    return Connected(
        collection=name,
        origin=facts["origin"],
        chunks=len(chunks),
        with_text=sum(bool(chunk.text) for chunk in chunks),
        metric=about.metric,
        model=chosen,
        dimension=dimension,
        notice=notice,
        with_rule=rules.readable,
        unreadable=rules.unreadable,
        rule_problem=rules.problem,
        fields=dict(fields),
    )


def model_of(about: Foreign, dimension: int, named: str = "") -> tuple[str, str]:
    """(model that embeds the queries, a remark about it), or an InputError: unknown, or of another dimension."""
    if named in ALSO_BUNDLED or (not named and about.model in BUNDLED_NAMES and dimension == BundledEmbedder.dimension):
        chosen, width = BundledEmbedder.name, BundledEmbedder.dimension
    elif named or (about.model and about.model not in BUNDLED_NAMES):
        chosen = named or about.model
        width = KNOWN.get(chosen, (dimension, 0))[0]
    else:
        raise InputError(
            f"the store does not say which model embedded collection {about.name[:80]!r} ({dimension} dimensions); "
            "name it with --model"
        )
    if width != dimension:
        raise InputError(
            f"collection {about.name[:80]!r} has vectors of {dimension} dimensions, {chosen[:80]} gives {width}; "
            "name the model that it was built with"
        )
    bundled = chosen == BundledEmbedder.name and not named
    return chosen, f"queries are embedded with {chosen}: all-MiniLM-L6-v2 as here, in int8" if bundled else ""


def collection_named(client: Any, name: str, place: ForeignPlace) -> Any:
    """The store's collection of that name, or a StoreError that lists those there are."""
    known = {one.name: one for one in client.list_collections(limit=1000)}
    if name not in known:
        names = ", ".join(sorted(known)[:20]) or "none"
        raise StoreError(f"{place.said} has no collection {name[:80]!r}, expected one of {names}")
    return known[name]


def folder_stamp(place: ForeignPlace) -> str:
    """The state of a store's folder; empty of a server, which does not tell, and in place, where reading makes some."""
    return "" if place.path is None or place.in_place else _hashed(stamp(place.path.expanduser().absolute()))


def _origin_facts(workspace: Path, name: str) -> dict[str, Any]:
    """What is kept of where a collection was connected from; nothing where it was not."""
    with opened(folder_of(workspace, name)) as file:
        return dict(json.loads(file.meta().get("origin_facts", "{}")))


def fields_of(workspace: Path, name: str) -> dict[str, str]:
    """Which key of the store's metadata is what, in a collection that was connected; nothing in another."""
    return dict(_origin_facts(workspace, name).get("fields") or {})


def origin_of(workspace: Path, name: str) -> str:
    """The place a collection was connected from, as it is shown; an InputError where it was not connected."""
    place = _origin_facts(workspace, name).get("place")
    if not place:
        raise InputError(f"collection {name} was not connected from Chroma, expected one that was")
    return str(place)


def has_changed(workspace: Path, name: str) -> bool:
    """Whether the folder a mirror was read from was written to since; False for servers, which do not tell."""
    facts = _origin_facts(workspace, name)
    folder = Path(facts.get("place", ""))
    return bool(facts.get("stamp")) and facts["stamp"] != (_hashed(stamp(folder)) if folder.is_dir() else "")


def _store(
    folder: Path,
    chunks: list[Chunk],
    vectors: Vectors,
    model: str,
    metric: Metric,
    facts: Mapping[str, str],
    file_key: str = "",
) -> None:
    """Make the mirror hold exactly these records. A vector's key is its own, as two records may share a text; the text
    is in it too, since rankings by words depend on that. `file_key` names the metadata that holds a chunk's document.
    """
    texts = [embedded_text(chunk) for chunk in chunks]
    space = str(metric).encode()
    pairs = zip(vectors, texts, strict=True)
    hashes = [hashlib.sha256(space + vector.tobytes() + text.encode()).hexdigest() for vector, text in pairs]
    if model == BundledEmbedder.name:
        window, tokens = BundledEmbedder.window, BundledEmbedder().count_tokens(texts)
    else:  # estimated
        window, tokens = KNOWN.get(model, (0, 8191))[1], [-(-len(text) // CHARACTERS_PER_TOKEN) for text in texts]
    files = [str(chunk.metadata.get(file_key, "")) if file_key else "" for chunk in chunks]
    rows = [StoredChunk(*row) for row in zip(chunks, files, hashes, tokens, strict=True)]
    with writing(folder), opened(folder, write=True) as file:
        before = {row.chunk.id for row in file.rows()}
        rows = kept_rules(file, rows)
        for start in range(0, len(rows), PAGE):
            file.add_vectors(model, hashes[start : start + PAGE], vectors[start : start + PAGE])
        described = {"format": str(FORMAT), "model": model, "dimension": str(vectors.shape[1]), "window": str(window)}
        file.switch(rows, before - {chunk.id for chunk in chunks}, {**described, **fingerprints(rows, model), **facts})


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
