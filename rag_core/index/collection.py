"""Collections of a workspace: which there are, what one holds, and its deletion. Filling one is in ingest.py."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from rag_core.errors import InputError, StoreError, WinnowError
from rag_core.files import collector_at_rest
from rag_core.index.embed import Vectors
from rag_core.index.lock import writing
from rag_core.index.store import FILE, CollectionFile, StoredChunk, opened
from rag_core.rules.rule import read_rule
from rag_core.types import Chunk, Metric

FOLDER = "collections"
KEYWORDS = "keywords"  # fact: the headers' keywords as a JSON list
_COUNTS = "SELECT count(*), count(DISTINCT document) FROM chunk"
_RULES = """
SELECT type, query_must, count(*), min(id) FROM chunk WHERE query_must IS NOT NULL
GROUP BY type, query_must ORDER BY min(id)"""


@dataclass(frozen=True)
class Snapshot:
    """A collection as it stood at one moment, in memory: chunks in the order of their ids, row by row their vectors."""

    name: str
    chunks: tuple[Chunk, ...]
    vectors: Vectors = field(repr=False, compare=False)  # float32, chunks × dimension, unit rows
    model: str
    dimension: int
    fingerprint: str  # ids, embedded texts and model: what a ranking depends on
    revision: str  # everything, rules and metadata too
    metric: Metric = Metric.COSINE  # rows are unit vectors for cosine, as they were stored for the others


@dataclass(frozen=True, slots=True)
class RuleCounts:
    """Chunks with a rule that can be read, with one that cannot, and what is wrong with the first such."""

    readable: int = 0
    unreadable: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class CollectionSummary:
    """A line of the list of collections; `problem` says in one sentence why one cannot be used.

    `with_rule` counts the rules that can be read; the first that cannot is in `rule_problem`.
    """

    name: str
    chunks: int = 0
    documents: int = 0
    with_rule: int = 0
    unreadable: int = 0
    rule_problem: str = ""
    model: str = ""
    dimension: int = 0
    fingerprint: str = ""
    bytes: int = 0
    problem: str = ""
    metric: str = Metric.COSINE
    origin: str = ""  # the Chroma store it mirrors

    def to_text(self) -> str:
        """One line."""
        if self.problem:
            return f"{self.name}: {self.problem}"
        origin = f", {self.metric} distances, mirrors {self.origin}" if self.origin else ""
        rules = rules_said(self.with_rule, self.unreadable, self.rule_problem)
        return f"{self.name}: {self.chunks} chunks, {rules}, {self.model}{origin}"


def rules_said(readable: int, unreadable: int, problem: str) -> str:
    """The rules of a collection: those that can be read, and beside them those that cannot, with the first reason."""
    beside = f" and {unreadable} with rules that cannot be read and drop nothing ({problem})" if unreadable else ""
    return f"{readable} with rules{beside}"


def folder_of(workspace: Path, name: str) -> Path:
    """The folder of a collection, or an InputError for a name that is none."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._\-]{0,63}", name):
        raise InputError(f"the collection's name is {name[:80]!r}, expected up to 64 of a-z, A-Z, 0-9, . _ -")
    return Path(workspace) / FOLDER / name


def open_collection(workspace: Path, name: str) -> Snapshot:
    """The collection as it stands now; a StoreError where it is not there, damaged or its first ingest never ended."""
    folder = folder_of(workspace, name)
    with opened(folder) as file, file.reading(), collector_at_rest():
        meta = file.meta()
        if "fingerprint" not in meta:
            raise StoreError(f"collection {name} holds no finished ingest; run the ingest again, it resumes")
        rows = list(file.rows())
        model, dimension = meta["model"], int(meta["dimension"])
        vectors = file.vectors(model, [row.text_hash for row in rows], dimension)
    chunks = tuple(row.chunk for row in rows)
    metric = Metric(meta.get("metric", Metric.COSINE))
    return Snapshot(name, chunks, vectors, model, dimension, meta["fingerprint"], meta["revision"], metric)


def revision_of(workspace: Path, name: str) -> str:
    """The collection's revision alone: cheap, to see whether a snapshot is still the newest."""
    with opened(folder_of(workspace, name)) as file:
        return file.meta().get("revision", "")


