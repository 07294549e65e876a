"""Documents → a collection: only what changed is embedded, an interrupted run resumes, the switch is one transaction.

Reading documents is in rag_core.corpus, the file in store.py, the lock in lock.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from rag_core.corpus.columns import Columns
from rag_core.corpus.load import Corpus, Document, load, remarks_on
from rag_core.corpus.names import header_keywords
from rag_core.corpus.split import split_chunk
from rag_core.errors import Cancelled, InputError, StoreError
from rag_core.index.collection import KEYWORDS, fingerprints, folder_of
from rag_core.index.embed import Embedder, Progress, WordsOnly
from rag_core.index.lexical import kept_counts
from rag_core.index.lock import writing
from rag_core.index.rules import kept_rules
from rag_core.index.store import FILE, FORMAT, CollectionFile, StoredChunk, embedded_text, opened, text_hash
from rag_core.text import counted
from rag_core.types import Chunk


def gone(before: Mapping[str, StoredChunk], rows: Sequence[StoredChunk], roots: Sequence[Path] | None) -> list[str]:
    """The stored chunks that go: those of the given paths (or all) that are not among the new ones.

    A new chunk may take the id of one from elsewhere only where that document is gone, a moved folder; then all of that
    document goes.
    """
    new = {row.chunk.id for row in rows}
    stored = {row.document for row in before.values()}
    inside = {one for one in stored if roots is None or any(Path(one).is_relative_to(root) for root in roots)}
    moved: set[str] = set()
    for row in rows:
        old = before.get(row.chunk.id)
        if old is not None and old.document not in inside:
            if Path(old.document).exists():
                raise InputError(
                    f"{row.document} has the id {row.chunk.id[:80]!r} that {old.document} already has here, "
                    "expected each id once; ingest both paths together under one folder, or use another collection"
                )
            moved.add(old.document)
    return [identity for identity, row in before.items() if identity not in new and row.document in inside | moved]


def switched(
    before: Mapping[str, StoredChunk], rows: Sequence[StoredChunk], removed: Sequence[str]
) -> list[StoredChunk]:
    """The collection's rows after the switch, in the order of their ids."""
    without = set(removed)
    kept = {identity: row for identity, row in before.items() if identity not in without}
    after = kept | {row.chunk.id: row for row in rows}
    return [after[identity] for identity in sorted(after)]


