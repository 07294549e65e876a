"""A Chroma collection that somebody else made: what a store holds, and a mirror of one collection among our own.

Connecting reads ids, documents, metadata and vectors once and never writes to the store; from then on the mirror is
searched like any collection, exactly and in the space it was built in. How a store is reached is in foreign_place.py,
what is read of it in foreign_records.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rag_core.errors import InputError
from rag_core.index.collection import fingerprints, folder_of, rules_of, rules_said
from rag_core.index.embed import BundledEmbedder, Progress, Vectors
from rag_core.index.foreign_place import ForeignPlace, reached, stamp
from rag_core.index.foreign_records import Foreign, collection_named, described, read_records
from rag_core.index.lock import writing
from rag_core.index.remote import CHARACTERS_PER_TOKEN, KNOWN
from rag_core.index.rules import kept_rules
from rag_core.index.store import FILE, FORMAT, StoredChunk, embedded_text, opened
from rag_core.types import Chunk, Metric

PAGE = 500  # vectors stored at a time
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
    with reached(place, _spare(workspace, "listing")) as client:
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
    (foreign_records.FIELDS); it is kept with the mirror, and without it that or the proposal holds. Nothing is stored
    before all was read.
    """
    folder = folder_of(workspace, name)
    _refuse_own(folder, name)
    with reached(place, _spare(workspace, name)) as client:
        found = collection_named(client, foreign, place)
        about = described(found)
        if fields is None:
            fields = kept_fields(workspace, name) or about.fields
        chunks, vectors = read_records(found, about, place, progress, cancel, fields)
    dimension = vectors.shape[1]
    chosen, notice = model_of(about, dimension, model)
    origin = {"place": place.said, "collection": foreign, "in_place": place.in_place, "stamp": _stamp(place)}
    origin |= {"fields": dict(fields)}
    facts = {
        "metric": str(about.metric),
        "origin": f"{place.said} · {foreign}",
        "origin_facts": json.dumps({**origin, "at": datetime.now(UTC).isoformat(timespec="seconds")}),
    }
    _store(folder, chunks, vectors, chosen, about.metric, facts, fields.get("file", ""))
    texts = sum(bool(chunk.text) for chunk in chunks)
    rules = rules_of(workspace, name)
    return Connected(
        collection=name,
        origin=facts["origin"],
        chunks=len(chunks),
        with_text=texts,
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


def kept_fields(workspace: Path, name: str) -> dict[str, str]:
    """Which metadata is what in a mirror, as it was connected; {} where there is no mirror or it does not say."""
    folder = folder_of(workspace, name)
    if not (folder / FILE).is_file():
        return {}
    with opened(folder) as file:
        return dict(json.loads(file.meta().get("origin_facts", "{}")).get("fields") or {})


def has_changed(workspace: Path, name: str) -> bool:
    """Whether the folder a mirror was read from was written to since; False for servers, which do not tell."""
    with opened(folder_of(workspace, name)) as file:
        facts = json.loads(file.meta().get("origin_facts", "{}"))
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
    window, tokens = _tokens(model, texts)
    files = [str(chunk.metadata.get(file_key, "")) if file_key else "" for chunk in chunks]
    rows = [StoredChunk(*row) for row in zip(chunks, files, hashes, tokens, strict=True)]
    with writing(folder), opened(folder, write=True) as file:
        before = {row.chunk.id for row in file.rows()}
        rows = kept_rules(file, rows)
        for start in range(0, len(rows), PAGE):
            file.add_vectors(model, hashes[start : start + PAGE], vectors[start : start + PAGE])
        fingerprint, revision = fingerprints(rows, model)
        described = {"format": str(FORMAT), "model": model, "dimension": str(vectors.shape[1]), "window": str(window)}
        everything = {**described, "fingerprint": fingerprint, "revision": revision, **facts}
        file.switch(rows, before - {chunk.id for chunk in chunks}, everything)


def _tokens(model: str, texts: list[str]) -> tuple[int, list[int]]:
    """(the model's window, tokens of each text): counted for the bundled model, estimated for others."""
    if model == BundledEmbedder.name:
        return BundledEmbedder.window, BundledEmbedder().count_tokens(texts)
    return KNOWN.get(model, (0, 8191))[1], [-(-len(text) // CHARACTERS_PER_TOKEN) for text in texts]


def _refuse_own(folder: Path, name: str) -> None:
    """A collection that was ingested here is not overwritten by a mirror."""
    if (folder / FILE).is_file():
        with opened(folder) as file:
            meta = file.meta()
        if meta and "origin" not in meta:
            raise InputError(f"collection {name} was ingested here, expected another name for the Chroma collection")


def _spare(workspace: Path, name: str) -> Path:
    return Path(workspace) / COPIES / name


def _stamp(place: ForeignPlace) -> str:
    """The state of the folder that was read, '' for a server, and in place, where our own reading changes it."""
    return _hashed(stamp(place.path.expanduser().absolute())) if place.path is not None and not place.in_place else ""


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