def keywords_of(workspace: Path, name: str) -> tuple[str, ...] | None:
    """The keywords that the last ingest took from the headers; None where it took none, as earlier versions did not."""
    with opened(folder_of(workspace, name)) as file:
        stored = file.meta().get(KEYWORDS)
    try:
        listed = json.loads(stored) if stored else None
    except ValueError:
        return None
    return tuple(map(str, listed)) if isinstance(listed, list) else None


def list_collections(workspace: Path) -> list[CollectionSummary]:
    """All collections of the workspace by name; a damaged one is listed with its problem."""
    parent = Path(workspace) / FOLDER
    folders = sorted(path.parent for path in parent.glob(f"*/{FILE}")) if parent.is_dir() else []
    return [_summary(folder) for folder in folders]


def not_there(workspace: Path, name: str) -> StoreError:
    """The error for a collection that does not exist: the names of those that do, or how the first is made."""
    known = ", ".join(one.name for one in list_collections(workspace))
    expected = f"one of {known}" if known else "one that `ingest` made; there is none yet"
    return StoreError(f"there is no collection {name[:80]!r}, expected {expected}")


def _summary(folder: Path) -> CollectionSummary:
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    try:
        with opened(folder) as file, file.reading():
            meta = file.meta()
        chunks, documents, rules = _counts_as_of(folder, meta.get("revision", ""))
    except (WinnowError, ValueError) as error:
        return CollectionSummary(folder.name, bytes=size, problem=str(error))
    return CollectionSummary(
        name=folder.name,
        chunks=chunks,
        documents=documents,
        with_rule=rules.readable,
        unreadable=rules.unreadable,
        rule_problem=rules.problem,
        model=meta.get("model", ""),
        dimension=int(meta.get("dimension", 0)),
        fingerprint=meta.get("fingerprint", ""),
        bytes=size,
        metric=meta.get("metric", Metric.COSINE),
        origin=meta.get("origin", ""),
        problem="" if "fingerprint" in meta else "its first ingest has not ended; run it again, it resumes",
    )


def rule_counts(file: CollectionFile) -> dict[str, RuleCounts]:
    """Chunk type → what its chunks carry of rules; each different rule is read once."""
    counts: dict[str, RuleCounts] = {}
    for type_, stored, chunks, first in file.read(_RULES):
        before, rule = counts.get(type_, RuleCounts()), read_rule(json.loads(stored))
        if isinstance(rule, str):
            problem = before.problem or f"chunk {first[:80]}: {rule}"
            counts[type_] = RuleCounts(before.readable, before.unreadable + chunks, problem)
        elif rule is not None:
            counts[type_] = RuleCounts(before.readable + chunks, before.unreadable, before.problem)
    return counts


def rules_of(workspace: Path, name: str) -> RuleCounts:
    """What a collection's chunks carry of rules."""
    return _counts_as_of(folder_of(workspace, name), revision_of(workspace, name))[2]


@lru_cache(maxsize=64)
def _counts_as_of(folder: Path, revision: str) -> tuple[int, int, RuleCounts]:
    """(chunks, documents, rules) at a revision: remembered until it changes, as every page asks and all are looked at.

    Without a revision no ingest has ended, and there is no chunk yet.
    """
    with opened(folder) as file, file.reading():
        ((chunks, documents),) = file.read(_COUNTS)
        counts = list(rule_counts(file).values())
    first = next((count.problem for count in counts if count.problem), "")
    rules = RuleCounts(sum(one.readable for one in counts), sum(one.unreadable for one in counts), first)
    return chunks, documents, rules


def delete_collection(workspace: Path, name: str) -> None:
    """Delete a collection with all it holds; a StoreError where it is not there or being written."""
    folder = folder_of(workspace, name)
    if not folder.is_dir():
        raise StoreError(f"collection {name} is not there, expected {folder}")
    with writing(folder):
        shutil.rmtree(folder)


def fingerprints(rows: Iterable[StoredChunk], model: str) -> dict[str, str]:
    """Fingerprint and revision of rows in the order of their ids: what rankings depend on, and everything."""
    ranked, everything = hashlib.sha256(model.encode()), hashlib.sha256(model.encode())
    for row in rows:
        ranked.update(f"{row.chunk.id}\n{row.text_hash}\n".encode())
        everything.update(repr(row.content()).encode())
    return {"fingerprint": ranked.hexdigest()[:16], "revision": everything.hexdigest()[:16]}