Cancel = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What an ingest did. `too_long` names chunks with more tokens than the model reads; their rest is not embedded."""

    collection: str
    documents: int
    chunks: int  # in the collection, afterwards
    added: int
    changed: int  # text, title, rule or metadata
    removed: int
    embedded: int  # texts embedded now
    too_long: tuple[tuple[str, int], ...]  # (chunk id, tokens)
    window: int
    model: str
    passed_over: int = 0  # files that are no documents
    passed_over_files: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()  # what is doubtful in the documents, a sentence each
    skipped: tuple[str, ...] = ()  # what is wrong with each record that was left out
    seconds_embedding: float = 0.0  # what the embedder took: counting tokens and making vectors
    seconds_storing: float = 0.0  # everything else

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        too_long = [{"id": chunk, "tokens": tokens} for chunk, tokens in self.too_long]
        return {**asdict(self), "too_long": too_long}

    def to_text(self) -> str:
        """What it did, what it could not embed whole, and what it did not read."""
        lines = [
            f"{self.collection}: {self.chunks} chunks ({self.added} added, {self.changed} changed, "
            f"{self.removed} removed), {self.embedded} embedded with {self.model}"
        ]
        if self.too_long:
            lines.append(
                f"{len(self.too_long)} chunks are longer than the {self.window} tokens the model reads; "
                "what stands behind is not embedded (--split-long takes them apart)"
            )
        return "\n".join([*lines, *remarks_on(self.passed_over_files, self.warnings, self.skipped)])


def read_documents(
    paths: Sequence[str | Path],
    embedder: Embedder,
    *,
    format: str = "auto",
    header_level: int = 3,
    columns: Columns | None = None,
    split_long: bool | None = None,
    skip_bad: bool = False,
) -> Corpus:
    """The documents of these paths as an ingest takes them: chunks over the model's window taken apart, and that said.

    `split_long` None splits Markdown, whose sections are nobody's ids; True whatever is too long; False nothing.
    """
    corpus = load(paths, format, header_level, columns, skip_bad)
    if split_long is False:
        return corpus
    documents = [
        _split(document, embedder) if split_long or document.kind == "markdown" else document
        for document in corpus.documents
    ]
    return replace(corpus, documents=tuple(documents))


def _split(document: Document, embedder: Embedder) -> Document:
    """A document without chunks over the window."""
    tokens = embedder.count_tokens([embedded_text(chunk) for chunk in document.chunks])
    pairs = list(zip(document.chunks, tokens, strict=True))
    parts = [
        split_chunk(chunk, embedder.window, embedder.count_tokens) if count > embedder.window else [chunk]
        for chunk, count in pairs
    ]
    apart = sum(len(some) > 1 for some in parts)
    if not apart:
        return document
    number = sum(len(some) for some in parts if len(some) > 1)
    warning = (
        f"{document.name} has {counted(apart, 'chunk', 'chunks')} of more than the {embedder.window} tokens the model "
        f"reads, the longest of {max(tokens):,}: taken apart into {number:,} (--keep-long leaves them whole)"
    )
    chunks = tuple(part for some in parts for part in some)
    return replace(document, chunks=chunks, warnings=(*document.warnings, warning))


@dataclass(frozen=True, slots=True)
class IngestLook:
    """What an ingest would do: the chunks there would be with their tokens, and what embedding them takes."""

    corpus: Corpus
    tokens: tuple[int, ...]  # of each chunk with its title
    window: int  # tokens the model reads
    model: str
    texts_to_embed: int
    tokens_to_embed: int  # as far as the model reads them

    @property
    def share(self) -> float:
        """The share of all tokens that stand within the window: what is embedded."""
        return sum(min(one, self.window) for one in self.tokens) / (sum(self.tokens) or 1)

    @property
    def lengths(self) -> dict[str, int]:
        """Tokens of the shortest, the median, the 95th percentile and the longest chunk, and how many are too long."""
        ordered = sorted(self.tokens) or [0]
        places = {"shortest": 0, "median": (len(ordered) - 1) // 2, "p95": 19 * (len(ordered) - 1) // 20, "longest": -1}
        too_long = sum(one > self.window for one in self.tokens)
        return {name: ordered[place] for name, place in places.items()} | {"over_window": too_long}

    def to_json(self) -> dict[str, Any]:
        """The corpus, lengths in tokens, the embedded share, and what embedding takes."""
        return {
            **self.corpus.to_json(),
            "lengths": self.lengths,
            "window": self.window,
            "model": self.model,
            "embedded_share": self.share,
            "texts_to_embed": self.texts_to_embed,
            "tokens_to_embed": self.tokens_to_embed,
        }

    def to_text(self) -> str:
        """The documents, then lengths, share and work, a line each."""
        return "\n".join([self.corpus.to_text(), *self.figures])

    @property
    def figures(self) -> list[str]:
        """Lengths, embedded share and work, in words."""
        found = self.lengths
        return [
            f"tokens a chunk: {found['shortest']:,} to {found['longest']:,}, median {found['median']:,}, 95 % at most "
            f"{found['p95']:,}; {found['over_window']:,} of {len(self.tokens):,} have more than the {self.window} that "
            f"{self.model} reads",
            f"embedded share: {self.share:.1%} of all tokens",
            f"to embed now: {counted(self.texts_to_embed, 'text', 'texts')}, {self.tokens_to_embed:,} tokens",
        ]


def look(
    paths: Sequence[str | Path], collection: str, workspace: Path, embedder: Embedder, **reading: Any
) -> IngestLook:
    """What `ingest` would make of the documents, with nothing embedded or written; `reading` as in read_documents."""
    corpus, folder = read_documents(paths, embedder, **reading), folder_of(workspace, collection)
    texts = [embedded_text(chunk) for chunk in corpus.chunks]
    tokens = embedder.count_tokens(texts)
    by_hash = dict(zip(map(text_hash, texts), tokens, strict=True))
    known: set[str] = set()
    if (folder / FILE).is_file():
        with opened(folder) as file:
            known = file.known_hashes(embedder.name)
    missing = [count for hashed, count in by_hash.items() if hashed not in known]
    work = sum(min(count, embedder.window) for count in missing)
    return IngestLook(corpus, tuple(tokens), embedder.window, embedder.name, len(missing), work)


def ingest(
    paths: Sequence[str | Path],
    collection: str,
    workspace: Path,
    embedder: Embedder,
    *,
    force: bool = False,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    **reading: Any,
) -> IngestReport:
    """Bring the collection's chunks of these paths to what the documents say now.

    Chunks of the paths that are no longer in them are deleted; those of other paths stay. `force` embeds everything
    anew and leaves nothing else in the collection; `reading` is as in read_documents. All are read and checked before
    anything is written.
    """
    folder = folder_of(workspace, collection)
    corpus = read_documents(paths, embedder, **reading)
    chunks: dict[str, Sequence[Chunk]] = {str(document.path): document.chunks for document in corpus.documents}
    report = _store(folder, chunks, None if force else corpus.roots, embedder, force, progress, cancel)
    others = tuple(map(str, corpus.others))
    return replace(
        report,
        passed_over=len(others),
        passed_over_files=others,
        warnings=corpus.warnings,
        skipped=corpus.skipped,
    )


def ingest_chunks(
    chunks: Iterable[Chunk],
    collection: str,
    workspace: Path,
    embedder: Embedder,
    *,
    force: bool = False,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> IngestReport:
    """Make the collection hold exactly these chunks; what is stored with an equal text is not embedded again."""
    listed = tuple(chunks)
    if len({chunk.id for chunk in listed}) < len(listed):
        raise InputError("two chunks have one id, expected each id once")
    return _store(folder_of(workspace, collection), {"": listed}, None, embedder, force, progress, cancel)


def _store(
    folder: Path,
    documents: Mapping[str, Sequence[Chunk]],
    roots: Sequence[Path] | None,
    embedder: Embedder,
    force: bool,
    progress: Progress | None,
    cancel: Cancel | None,
) -> IngestReport:
    """Stage the vectors, then switch the chunks; `roots` None replaces the whole collection."""
    started = perf_counter()
    with writing(folder):
        if force:
            _forget_damaged(folder)
        with opened(folder, write=True) as file:
            _check_kept(folder.name, file.meta(), embedder, replaced=force)
            before = {row.chunk.id: row for row in file.rows()}
            known = {} if force else {row.text_hash: row.tokens for row in before.values()}
            rows, texts, counting = _rows(documents, known, embedder)
            if file.meta().get("model") == WordsOnly.name != embedder.name:  # what stays is embedded now as well
                texts = {row.text_hash: embedded_text(row.chunk) for row in before.values()} | texts
            rows = kept_rules(file, rows)
            removed = gone(before, rows, roots)
            embedded = set[str]() if force else file.known_hashes(embedder.name)
            missing = {hashed: text for hashed, text in texts.items() if hashed not in embedded}
            embedding = _embed(file, missing, embedder, progress, cancel) + counting
            after = switched(before, rows, removed)
            facts = {
                "format": str(FORMAT),
                "model": embedder.name,
                "dimension": str(embedder.dimension),
                "window": str(embedder.window),
                KEYWORDS: json.dumps(header_keywords(row.chunk for row in after), ensure_ascii=False),
                **fingerprints(after, embedder.name),
            }
            file.switch(rows, removed, facts)
        kept_counts([embedded_text(row.chunk) for row in after], facts["fingerprint"], folder)
    return IngestReport(
        collection=folder.name,
        documents=len(documents),
        chunks=len(after),
        added=sum(row.chunk.id not in before for row in rows),
        changed=sum(row.chunk.id in before and before[row.chunk.id].content() != row.content() for row in rows),
        removed=len(removed),
        embedded=len(missing),
        too_long=tuple((row.chunk.id, row.tokens) for row in rows if row.tokens > embedder.window),
        window=embedder.window,
        model=embedder.name,
        seconds_embedding=embedding,
        seconds_storing=perf_counter() - started - embedding,
    )


def _rows(
    documents: Mapping[str, Sequence[Chunk]], known: Mapping[str, int], embedder: Embedder
) -> tuple[list[StoredChunk], dict[str, str], float]:
    """The chunks as rows, their texts by hash, and the seconds the embedder took to count tokens.

    `known` has the tokens of texts that were counted before.
    """
    chunks = [(chunk, document) for document, some in documents.items() for chunk in some]
    texts = [embedded_text(chunk) for chunk, _ in chunks]
    hashes = [text_hash(text) for text in texts]
    by_hash = dict(zip(hashes, texts, strict=True))
    uncounted = {hashed: text for hashed, text in by_hash.items() if hashed not in known}
    began = perf_counter()
    tokens = {**known, **dict(zip(uncounted, embedder.count_tokens(list(uncounted.values())), strict=True))}
    seconds = perf_counter() - began
    rows = [
        StoredChunk(chunk, document, hashed, tokens[hashed])
        for (chunk, document), hashed in zip(chunks, hashes, strict=True)
    ]
    return rows, by_hash, seconds


def _embed(
    file: CollectionFile,
    missing: Mapping[str, str],
    embedder: Embedder,
    progress: Progress | None,
    cancel: Cancel | None,
) -> float:
    """Embed and commit the missing texts batch by batch; the seconds the embedder took. Cancelling keeps the done."""
    hashes, seconds = list(missing), 0.0
    for start in range(0, len(hashes), embedder.batch):
        if cancel is not None and cancel():
            raise Cancelled(f"stopped after {start:,} of {len(hashes):,} texts; run the ingest again, it resumes")
        batch = hashes[start : start + embedder.batch]
        began = perf_counter()
        vectors = embedder.embed([missing[hashed] for hashed in batch])
        seconds += perf_counter() - began
        file.add_vectors(embedder.name, batch, vectors)
        if progress is not None:
            progress(start + len(batch), len(hashes))
    return seconds


def _check_kept(name: str, meta: Mapping[str, str], embedder: Embedder, replaced: bool) -> None:
    """A collection keeps its model unless all of it is replaced; a mirror of a Chroma store takes no documents."""
    if "origin" in meta:
        raise InputError(f"collection {name} mirrors {meta['origin']}, expected another name for documents")
    built = meta.get("model", embedder.name)
    if built not in (embedder.name, WordsOnly.name) and not replaced:
        raise InputError(
            f"collection {name} was built with {built} ({meta['dimension']} dimensions), this ingest uses "
            f"{embedder.name} ({embedder.dimension}); force it to build all of it anew, or name another collection"
        )


def _forget_damaged(folder: Path) -> None:
    """Set a collection file that cannot be read aside, so that a forced ingest can build a new one."""
    if not (folder / FILE).exists():
        return
    try:
        with opened(folder) as file:
            file.check()
    except StoreError:
        for suffix in ("", "-wal", "-shm"):
            path = folder / f"{FILE}{suffix}"
            if path.exists():
                path.replace(folder / f"damaged-{FILE}{suffix}")
