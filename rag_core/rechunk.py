"""Cut a collection's Markdown anew at another header level, and say of every label where its text went.

Looking first writes nothing. Chunks whose text stays are not embedded again; labels themselves are never changed, they
are kept by text (store/remap.py). Cutting and storing are the work of corpus and index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rag_core.corpus.load import SUFFIXES
from rag_core.errors import InputError
from rag_core.index.collection import folder_of, open_collection
from rag_core.index.embed import Embedder, Progress
from rag_core.index.ingest import IngestReport, ingest, read_documents
from rag_core.index.store import opened
from rag_core.store.events import Event
from rag_core.store.keys import text_hash
from rag_core.store.remap import Remapped, counts, remap


@dataclass(frozen=True)
class Recut:
    """What cutting anew does: chunks before and after, and what becomes of each label; `report` None: only looked."""

    collection: str
    header_level: int
    before: int
    after: int
    unchanged: int  # chunks whose text is one of those before
    labels: tuple[Remapped, ...]
    report: IngestReport | None = None

    @property
    def outcomes(self) -> dict[str, int]:
        """How many labels met each outcome."""
        return counts(self.labels)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        moves = [
            {"eval_set": one.label.eval_set, "query": one.label.query_id, "chunk": one.label.chunk_id}
            | {"outcome": one.outcome, "now": list(one.chunk_ids)}
            for one in self.labels
        ]
        chunks = {"before": self.before, "after": self.after, "unchanged": self.unchanged}
        return {**chunks, **self.outcomes, "labels": moves}

    def to_text(self) -> str:
        """The chunks, and where the labels went."""
        would = "are" if self.report else "would be"
        chunks = f"{self.before} chunks {would} {self.after}, {self.unchanged} of them with a text as before"
        return f"{chunks}\nlabels: " + ", ".join(f"{count} {outcome}" for outcome, count in self.outcomes.items())


def look(
    workspace: Path, collection: str, header_level: int, embedder: Embedder, labels: Iterable[Event] = ()
) -> Recut:
    """What cutting at that level would do; nothing is written. An InputError where the documents are no Markdown."""
    roots = roots_of(workspace, collection)
    corpus = read_documents(roots, embedder, format="markdown", header_level=header_level)
    chunks = {chunk.id: chunk.text for chunk in corpus.chunks}
    return _compared(_texts(workspace, collection), chunks, collection, header_level, labels)


def recut(
    workspace: Path,
    collection: str,
    header_level: int,
    embedder: Embedder,
    labels: Iterable[Event] = (),
    progress: Progress | None = None,
    cancel: Callable[[], bool] | None = None,
) -> Recut:
    """Cut and store; resumes like an ingest, and until its end the collection is searched as it was."""
    roots, before = roots_of(workspace, collection), _texts(workspace, collection)
    report = ingest(
        roots,
        collection,
        workspace,
        embedder,
        format="markdown",
        header_level=header_level,
        progress=progress,
        cancel=cancel,
    )
    found = _compared(before, _texts(workspace, collection), collection, header_level, labels)
    return replace(found, report=report)


def roots_of(workspace: Path, collection: str) -> list[Path]:
    """The files and folders a collection's Markdown came from; an InputError where something else is in it."""
    with opened(folder_of(workspace, collection)) as file:
        sources = {row.document: str(row.chunk.metadata.get("source", "")) for row in file.rows()}
    roots: dict[Path, None] = {}
    for document, source in sorted(sources.items()):
        path = Path(document)
        if SUFFIXES.get(path.suffix.lower()) != "markdown":
            raise InputError(
                f"collection {collection} holds {path.name[:80] or 'chunks'!r}, expected Markdown files alone to cut"
            )
        if not path.is_file():
            raise InputError(f"{document} is not there any more, expected the documents where they were ingested from")
        depth = len(Path(source).parts)
        roots[path if depth <= 1 else path.parents[depth - 1]] = None
    return [root for root in roots if not any(other != root and root.is_relative_to(other) for other in roots)]


def _texts(workspace: Path, collection: str) -> dict[str, str]:
    return {chunk.id: chunk.text for chunk in open_collection(workspace, collection).chunks}


def _compared(
    before: Mapping[str, str], after: Mapping[str, str], collection: str, level: int, labels: Iterable[Event]
) -> Recut:
    """The labels that meet a chunk of before, against the chunks of after."""
    old = {text_hash(text): text for text in before.values()}
    here = [one for one in labels if (one.text_hash in old if one.text_hash else one.chunk_id in before)]
    known = set(before.values())
    unchanged = sum(text in known for text in after.values())
    return Recut(collection, level, len(before), len(after), unchanged, tuple(remap(here, after, old)))
