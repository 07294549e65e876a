"""Which files under the given paths are documents, and how each is read. Reading them is in load.py.

Nothing outside a given folder is touched: hidden files and links are passed over.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rag_core.errors import InputError
from rag_core.files import read_text

FORMATS = ("auto", "markdown", "jsonl", "beir", "csv", "parquet", "openapi")
SUFFIXES = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
}
API_SUFFIXES = (".yaml", ".yml", ".json")
"""Read as an OpenAPI document where the content says it is one."""

API_LIMIT = 50_000_000  # bytes
DOCUMENTS = ".md, .markdown, .jsonl, .ndjson, .csv, .tsv or .parquet"
EXPECTED = f"{DOCUMENTS} files or OpenAPI documents (.yaml, .yml, .json)"
_ANY_TEXT = (".txt", ".json")  # read as Markdown or JSONL only where that is asked for
_SAYS_API = re.compile(r"""^\s*["']?(?:openapi|swagger)["']?\s*:|"(?:openapi|swagger)"\s*:\s*"[23]\.""", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """A document that was found: where it is, its path inside the root it came with, and how it is read."""

    path: Path
    name: str
    root: Path
    kind: str  # markdown | jsonl | csv | parquet | openapi


def find(roots: Sequence[Path], format: str) -> tuple[list[FoundFiles], list[Path]]:
    """All documents under the roots in order, each once, and the files beside them that are none."""
    found: dict[Path, FoundFiles] = {}
    others: list[Path] = []
    for root in roots:
        inside = [(path, name, kind_of(path, format)) for path, name in _inside(root, format)]
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
        return "openapi" if suffix in API_SUFFIXES and _says_it_is_an_api(path) else by_suffix
    wanted = "jsonl" if format == "beir" else format
    as_asked = by_suffix is None and suffix in _ANY_TEXT and wanted in ("markdown", "jsonl")
    return wanted if by_suffix == wanted or as_asked else None


def _says_it_is_an_api(path: Path) -> bool:
    try:
        return bool(_SAYS_API.search(read_text(path, limit=API_LIMIT)))
    except InputError:
        return False  # not text or too large: no document, as any other file


def _inside(root: Path, format: str) -> Iterator[tuple[Path, str]]:
    """The files of a path with their names inside it, sorted; a BEIR folder has its corpus only."""
    if root.is_file():
        if not kind_of(root, format):
            if root.suffix.lower() in API_SUFFIXES:
                raise InputError(f"{root} is no OpenAPI document, expected one, or {DOCUMENTS} files")
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
        yield from _walk(root)


def _walk(root: Path) -> Iterator[tuple[Path, str]]:
    for folder, folders, files in os.walk(root, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(folder, name)
            if not name.startswith(".") and not path.is_symlink() and path.is_file():
                yield path, path.relative_to(root).as_posix()
