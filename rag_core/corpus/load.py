"""Files and folders → documents with their chunks. Documents are untrusted: a binary or oversize one refuses all.

Nothing outside a given folder is touched: hidden files and links are passed over. How a file is read is in the module
of its format, which chunks changed since the last time is for the index.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from rag_core.corpus.apart import read_apart
from rag_core.corpus.columns import Columns, check_columns
from rag_core.corpus.html_tables import plain_tables
from rag_core.corpus.jsonl import chunks_of, cleaned, list_records, read_jsonl
from rag_core.corpus.markdown import split_markdown
from rag_core.corpus.openapi import read_openapi
from rag_core.corpus.tables import csv_columns, json_columns, parquet_columns, read_csv, read_parquet
from rag_core.errors import InputError
from rag_core.files import read_text
from rag_core.types import Chunk

FORMATS = ("auto", "markdown", "jsonl", "json", "beir", "csv", "parquet", "openapi")
SUFFIXES = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "markdown",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
}
API_SUFFIXES = (".yaml", ".yml", ".json")
"""Read as an OpenAPI document where the content says it is one; else a .json may be a list of records."""

API_LIMIT = 50_000_000  # bytes
DOCUMENTS = ".md, .markdown, .txt, .jsonl, .ndjson, .csv, .tsv or .parquet"
EXPECTED = f"{DOCUMENTS} files, .json lists of records or OpenAPI documents (.yaml, .yml, .json)"
_ANY_TEXT = (".txt", ".json")  # read as Markdown or JSONL where that is asked for
_SAYS_API = re.compile(r"""^\s*["']?(?:openapi|swagger)["']?\s*:|"(?:openapi|swagger)"\s*:\s*"[23]\.""", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """A document that was found: where it is, its path inside the root it came with, and how it is read."""

    path: Path
    name: str
    root: Path
    kind: str  # markdown | jsonl | json | csv | parquet | openapi


def find(roots: Sequence[Path], format: str) -> tuple[list[FoundFiles], list[Path]]:
    """All documents under the roots in order, each once, and the files beside them that are none."""
    found: dict[Path, FoundFiles] = {}
    others: list[Path] = []
    for root in roots:
        inside = [(path, name, kind_of(path, format)) for path, name in _inside(root, format)]
        if format == "auto" and any(kind not in (None, "json") for _, _, kind in inside):
            # beside documents a list is as likely something else: settings, an index, a log
            inside = [(path, name, None if kind == "json" else kind) for path, name, kind in inside]
        if not any(kind for _, _, kind in inside):
            raise InputError(f"{root} holds no documents, expected {EXPECTED}")
        others += [path for path, _, kind in inside if not kind]
        for path, name, kind in inside:
            if kind and path not in found:
                found[path] = FoundFiles(path, name, root, kind)
    return list(found.values()), others


def kind_of(path: Path, format: str = "auto") -> str | None:
    """How a file is read, or None where it is no document."""
    suffix = path.suffix.lower()
    by_suffix = SUFFIXES.get(suffix)
    if format == "openapi":
        return "openapi" if suffix in API_SUFFIXES else None
    if format == "auto":
        if suffix == ".json" and _holds_list(path):
            return "json"
        try:
            says = suffix in API_SUFFIXES and _SAYS_API.search(read_text(path, limit=API_LIMIT))
        except InputError:
            return by_suffix  # not text or too large: no document, as any other file
        return "openapi" if says else by_suffix
    if format == "json":
        return "json" if suffix == ".json" else None
    wanted = "jsonl" if format == "beir" else format
    as_asked = by_suffix is None and suffix in _ANY_TEXT and wanted in ("markdown", "jsonl")
    return wanted if by_suffix == wanted or as_asked else None


def _holds_list(path: Path) -> bool:
    """Whether a JSON file begins as a list does."""
    with path.open("rb") as file:
        return file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")


def _inside(root: Path, format: str) -> Iterator[tuple[Path, str]]:
    """The files of a path with their names inside it, sorted; a BEIR folder has its corpus only."""
    if root.is_file():
        if not kind_of(root, format):
            if root.suffix.lower() in API_SUFFIXES:
                raise InputError(
                    f"{root} is no OpenAPI document and no JSON list of records, expected one, or {DOCUMENTS} files"
                )
            raise InputError(f"{root} ends in {root.suffix or 'nothing'}, expected {EXPECTED}")
        yield root, root.name
    elif not root.is_dir():
        raise InputError(f"{root} is not there, expected a file or folder")
    elif format == "beir" or (format == "auto" and (root / "queries.jsonl").is_file()):
        corpus = root / "corpus.jsonl"
        if not corpus.is_file():
            raise InputError(f"{root} has no corpus.jsonl, expected a BEIR folder")
        yield corpus, corpus.name
    else:
        for folder, folders, files in os.walk(root, followlinks=False):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(files):
                path = Path(folder, name)
                if not name.startswith(".") and not path.is_symlink() and path.is_file():
                    yield path, path.relative_to(root).as_posix()


LIMITS = {
    "markdown": 20_000_000,
    "jsonl": 1_000_000_000,
    "json": 200_000_000,
    "csv": 500_000_000,
    "parquet": 1_000_000_000,
    "openapi": API_LIMIT,
}
"""Most bytes of a file, by how it is read."""

MAPPED = ("jsonl", "json", "csv", "parquet")
"""What a mapping of columns is for."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file that was read: where it is, its path inside the folder it came with, its chunks, and what is doubtful."""

    path: Path
    name: str
    chunks: tuple[Chunk, ...]
    warnings: tuple[str, ...] = ()
    kind: str = ""  # how it was read: markdown, jsonl, json, csv, parquet or openapi
    skipped: tuple[str, ...] = ()  # what is wrong with each record that was left out
    absent: tuple[str, ...] = ()  # mapped columns that no record has


def remarks_on(passed_over: Sequence[str], warnings: Sequence[str], skipped: Sequence[str] = ()) -> list[str]:
    """Files that are no documents, by one of their names, every warning, and the records that were left out."""
    lines = [f"warning: {warning}" for warning in warnings]
    lines += [f"{len(skipped)} records were left out, the first: {skipped[0]}"] if skipped else []
    if not passed_over:
        return lines
    example = Path(passed_over[0]).name
    return [f"{len(passed_over)} files are no documents and were passed over, such as {example}", *lines]


@dataclass(frozen=True, slots=True)
class Corpus:
    """What was read from the given paths; `roots` are those paths, absolute, `others` files that are no document."""

    documents: tuple[Document, ...]
    roots: tuple[Path, ...] = ()
    others: tuple[Path, ...] = ()

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """All chunks in order."""
        return tuple(chunk for document in self.documents for chunk in document.chunks)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is doubtful in any document."""
        return tuple(warning for document in self.documents for warning in document.warnings)

    @property
    def skipped(self) -> tuple[str, ...]:
        """What is wrong with each record that was left out."""
        return tuple(problem for document in self.documents for problem in document.skipped)

    def to_json(self) -> dict[str, Any]:
        """Documents, chunks without their texts, and what was passed over or is doubtful."""
        return {
            "documents": [{"name": document.name, "chunks": len(document.chunks)} for document in self.documents],
            "chunks": [
                {"id": chunk.id, "title": chunk.title, "type": chunk.type, "characters": len(chunk.text)}
                for chunk in self.chunks
            ],
            "passed_over_files": [str(path) for path in self.others],
            "warnings": self.warnings,
            "skipped": self.skipped,
        }

    def to_text(self) -> str:
        """A line a document, and what was passed over or is doubtful."""
        lines = [f"{len(document.chunks):>7} chunks  {document.name}" for document in self.documents]
        total = f"{len(self.chunks)} chunks in {len(self.documents)} documents; nothing is written"
        return "\n".join([*lines, total, *remarks_on([str(path) for path in self.others], self.warnings, self.skipped)])


def load(
    paths: Sequence[str | Path],
    format: str = "auto",
    header_level: int = 3,
    columns: Columns | None = None,
    skip_bad: bool = False,
) -> Corpus:
    """Read all documents under the paths, or raise an InputError about the first thing that is wrong.

    `format` auto goes by the file's ending; a .yaml, .yml or .json that says it is OpenAPI is read as that; a .json
    that is a list as records, in a folder where nothing else is a document; a folder with corpus.jsonl and
    queries.jsonl as BEIR, its corpus only. `columns` maps chunk fields to the columns of tables and JSON. Ids are
    unique over all documents. `skip_bad` leaves out records that hold no text, too long a one or no record at all, and
    says of each why; without it the first refuses its file.
    """
    if format not in FORMATS:
        raise InputError(f"the format is {format[:40]!r}, expected one of {', '.join(FORMATS)}")
    if not paths:
        raise InputError("no path was given, expected files or folders with documents")
    check_columns(columns or {})
    roots = tuple(Path(path).expanduser().resolve() for path in paths)
    found, others = find(roots, format)
    documents = tuple(_documents(found, header_level, columns, skip_bad))
    owner: dict[str, str] = {}
    for document in documents:
        for chunk in document.chunks:
            if chunk.id in owner:
                raise InputError(
                    f"{document.path} has the id {chunk.id[:80]!r} that {owner[chunk.id]} has, expected each id once"
                )
            owner[chunk.id] = str(document.path)
    absent = [set(document.absent) for document in documents if document.kind in MAPPED]
    if nowhere := sorted(set.intersection(*absent)) if absent else []:
        keys = ", ".join(" ".join(name.split())[:40] for name in columns_of(paths, format)[:20])
        raise InputError(f"no record has {nowhere[0][:80]}, expected one of {keys}")
    if not owner:
        listed = str(paths[0]) if len(paths) == 1 else f"what the {len(paths)} paths name"
        raise InputError(f"{listed} holds no text, expected documents with some")
    return Corpus(documents, roots, tuple(others))


def columns_of(paths: Sequence[str | Path], format: str = "auto") -> list[str]:
    """The columns and keys that a mapping may name in the tables and JSON lines under the paths; [] where none."""
    found, _ = find([Path(path).expanduser().resolve() for path in paths], format)
    tables = [file for file in found if file.kind in MAPPED]
    largest = _largest(tables)
    named = read_apart({"wanted": "columns", "files": _said(tables)}, largest) if largest else map(_columns, tables)
    names: dict[str, None] = {}
    for file in tables:
        with _bounded(file):
            names |= dict.fromkeys(next(named))
    return list(names)


def _columns(file: FoundFiles) -> list[str]:
    if file.kind == "parquet":
        return parquet_columns(file.path, file.name)
    if file.kind == "json":
        records = (record for _, record in list_records(_text(file), file.name))
        return list(dict.fromkeys(key for record in islice(records, 50) if isinstance(record, dict) for key in record))
    return (csv_columns if file.kind == "csv" else json_columns)(_text(file), file.name)


@contextmanager
def _bounded(file: FoundFiles) -> Iterator[None]:
    """Reading this file: an InputError where it takes more than it may."""
    try:
        yield
    except MemoryError:
        raise InputError(
            f"{file.path} takes more memory or time than documents of its size do, expected a smaller or plainer file"
        ) from None


IN_PLACE = 100_000
"""Bytes of text that no reader makes large: they are read where they are asked for; more, and all Parquet, in a child.
"""


def _largest(files: Sequence[FoundFiles]) -> int:
    """The bytes that are read at once, at most; 0 where all may be read in place."""
    sizes = {file: file.path.stat().st_size for file in files}
    if not any(file.kind == "parquet" for file in files) and sum(sizes.values()) <= IN_PLACE:
        return 0
    together = sum(size for file, size in sizes.items() if file.kind == "openapi")
    return max(together, *sizes.values())


def _said(files: Sequence[FoundFiles]) -> list[list[str]]:
    return [[str(file.path), file.name, str(file.root), file.kind] for file in files]


def _documents(files: Sequence[FoundFiles], *settings: Any) -> Iterator[Document]:
    """The documents in order, read here or in a child; `settings` are header level, columns and skip_bad."""
    largest = _largest(files)
    if not largest:
        yield from _read(files, *settings)
        return
    values = read_apart({"wanted": "documents", "files": _said(files), "settings": settings}, largest)
    for file in files:
        with _bounded(file):
            warnings, skipped, absent, count = next(values)
            chunks = tuple(
                Chunk(identity, title, text, type_, rule, tuple(references), metadata)
                for identity, title, text, type_, rule, references, metadata in islice(values, count)
            )
        yield Document(file.path, file.name, chunks, tuple(warnings), file.kind, tuple(skipped), tuple(absent))


def answers(request: Mapping[str, Any]) -> Iterator[Any]:
    """What the child gives for such a request: names, or for each document what it is and then its chunks."""
    found = [FoundFiles(Path(path), name, Path(root), kind) for path, name, root, kind in request["files"]]
    if request["wanted"] == "columns":
        yield from map(_columns, found)
        return
    for document in _read(found, *request["settings"]):
        yield document.warnings, document.skipped, document.absent, len(document.chunks)
        for chunk in document.chunks:
            yield chunk.id, chunk.title, chunk.text, chunk.type, chunk.query_must, chunk.ref_ids, chunk.metadata


def _read(
    files: Sequence[FoundFiles], header_level: int, columns: Columns | None, skip_bad: bool
) -> Iterator[Document]:
    apis: dict[Path, Document] = {}
    for file in files:
        if file.kind == "openapi" and file.path not in apis:
            apis |= _apis([other for other in files if other.kind == "openapi" and other.root == file.root])
        yield apis[file.path] if file.kind == "openapi" else _document(file, header_level, columns, skip_bad)


def _apis(together: Sequence[FoundFiles]) -> dict[Path, Document]:
    """OpenAPI documents of one root, which may refer to each other."""
    chunks, warnings = read_openapi({file.name: _text(file) for file in together})
    return {
        file.path: Document(
            file.path,
            file.name,
            tuple(chunk for chunk in chunks if chunk.metadata["source"] == file.name),
            tuple(one for one in warnings if one.startswith(f"{file.name} has the reference ")),
            "openapi",
        )
        for file in together
    }


def _text(file: FoundFiles) -> str:
    return str(cleaned(read_text(file.path, limit=LIMITS[file.kind])))


def _document(file: FoundFiles, header_level: int, columns: Columns | None, skip_bad: bool) -> Document:
    """A file that stands for itself."""
    skipped: list[str] | None = [] if skip_bad else None
    absent = set[str]()
    if file.kind == "parquet":
        size = file.path.stat().st_size
        if size > LIMITS["parquet"]:
            raise InputError(f"{file.path} has {size:,} bytes, expected at most {LIMITS['parquet']:,}")
        chunks = chunks_of(read_parquet(file.path, file.name, columns), file.name, columns, skipped)
    else:
        text = _text(file)
        if file.kind == "csv":
            chunks = chunks_of(read_csv(text, file.name, columns), file.name, columns, skipped)
        elif file.kind == "markdown":
            sections = split_markdown(text, file.name, header_level)
            chunks = [replace(chunk, text=plain_tables(chunk.text)) for chunk in sections]
        else:
            absent = set((columns or {}).values())
            if file.kind == "json":
                chunks = chunks_of(list_records(text, file.name), file.name, columns, skipped, absent)
            else:
                chunks = read_jsonl(text, file.name, columns, skipped, absent)
    left_out, missing = tuple(skipped or ()), tuple(sorted(absent))
    return Document(file.path, file.name, tuple(chunks), kind=file.kind, skipped=left_out, absent=missing)
