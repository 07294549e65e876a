"""Files and folders → documents with their chunks. Documents are untrusted: a binary or oversize one refuses all.

Nothing outside a given folder is read: hidden files and links are passed over. Which chunks changed since the last time
is for the index.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rag_core.corpus.jsonl import cleaned, read_jsonl
from rag_core.corpus.markdown import split_markdown
from rag_core.errors import InputError
from rag_core.files import read_text
from rag_core.types import Chunk

FORMATS = ("auto", "markdown", "jsonl", "beir")
SUFFIXES = {".md": "markdown", ".markdown": "markdown", ".jsonl": "jsonl", ".ndjson": "jsonl"}
LIMITS = {"markdown": 20_000_000, "jsonl": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class Document:
    """A file that was read: where it is, its path inside the folder it came with, and its chunks."""

    path: Path
    name: str
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Corpus:
    """What was read from the given paths; `roots` are those paths, absolute, `passed_over` counts other files."""

    documents: tuple[Document, ...]
    roots: tuple[Path, ...] = ()
    passed_over: int = 0

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """All chunks in order."""
        return tuple(chunk for document in self.documents for chunk in document.chunks)


def load(paths: Sequence[str | Path], format: str = "auto", header_level: int = 3) -> Corpus:
    """Read all documents under the paths, or raise an InputError about the first thing that is wrong.

    `format` auto goes by the file's ending (.md, .markdown, .jsonl, .ndjson); a folder with corpus.jsonl and
    queries.jsonl is read as BEIR, its corpus only. Ids are unique over all documents.
    """
    if format not in FORMATS:
        raise InputError(f"the format is {format[:40]!r}, expected one of {', '.join(FORMATS)}")
    if not paths:
        raise InputError("no path was given, expected files or folders with documents")
    roots = tuple(Path(path).expanduser().resolve() for path in paths)
    files, passed_over = _collect(roots, format)
    documents = tuple(_document(path, name, format, header_level) for path, name in files.items())
    _check_ids(documents)
    if not any(document.chunks for document in documents):
        raise InputError(f"{_listed(paths)} holds no text, expected documents with some")
    return Corpus(documents, roots, passed_over)


def _collect(roots: Sequence[Path], format: str) -> tuple[dict[Path, str], int]:
    """File → name for all documents, in order, and how many other files stand beside them."""
    found: dict[Path, str] = {}
    passed_over = 0
    for root in roots:
        inside = list(_inside(root, format))
        taken = {path: name for path, name in inside if _kind(path, format)}
        if not taken:
            raise InputError(f"{root} holds no documents, expected .md, .markdown, .jsonl or .ndjson files")
        passed_over += len(inside) - len(taken)
        found |= {path: name for path, name in taken.items() if path not in found}
    return found, passed_over


def _inside(root: Path, format: str) -> Iterator[tuple[Path, str]]:
    """The files of a path with their names inside it, sorted; a BEIR folder has its corpus only."""
    if root.is_file():
        if not _kind(root, format):
            raise InputError(f"{root} ends in {root.suffix or 'nothing'}, expected .md, .markdown, .jsonl or .ndjson")
        yield root, root.name
    elif not root.is_dir():
        raise InputError(f"{root} is not there, expected a file or folder")
    elif format == "beir" or (format == "auto" and (root / "queries.jsonl").is_file()):
        corpus = root / "corpus.jsonl"
        if not corpus.is_file():
            raise InputError(f"{root} has no corpus.jsonl, expected a BEIR folder")
        yield corpus, corpus.name
    else:
        yield from _walk(root)


def _walk(root: Path) -> Iterator[tuple[Path, str]]:
    for folder, folders, files in os.walk(root, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(folder, name)
            if not name.startswith(".") and not path.is_symlink() and path.is_file():
                yield path, path.relative_to(root).as_posix()


def _kind(path: Path, format: str) -> str | None:
    """How a file is read, or None where it is no document."""
    by_suffix = SUFFIXES.get(path.suffix.lower())
    if format == "auto":
        return by_suffix
    wanted = "jsonl" if format == "beir" else format
    return wanted if by_suffix == wanted or (by_suffix is None and path.suffix.lower() in (".txt", ".json")) else None


def _document(path: Path, name: str, format: str, header_level: int) -> Document:
    kind = _kind(path, format) or "markdown"
    text = str(cleaned(read_text(path, limit=LIMITS[kind])))
    chunks = split_markdown(text, name, header_level) if kind == "markdown" else read_jsonl(text, name)
    return Document(path, name, tuple(chunks))


def _check_ids(documents: Sequence[Document]) -> None:
    """Every id stands once over all documents."""
    owner: dict[str, str] = {}
    for document in documents:
        for chunk in document.chunks:
            if chunk.id in owner:
                raise InputError(
                    f"{document.path} has the id {chunk.id[:80]!r} that {owner[chunk.id]} has, expected each id once"
                )
            owner[chunk.id] = str(document.path)


def _listed(paths: Sequence[str | Path]) -> str:
    return str(paths[0]) if len(paths) == 1 else f"what the {len(paths)} paths name"
